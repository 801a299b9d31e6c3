"""The values that travel through the service: frozen dataclasses; imports nothing of ours but errors."""

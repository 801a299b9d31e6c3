"""What are the values that travel through the service? Frozen dataclasses; imports nothing of ours but errors."""

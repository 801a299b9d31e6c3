"""POST /v1/memories and its operations."""

"""Routes for storing memories and for operations."""

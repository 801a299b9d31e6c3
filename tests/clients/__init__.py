"""The client libraries in clients/, against a running service."""

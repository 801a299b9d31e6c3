"""Deletions too large for one request."""

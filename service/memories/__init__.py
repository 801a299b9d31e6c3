"""Memories: stored, changed, reviewed and undone."""

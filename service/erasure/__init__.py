"""Deleting, forgetting and purging."""

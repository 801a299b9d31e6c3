"""Deleting for good: memories, conversations, subjects, whole workspaces."""

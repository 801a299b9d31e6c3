"""Conversations and their turns: stored, changed, read."""

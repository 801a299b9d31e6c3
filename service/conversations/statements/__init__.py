"""Conversations, their turns and the context of a turn."""

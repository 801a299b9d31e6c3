"""Adds memories: a text, a batch, or the facts of a conversation."""

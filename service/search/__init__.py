"""Retrieval: search of memories and turns, recall, the context of a conversation, and the ranking they share."""

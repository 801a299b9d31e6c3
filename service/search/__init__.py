"""Retrieval: search of memories and turns, recall, and the ranking they share."""

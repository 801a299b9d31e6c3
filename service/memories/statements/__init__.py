"""Memories with their history, sources, decisions and reviews."""

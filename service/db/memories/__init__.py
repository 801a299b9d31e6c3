"""Memories with their history, decisions, reviews and snapshots."""

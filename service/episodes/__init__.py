"""Turns of conversations, as they are stored."""

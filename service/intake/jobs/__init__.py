"""Conversations stored after the reply."""

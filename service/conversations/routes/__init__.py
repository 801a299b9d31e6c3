"""Conversations and turns over HTTP."""

"""Memories over HTTP."""

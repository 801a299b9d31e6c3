"""Deletion over HTTP."""

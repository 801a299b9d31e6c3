"""Entities and relations over HTTP."""

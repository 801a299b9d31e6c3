"""Entities, relations, and edges between memories."""

"""Edges between memories, entities and the relations between entities."""

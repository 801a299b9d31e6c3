"""Enrichment of memories."""

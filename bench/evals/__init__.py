"""Measurements against labelled sets: they print aggregates, never texts."""

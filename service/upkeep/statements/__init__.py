"""Statements of upkeep."""

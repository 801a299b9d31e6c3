"""Recurring upkeep."""

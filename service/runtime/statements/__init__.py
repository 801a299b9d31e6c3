"""Statements that writes of every kind share."""

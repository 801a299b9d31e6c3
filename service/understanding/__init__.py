"""Decides how a fact changes the stored memories near it; returns decisions, writes nothing."""

"""Decides what becomes of a fact next to stored memories; returns decisions, writes nothing."""

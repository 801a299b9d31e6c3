"""Statements on keys, users and model budgets."""

"""Statements on keys, budgets and the audit log."""

"""Statements on keys and the audit log."""

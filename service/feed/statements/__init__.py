"""Statements on the change feed and webhooks."""

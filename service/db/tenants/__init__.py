"""Workspaces, API keys, users, channels and the audit log."""

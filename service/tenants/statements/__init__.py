"""Workspaces and API keys, the users and channels in them, and the audit log."""

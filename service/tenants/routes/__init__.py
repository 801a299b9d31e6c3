"""Workspaces, keys, scopes and the audit log over HTTP."""

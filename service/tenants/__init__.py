"""Workspaces, their keys, scopes and audit log over HTTP."""

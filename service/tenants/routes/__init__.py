"""Routes for workspaces, keys, scopes and the audit log."""

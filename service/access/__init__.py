"""Keys, tokens and the audit log."""

"""Keys, tokens, budgets and the audit log."""

"""Who may do what, and how much of it: keys, tokens, budgets and the audit log."""

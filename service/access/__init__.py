"""Keys, tokens, users, and what a workspace spends on the language model."""

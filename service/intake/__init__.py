"""Adding: one text, a batch, or a conversation whose facts are kept."""

"""The verbs: what can be done with memories, conversations, goals and the rest, each in transactions of its own."""

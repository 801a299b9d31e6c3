"""How does one command start everything? Embedded Postgres, supervisor, first key."""

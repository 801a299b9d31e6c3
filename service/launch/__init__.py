"""Starts everything with one command: embedded Postgres, supervisor, first key."""

"""Loxodon: a memory service for AI agents on one Postgres database with pgvector."""

__version__ = "0.1.0"

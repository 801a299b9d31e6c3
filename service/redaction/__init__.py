"""Redaction of secrets and personal data in texts."""

"""Clients of other systems, unchanged, against the service under their own addresses (docs/coming-from.md)."""

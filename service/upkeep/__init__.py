"""Scheduled work on memories: ageing, promotion, clean-up, re-embedding."""

"""Conversations as callers see them."""

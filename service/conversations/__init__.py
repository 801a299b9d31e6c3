"""Conversations as callers see them: made, read, continued."""

"""Deleting memories, and purging subjects and workspaces with their history."""

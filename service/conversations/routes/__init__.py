"""Routes for conversations and turns."""

"""Routes for deletion."""

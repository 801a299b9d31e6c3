"""Routes for entities and their relations."""

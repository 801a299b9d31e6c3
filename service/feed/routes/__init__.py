"""Routes for the change feed and webhooks."""

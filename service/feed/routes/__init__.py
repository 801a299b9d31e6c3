"""The change feed and webhooks over HTTP."""

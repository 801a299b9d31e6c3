"""Routes for working memory."""

"""Goals, strategies, uses of tools and working memory."""

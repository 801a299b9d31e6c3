"""Goals, tools and strategies, working memory and user profiles."""

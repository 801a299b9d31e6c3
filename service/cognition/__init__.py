"""Goals, tools and strategies, and user profiles."""

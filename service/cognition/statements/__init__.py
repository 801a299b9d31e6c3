"""Goals, strategies, uses of tools and profiles."""

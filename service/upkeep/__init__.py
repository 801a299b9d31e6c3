"""What the clock does to memories: ageing, promotion, clean-up, re-embedding."""

"""What happens to a text before it is written? Open profiles.py first."""

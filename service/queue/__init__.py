"""The durable queue, recurring jobs with their upkeep, and long operations."""

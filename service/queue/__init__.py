"""The durable queue, recurring jobs, and long operations."""

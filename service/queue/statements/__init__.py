"""SQL of jobs, their runs and schedule, and of operations."""

"""Routes for goals, procedures and profiles."""

"""What the `loxodon` command does beside starting the service."""

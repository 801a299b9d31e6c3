"""Subcommands of `loxodon` other than starting the service."""

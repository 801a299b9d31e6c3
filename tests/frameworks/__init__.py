"""The bindings to agent frameworks, with the frameworks themselves, against a running service."""

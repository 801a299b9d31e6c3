"""Bindings to agent frameworks; each module imports its framework, which the extra of the same name installs."""

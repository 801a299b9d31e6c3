"""Errors that stop a start, worded for the person at the terminal."""

from __future__ import annotations

BAD_SETTINGS = 2  # the exit code where a setting cannot be used


class LaunchError(Exception):
    """A start that cannot go on. The message says what to do and is shown without a traceback."""


class PortBusy(LaunchError):
    """Another program listens on the configured port."""

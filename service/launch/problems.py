"""What stops a start, in words for the person at the terminal?"""

from __future__ import annotations


class LaunchError(Exception):
    """A start that cannot go on. The message is for a human and says what to do; no traceback is shown with it."""


class AlreadyRunning(LaunchError):
    """The data folder is in use by a process that lives."""


class PortBusy(LaunchError):
    """Somebody else listens on the port we were told to use."""

"""The clock that validity, expiry and decay take their "now" from, so that tests can set it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)

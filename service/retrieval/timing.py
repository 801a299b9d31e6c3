"""Which stretch of time do a caller's words name? "last week", "in May 2023", "since March"."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from zoneinfo import ZoneInfo

from service.domain.query import EVER, Window
from service.errors import Unavailable
from service.language import temporal
from service.resources import Resources

_DAY = re.compile(r"\s*(?:the\s+)?\d{1,2}(?:st|nd|rd|th)\s*", re.IGNORECASE)
NOT_UNDERSTOOD = "time_query_ignored: no time was understood in time_query."
TOO_SLOW = "time_query_ignored: time_query took too long to read."


async def understood(words: str, reference: datetime, timezone: str, res: Resources) -> tuple[Window, tuple[str, ...]]:
    """The half-open interval (UTC) that the words name, seen from `reference` on the clock of `timezone`; an open one
    and a warning when they name none, as "since my birthday" does."""
    try:
        reading = res.threads.run(read, words, reference, ZoneInfo(timezone))
        found = await asyncio.wait_for(reading, res.settings.temporal_timeout_ms / 1000)
    except (TimeoutError, Unavailable):
        return EVER, (TOO_SLOW,)
    return (EVER, (NOT_UNDERSTOOD,)) if found.is_open else (found, ())


def read(words: str, reference: datetime, zone: ZoneInfo) -> Window:
    """The interval, open at both ends when none is named. A bare "May" is "in May", "the 5th" is "on the 5th"."""
    for said in (words, f"in {words}", *([f"on {words}"] if _DAY.fullmatch(words) else [])):
        start, end = temporal.window(said, reference, zone) or (None, None)
        if start is not None or end is not None:
            return EVER if start is not None and end is not None and start >= end else Window(start, end)
    return EVER

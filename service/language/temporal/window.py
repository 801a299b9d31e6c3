"""The stretch of time that a question about memory asks for.

Questions look back: "in May" is the latest May that has begun, "on Friday" the last Friday, unless the tense says
otherwise ("what am I doing on Friday").
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from service.domain.temporal import TimeMention
from service.language.temporal import calendar
from service.language.temporal.find import find
from service.language.temporal.words import MONTH, NUMBER, WEEKDAY

Window = tuple[datetime | None, datetime | None]

_ROLLING = re.compile(
    rf"(?:the\s+)?(?:(?:last|past|previous)\s+{NUMBER}|past\s+(?!weekend|{WEEKDAY}|{MONTH})|\w+\s+to\s+date)"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SINCE = re.compile(r"\b(?:(?:less|fewer|no(?:t)?\s+more)\s+than|under|within|at\s+most)\s*$")
_BEYOND = re.compile(r"\b(?:(?:more|longer)\s+than|over|at\s+least)\s*$")
WORDS_BEFORE_CHARS = 40
"""What bounds a time ("no more than") stands that near before it."""
_INSTANT = timedelta(hours=1)  # "at 3pm yesterday" asks for the hour
_AND = re.compile(r"[\s,]*(?:and)?\s*")
_HALF = r"(?:\s+and\s+a\s+half)?"
_MONTHS_AWAY = re.compile(
    rf"(?:in\s+)?(?:about\s+|around\s+|another\s+)?{NUMBER}{_HALF}\s*(?P<unit>month|year|decade)s?{_HALF}['\u2019]?"
    r"(?:\s+(?:ago|back|earlier|later|hence|from\s+now|from\s+today|time))?"
)


def window(query: str, reference: datetime, zone: ZoneInfo) -> Window | None:
    """The half-open interval (UTC) that a question asks for; None at an end that is open, None when nothing is
    understood. Several times make one hull; where one is open and follows another, it cuts it ("yesterday after 6pm",
    "since March and before June")."""
    if _YEAR.fullmatch(query.strip()):
        query = f"in {query.strip()}"
    named = [mention for mention in find(query, reference, zone, asked=True) if mention.begins_at or mention.ends_at]
    bounds = [
        _bounds(mention, query[max(0, mention.start - WORDS_BEFORE_CHARS) : mention.start].lower(), reference, zone)
        for mention in named
    ]
    if not bounds:
        return None
    starts, ends = [start for start, _ in bounds if start], [end for _, end in bounds if end]
    if len(starts) == len(ends) == len(bounds):
        return min(starts), max(ends)
    if (
        starts
        and ends
        and max(starts) < min(ends)
        and all(_AND.fullmatch(query[left.end : right.start]) for left, right in pairwise(named))
    ):
        return max(starts), min(ends)
    return min(starts) if len(starts) == len(bounds) else None, max(ends) if len(ends) == len(bounds) else None


def _bounds(mention: TimeMention, before: str, reference: datetime, zone: ZoneInfo) -> Window:
    begins, ends, text = mention.begins_at, mention.ends_at, mention.text.lower()
    if text.endswith("ago"):  # "less than a week ago" starts there, "more than a week ago" ends there
        if text.startswith("less than") or _SINCE.search(before):
            return begins or ends, None
        if _BEYOND.search(before):
            return None, begins or ends
    if begins and (away := _MONTHS_AWAY.fullmatch(text)):  # nobody counts the days of "three months ago"
        unit = "month" if "half" in text or away["unit"] == "month" else "year"
        with suppress(ValueError, OverflowError):  # at the edges of the calendar
            start, end = calendar.period(begins.astimezone(zone).replace(tzinfo=None), unit)
            return start.replace(tzinfo=zone).astimezone(UTC), end.replace(tzinfo=zone).astimezone(UTC)
    if begins and begins == ends:
        return begins, begins + _INSTANT
    if ends and ends <= reference and _ROLLING.match(text):
        ends = reference  # "the last three days" run up to now
    return begins, ends

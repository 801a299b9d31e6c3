"""The stretch of time that a question about memory asks for.

Questions look back: "in May" is the latest May that has begun, "on Friday" the last Friday, unless the tense says
otherwise ("what am I doing on Friday").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service.domain.temporal import Mention
from service.language.temporal import calendar, tense
from service.language.temporal.calendar import Lean
from service.language.temporal.find import mentions
from service.language.temporal.gate import may_have_time
from service.language.temporal.rewording import reworded
from service.language.temporal.words import MONTH, NUMBER, WEEKDAY

Window = tuple[datetime | None, datetime | None]

_AHEAD = re.compile(
    r"\b(?:will|shall|going\s+to|gonna|upcoming|coming\s+up|planned|scheduled|plans?|due|deadlines?|do\s+(?:i|we|you)\s+have"
    r"|(?:am|are|is)\s+(?:i|we|you|he|she|they|it|\w+)\s+\w+ing|need\s+to|have\s+to|should|what['\u2019]s\s+(?:on|next))\b"
)
_ROLLING = re.compile(
    rf"(?:the\s+)?(?:last|past|previous)\s+(?:few|couple|\d|two|three|four|five|six|seven|ten)|past\s+(?!weekend|{WEEKDAY}|{MONTH})|to\s+date"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SINCE = re.compile(r"\b(?:(?:less|fewer|no(?:t)?\s+more)\s+than|under|within|at\s+most)\s*$")
_BEYOND = re.compile(r"\b(?:(?:more|longer)\s+than|over|at\s+least)\s*$")
WORDS_BEFORE_CHARS = 40
"""What bounds a time ("no more than") stands so near before it."""
_WEEK, _YEARS = timedelta(days=7), timedelta(days=366)
_INSTANT = timedelta(hours=1)  # "at 3pm yesterday" asks for the hour
_NEAREST, _FARTHEST = timedelta(minutes=5), timedelta(minutes=30)
_EXACTLY = re.compile(r"\b(?:exactly|precisely)\s+$")
_HOURS_AWAY = re.compile(
    r"\b(?:hour|hr|minute|min|sec|second)s?['\u2019]?\s*(?:ago|back|hence|later|from\s+now|time)?$"
)
_MONTHS_AWAY = re.compile(
    rf"(?:in\s+)?(?:about\s+|around\s+|another\s+)?{NUMBER}\s*(?P<unit>month|year|decade)s?['\u2019]?"
    r"(?:\s+(?:ago|back|earlier|later|hence|from\s+now|from\s+today|time))?"
)


def window(query: str, reference: datetime, zone: ZoneInfo) -> Window | None:
    """The half-open interval (UTC) that a question asks for; None at an end that is open, None when nothing is
    understood. Several times make one hull, "since March" with "before June" their intersection."""
    if _YEAR.fullmatch(query.strip()):
        query = f"in {query.strip()}"
    if not may_have_time(query):
        return None
    query = reworded(query)
    named = [m for m in mentions(query, reference, zone, _leaning, asked=True) if m.begins_at or m.ends_at]
    found = [_ago(m, before) or _bounds(m, before, reference, zone) for m, before in _with_words_before(named, query)]
    if not found:
        return None
    starts, ends = [b for b, e in found if e is None], [e for b, e in found if b is None]
    if len(found) > 1 and len(starts) + len(ends) == len(found) and starts and ends:
        begins, finish = _latest(starts), _latest(ends)
        if begins and finish and begins < finish:
            return begins, finish
    return _hull(found)


def _with_words_before(named: Sequence[Mention], query: str) -> Iterator[tuple[Mention, str]]:
    for each in named:
        yield each, query[max(0, each.start - WORDS_BEFORE_CHARS) : each.start].lower()


def _leaning(sentence: str) -> Callable[[int], Lean]:
    ahead = _AHEAD.search(sentence) is not None
    verbs = tense.leaning(sentence)

    def at(position: int) -> Lean:
        future = ahead or ("?" not in sentence and verbs(position) is Lean.FUTURE)
        return Lean.FUTURE if future else Lean.PAST

    return at


def _ago(mention: Mention, before: str) -> Window | None:
    """ "less than a week ago" starts there, "more than a week ago" ends there; None for any other time."""
    text = mention.text.lower()
    if not text.endswith("ago"):
        return None
    moment = mention.begins_at or mention.ends_at
    if text.startswith("less than") or _SINCE.search(before):
        return moment, None
    return (None, moment) if _BEYOND.search(before) else None


def _bounds(mention: Mention, before: str, reference: datetime, zone: ZoneInfo) -> Window:
    begins, ends = mention.begins_at, mention.ends_at
    text = mention.text.lower()
    try:
        around = _around(text, begins, ends, reference, zone) if begins and not _EXACTLY.search(before) else None
    except (ValueError, OverflowError):  # at the edges of the calendar
        around = None
    if around:
        return around
    if begins and begins == ends:
        return begins, begins + _INSTANT
    if ends and ends <= reference and _ROLLING.search(text):
        ends = max(ends, reference)  # "the last three days" run up to now
    return begins, ends


def _around(text: str, there: datetime, ends: datetime | None, reference: datetime, zone: ZoneInfo) -> Window | None:
    """What "two hours ago" or "in three months" takes in around the moment they name: nobody counts the minutes or
    days. None for any other expression."""
    if away := _MONTHS_AWAY.fullmatch(text):
        return _period(there, "year" if away["unit"] == "decade" else away["unit"], zone)
    if ends != there or not _HOURS_AWAY.search(text):
        return None
    about = min(max(abs(there - reference) / 4, _NEAREST), _FARTHEST)
    return there - about, there + about


def _period(day: datetime, unit: str, zone: ZoneInfo) -> Window:
    """The calendar month or year, on the clock of `zone`, that holds a day."""
    begins, ends = calendar.period(day.astimezone(zone).replace(tzinfo=None), unit)
    return begins.replace(tzinfo=zone).astimezone(UTC), ends.replace(tzinfo=zone).astimezone(UTC)


def _latest(moments: Sequence[datetime | None]) -> datetime | None:
    known = [moment for moment in moments if moment]
    return max(known) if known else None


def _hull(found: Sequence[Window]) -> Window:
    begins = None if any(b is None for b, _ in found) else min(b for b, _ in found if b)
    ends = None if any(e is None for _, e in found) else max(e for _, e in found if e)
    return begins, ends

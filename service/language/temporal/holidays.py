"""Dates of holidays.

The holidays a US-English note-taker names, Easter by the Gregorian computus (Butcher's algorithm). A bare name counts
only behind a preposition or "last", "next", "this", or with a year: a Christmas tree is no date. "Easter weekend" and
"the Christmas holidays" are the days around it, wherever they stand.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar
from service.language.temporal.calendar import Interval, Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, whole
from service.language.temporal.words import YEAR

_FIXED = {
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "xmas": (12, 25),
    "christmas eve": (12, 24),
    "boxing day": (12, 26),
    "new years day": (1, 1),
    "new years eve": (12, 31),
    "new year": (1, 1),
    "new years": (1, 1),
    "halloween": (10, 31),
    "valentines day": (2, 14),
    "independence day": (7, 4),
    "earth day": (4, 22),
    "st patricks day": (3, 17),
    "veterans day": (11, 11),
    "groundhog day": (2, 2),
    "april fools day": (4, 1),
    "labour day": (5, 1),
    "womens day": (3, 8),
}
_NTH = {  # month, weekday, which one (-1: the last), days to add
    "thanksgiving": (11, 3, 4, 0),
    "thanksgiving day": (11, 3, 4, 0),
    "black friday": (11, 3, 4, 1),
    "cyber monday": (11, 3, 4, 4),
    "labor day": (9, 0, 1, 0),
    "memorial day": (5, 0, -1, 0),
    "mothers day": (5, 6, 2, 0),
    "fathers day": (6, 6, 3, 0),
}
_EASTER = {"easter": 0, "easter sunday": 0, "good friday": -2, "easter monday": 1}
_NAMES = (
    r"christmas\s+(?:day|eve)|christmas|xmas|boxing\s+day|new\s+year['\u2019]?s?\s+(?:day|eve)|new\s+years?|halloween"
    r"|valentine['\u2019]?s?\s+day|independence\s+day|earth\s+day|st\.?\s+patrick['\u2019]?s?\s+day|veterans['\u2019]?\s+day"
    r"|groundhog\s+day|april\s+fool['\u2019]?s?['\u2019]?\s+day|thanksgiving(?:\s+day)?|black\s+friday|cyber\s+monday"
    r"|labou?r\s+day|memorial\s+day|(?:mother|father|women)['\u2019]?s['\u2019]?\s+day|good\s+friday|easter(?:\s+(?:sunday|monday))?"
)
_NAMED = rf"\b({_NAMES})\b(?:\s+(weekend|week|holidays?|break|vacation|season)\b)?"
_YULE = ("christmas", "xmas")
TUESDAY, SATURDAY = 1, 5
_OPENED = re.compile(
    r"\b(?:in|on|by|at|for|from|since|until|till|through|before|after|during|over|between|around|of|and|to|is|was)\s+$|^\W*$"
)


def _easter(year: int) -> datetime:
    golden, century = year % 19, year // 100
    epact = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
    offset = epact - (year + year // 4 + epact + 2 - century + century // 4) % 7
    month = 3 + (offset + 40) // 44
    return calendar.date(year, month, offset + 28 - 31 * (month // 4))


def date_of(name: str, year: int) -> datetime:
    """The day a holiday of ours falls on in a year."""
    if name in _EASTER:
        return _easter(year) + timedelta(days=_EASTER[name])
    if name in _FIXED:
        return calendar.date(year, *_FIXED[name])
    month, weekday, nth, more = _NTH[name]
    first, ends = calendar.span_months(year, month, 1)
    if nth < 0:
        last = ends - timedelta(days=1)
        return last - timedelta(days=(last.weekday() - weekday) % 7)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1) + more)


def _key(words: str) -> str:
    name = re.sub(r"\s+", " ", re.sub(r"['\u2019.]", "", words))
    return re.sub(r"^(valentine|new year|april fool|mother|father|st patrick)s? (?=day|eve)", r"\1s ", name)


def in_year(text: str, year: int) -> Interval | None:
    """The days of the holiday that a match of ours names, in that year."""
    name = re.search(_NAMED, text)
    return _days(_key(name[1]), name[2], year) if name else None


def _days(name: str, around: str | None, year: int) -> Interval:
    """The day, or from the first to the last of those `around` it: its week, its weekend with the days between, Good
    Friday to Easter Monday, 24 December to 1 January."""
    day = date_of(name, year)
    if around is None:
        return calendar.day(day)
    if around == "week":
        return calendar.period(day, "week")
    if name in _EASTER:
        return _easter(year) - timedelta(days=2), _easter(year) + timedelta(days=2)
    if name in _YULE and around != "weekend":
        return calendar.date(year, 12, 24), calendar.date(year + 1, 1, 2)
    index = day.weekday()
    saturday = day + timedelta(days=SATURDAY - index if index > TUESDAY else -2 - index)
    return min(day, saturday), max(day, saturday + timedelta(days=1)) + timedelta(days=1)


def _holiday(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    which, words, around, year = match.groups()
    name, unit = _key(words), "week" if around else "day"
    if year:
        return whole(match, _days(name, around, int(year)), unit)
    if not which and not around and not _OPENED.search(scene.before(match.start())):
        return None
    lean = Lean.PAST if which in ("last", "past", "previous") else Lean.FUTURE if which else scene.lean(match.start())
    years = range(scene.now.year - 1, scene.now.year + 2)
    days = [date_of(name, year) for year in years]
    if which == "this":
        return whole(match, _days(name, around, days[1].year), unit)
    behind = [day for day in days if day < scene.today]
    ahead = [day for day in days if day >= scene.today]
    year_of = (behind[-1] if lean is Lean.PAST else ahead[0]).year
    return whole(match, _days(name, around, year_of), unit, sort="holiday")


RULES = (
    Rule(
        rf"(?:(last|past|previous|next|coming|upcoming|this)\s+)?{_NAMED}(?![-\s]+(?:tree|present|gift|card|eggs?|bunny"
        rf"|costume|carol|song|movie|cookie|dinner\s+recipe)s?\b)(?:\s*,?\s+(?:of\s+|in\s+)?({YEAR}))?",
        _holiday,
    ),
)

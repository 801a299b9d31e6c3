"""Dates of holidays.

The holidays a US-English note-taker names, Easter by the Gregorian computus (Butcher's algorithm). A bare name counts
only after a preposition or "last", "next", "this", or with a year, and alone: a Christmas tree is not a date, nor is
"Easter weekend".
"""

from __future__ import annotations

import re
from datetime import datetime

from service.language.temporal import calendar
from service.language.temporal.calendar import DAY, Lean
from service.language.temporal.pieces import RuleTable, TimeMatch, TimePiece

_FIXED = {
    "christmas eve": (12, 24),
    "christmas(?: day)?|xmas": (12, 25),
    "boxing day": (12, 26),
    "new year['\u2019]?s? eve": (12, 31),
    "new year['\u2019]?s?(?: day)?": (1, 1),
    "halloween": (10, 31),
    "valentine['\u2019]?s? day": (2, 14),
    "independence day": (7, 4),
    "earth day": (4, 22),
    "st\\.? patrick['\u2019]?s? day": (3, 17),
    "veterans['\u2019]? day": (11, 11),
    "labour day": (5, 1),
}
_NTH = {  # month, weekday, which one (-1: the last), days to add
    "thanksgiving(?: day)?": (11, 3, 4, 0),
    "black friday": (11, 3, 4, 1),
    "labor day": (9, 0, 1, 0),
    "memorial day": (5, 0, -1, 0),
    "mother['\u2019]?s['\u2019]? day": (5, 6, 2, 0),
    "father['\u2019]?s['\u2019]? day": (6, 6, 3, 0),
}
_EASTER = {"good friday": -2, "easter monday": 1, "easter(?: sunday)?": 0}
_ALL = (*_FIXED, *_NTH, *_EASTER)
_NAMED = rf"(?P<name>{'|'.join(_ALL)})\b"
NAME = re.compile(_NAMED.replace(" ", r"\s+"))
_AT = re.compile(r"\b(?:at|is|was)\s+$|^\W*$")


def _easter(year: int) -> datetime:
    golden, century = year % 19, year // 100
    epact = (century - century // 4 - (8 * century + 13) // 25 + 19 * golden + 15) % 30
    epact -= (epact // 28) * (1 - (29 // (epact + 1)) * ((21 - golden) // 11))
    offset = epact - (year + year // 4 + epact + 2 - century + century // 4) % 7
    month = 3 + (offset + 40) // 44
    return calendar.date(year, month, offset + 28 - 31 * (month // 4))


def date_of(name: str, year: int) -> datetime:
    """The day a holiday of ours falls on in a year."""
    pattern = next(each for each in _ALL if re.fullmatch(each.replace(" ", r"\s+"), name))
    if pattern in _EASTER:
        return _easter(year) + _EASTER[pattern] * DAY
    if pattern in _FIXED:
        return calendar.date(year, *_FIXED[pattern])
    month, weekday, nth, more = _NTH[pattern]
    return calendar.nth_weekday(calendar.span_months(year, month, 1), weekday, nth) + more * DAY


RULES = RuleTable()


@RULES.reads(
    rf"(?:<which> )?\b{_NAMED}(?![-\s]+(?:tree|present|gift|card|eggs?|bunny|costume|carol|song|movie|cookie"
    r"|dinner recipe|weekend|week|holiday|break|vacation|season)s?\b)(?:\s*,? (?:of |in )?<year>)?"
)
def _holiday(at: TimeMatch, name: str, which: int | None = None, year: int | None = None) -> TimePiece | None:
    if year:
        return at.day(date_of(name, year))
    if which is None and not (at.is_opened or at.is_linked or at.follows(_AT)):
        return None
    lean = at.lean if which is None else Lean.PAST if which < 0 else Lean.FUTURE
    days = (calendar.day(date_of(name, year)) for year in range(at.scene.now.year - 1, at.scene.now.year + 2))
    return at.span(*calendar.nearest(days, at.scene.now, lean), "day", sort="holiday")

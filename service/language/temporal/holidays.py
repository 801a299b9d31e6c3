"""On which day does a holiday fall?

The holidays a US-English note-taker names, Easter by the Gregorian computus (Butcher's algorithm). A bare name counts
only behind a preposition or "last", "next", "this", or with a year: a Christmas tree is no date.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Piece, Rule, Scene, whole
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


def in_year(text: str, year: int) -> datetime | None:
    """The day of the holiday that a match of ours names, in that year."""
    name = re.search(_NAMES, text)
    return date_of(_key(name.group()), year) if name else None


def _holiday(scene: Scene, match: re.Match[str]) -> Piece | None:
    which, words, year = match.groups()
    name = _key(words)
    if year:
        return whole(match, calendar.day(date_of(name, int(year))), "day")
    if not which and not _OPENED.search(scene.before(match.start())):
        return None
    lean = Lean.PAST if which in ("last", "past", "previous") else Lean.FUTURE if which else scene.lean(match.start())
    years = range(scene.now.year - 1, scene.now.year + 2)
    days = [date_of(name, year) for year in years]
    if which == "this":
        return whole(match, calendar.day(days[1]), "day")
    behind = [day for day in days if day < scene.today]
    ahead = [day for day in days if day >= scene.today]
    return whole(match, calendar.day(behind[-1] if lean is Lean.PAST else ahead[0]), "day", sort="holiday")


RULES = (
    Rule(
        rf"(?:(last|past|previous|next|coming|upcoming|this)\s+)?\b({_NAMES})\b(?![-\s]+(?:tree|present|gift|card|eggs?|bunny"
        rf"|costume|carol|song|movie|cookie|dinner\s+recipe)s?\b)(?:\s*,?\s+(?:of\s+|in\s+)?({YEAR}))?",
        _holiday,
    ),
)

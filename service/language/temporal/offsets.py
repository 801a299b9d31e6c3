"""Times that lie so many units away from now.

"2 weeks ago", "in half an hour", "three days from now", "the next three days", "within a month". Days and longer units
are counted on the local calendar, hours and minutes in real time. What somebody does "in 52 minutes" is how long it
takes, no time.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from service.language.temporal import calendar, tense, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece, instant, whole
from service.language.temporal.words import HALF, LAST

DAYS = {"today": 0, "tomorrow": 1, "yesterday": -1}

_CLAUSE = 80
"""Characters in which the verb of a clause stands."""

_RECORD = re.compile(
    r"\b(?:(?:first|second|third|only|last)\s+time|(?:best|worst|most|least)(?:\s+\w+){1,3}"
    r"|the\s+(?!(?:guest|interest|forest|request|contest|protest|harvest)\b)\w{2,}est(?:\s+\w+){1,3})\s+$"
)
"""Of "the longest winter in 20 years": the years are those before."""


def counted(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the last three weeks", "2 upcoming months"."""
    count, which, unit = match.group(1), match.group(2), words.unit(match.group(4))
    count = count or match.group(3)
    direction = -1 if re.fullmatch(LAST, which) else 1
    if words.number(count) == 0 or unit == "weekend" or (match.group(3) == "" and not match.group(4).endswith("s")):
        return None  # "13 last minute"
    return counted_range(scene, match, direction, words.number(count), unit)


def counted_range(scene: TimeContext, match: re.Match[str], direction: int, count: int, unit: str) -> TimePiece:
    """So many units before now or after it: whole days, without today, or real time up to now or from now."""
    if unit in calendar.SECONDS_OF:
        other = scene.later(direction * count * calendar.SECONDS_OF[unit])
        begins, ends = (scene.now, other) if direction > 0 else (other, scene.now)
        return TimePiece(*match.span(), "range", begins, ends, unit=unit)
    if direction > 0:
        start = scene.today + timedelta(days=1)
        return TimePiece(*match.span(), "range", start, calendar.shift(start, count, unit), unit="day")
    return TimePiece(*match.span(), "range", calendar.shift(scene.today, -count, unit), scene.today, unit="day")


def _away(scene: TimeContext, match: re.Match[str], direction: int, amount: str, unit: str) -> TimePiece | None:
    """A point so many units away: a day for days and longer, else an instant."""
    unit = words.unit(unit)
    half = re.match(HALF, amount)
    if unit == "weekend" and not half:
        return whole(match, calendar.period(scene.now, unit, direction * words.number(amount)), unit)
    if half and unit not in ("hour", "day", "year"):
        return None
    if unit in calendar.SECONDS_OF or (half and unit == "day"):
        seconds = calendar.SECONDS_OF["hour"] * 12 if unit == "day" else calendar.SECONDS_OF[unit]
        return instant(match, scene.later(direction * (seconds / 2 if half else seconds * words.number(amount))))
    if half:
        return whole(match, calendar.day(calendar.add_months(scene.today, direction * 6)), "day", sort="offset")
    date = calendar.shift(scene.today, direction * words.number(amount), unit)
    return whole(match, calendar.day(date), "day", sort="offset")


def ago(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "2 weeks ago", "three days from now", "a week ago yesterday"."""
    direction = -1 if match.group(3) in ("ago", "back", "earlier") else 1
    piece = _away(scene, match, direction, match.group(1), match.group(2))
    days = timedelta(days=DAYS.get(match.group(4) or "", 0))  # "a week ago yesterday"
    if not piece or not piece.begins or not piece.ends:
        return None
    return replace(piece, begins=piece.begins + days, ends=piece.ends + days)


def ahead(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "in half an hour", "in three days' time"."""
    if _looks_back(scene, match) and not match.group(3):
        return None  # "ran it in 3 hours" is how long it took
    before = scene.before(match.start(), chars=_CLAUSE)
    if _RECORD.search(before):
        return None
    timed = not scene.asked and words.unit(match.group(2)) in calendar.SECONDS_OF
    if timed and tense.tells_how_long(before, scene.lean(match.start())):
        return None
    return _away(scene, match, 1, match.group(1), match.group(2))


def _looks_back(scene: TimeContext, match: re.Match[str]) -> bool:
    """A question leans back of itself: only its verb makes "in 3 hours" a length."""
    if scene.lean(match.start()) is not Lean.PAST:
        return False
    return not scene.asked or _has_past_verb(scene.text)


@lru_cache(maxsize=1)  # a sentence may hold forty such expressions
def _has_past_verb(sentence: str) -> bool:
    return Lean.PAST in tense.verbs(sentence)


def within(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "within a month": from today or from now on."""
    count, unit = words.number(match.group(1)), words.unit(match.group(2))
    if unit == "weekend" or scene.lean(match.start()) is Lean.PAST:
        return None
    if unit in calendar.SECONDS_OF:
        return counted_range(scene, match, 1, count, unit)
    return TimePiece(*match.span(), "range", scene.today, calendar.shift(scene.today, count, unit), unit="day")

"""Weeks named by a number.

"week 12", "calendar week 12 of 2024", "KW 12", "W12/2024", "2024-W12", "2024-W12-3" (its Wednesday), "the 12th week
of 2024", "weeks 12 to 14", "KW 51 bis 2". Weeks are those of ISO 8601: from Monday, the first holds the year's first
Thursday.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, whole
from service.language.temporal.words import LAST, NEXT, YEAR

LATE, EARLY = 40, 12
"""From one of the late weeks to one of the early ones is into the next year."""


def monday(year: int, week: int) -> datetime:
    """The Monday of an ISO week; ValueError for a week that the year has not."""
    return datetime.fromisocalendar(year, week, 1)


def _iso(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    year, week, weekday = match.groups()
    begins = monday(int(year), int(week))
    if weekday:
        return whole(match, calendar.day(begins + timedelta(days=int(weekday) - 1)), "day")
    return whole(match, (begins, begins + timedelta(days=7)), "week")


def _numbered(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """Of no year: a note means the running one, a question that looks back the last such week that has begun."""
    first, last, year, beside = match.groups()
    return _weeks(scene, match, int(first), int(last or first), year, beside)


def _behind_year(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "2023 week 22"."""
    first, last = int(match.group(2)), int(match.group(3) or match.group(2))
    return _weeks(scene, match, first, last, match.group(1), None)


def _counted(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the 12th week of 2024"; "the first week of May" is told by where it lies."""
    index = int(match.group(1))
    return _weeks(scene, match, index, index, match.group(2), match.group(3))


def _weeks(
    scene: TimeContext, match: re.Match[str], first: int, last: int, year: str | None, beside: str | None
) -> TimePiece | None:
    running = scene.now.isocalendar().year
    number = running
    if year:
        number = int(year) if len(year) == 4 else words.short_year(year[-2:], running)
    elif beside:
        number += -1 if re.fullmatch(LAST, beside) else 1 if re.fullmatch(NEXT, beside) else 0
    elif scene.asked and scene.lean(match.start()) is Lean.PAST and monday(number, first) > scene.now:
        number -= 1
    turns = first >= LATE and last <= EARLY
    begins, ends = monday(number, first), monday(number + turns, last) + timedelta(days=7)
    if ends <= begins:
        return None
    return whole(match, (begins, ends), "week" if first == last else "weeks")


_OF = (
    rf"(?:(?:\s+(?:of|in)|\s*[,/]|-)?\s*({YEAR}|'\d\d\b)"
    rf"|\s+(?:of\s+)?(?:the\s+)?(this|current|{LAST}|{NEXT})\s+year\b)"
)
_SPAN = (
    r"(\d\d?)\b(?:(?:\s*(?:-|\u2013|to|through|until|till|bis)\s*|\s+and\s+(?=week|kw))(?:week\s+|kw\s*)?(\d\d?)\b)?"
)
RULES = (
    Rule(r"((?:19|20)\d\d)-?w(\d\d)(?:-?([1-7]))?\b", _iso),
    Rule(rf"({YEAR})[\s,/-]+(?:calendar[\s-]+)?(?:weeks?|kw|cw|wk)\.?\s*{_SPAN}", _behind_year),
    Rule(
        rf"(?:the\s+)?(?:calendar[\s-]+)?weeks?\s+(?:#|no\.?\s*|nr\.?\s*|number\s+)?{_SPAN}(?!\s+of\s+(?!{YEAR}|the\s+year|this|last|next))"
        rf"{_OF}?",
        _numbered,
    ),
    Rule(rf"(?<!\d\s)(?:kw|cw|wk)\.?\s?{_SPAN}{_OF}?", _numbered),
    Rule(rf"w{_SPAN}{_OF}", _numbered),
    Rule(rf"(?:the\s+)?(\d\d?)(?:st|nd|rd|th)\s+(?:calendar\s+)?week\b{_OF}", _counted),
)

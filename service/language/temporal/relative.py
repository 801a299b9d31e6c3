"""Expressions that count from now.

"tomorrow", "last week", "the week after next", "later this month"; for "2 weeks ago" and its likes see offsets.py.
Weeks start on Monday; "last Friday" is the Friday of the week before, "next Friday" that of the week to come.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from service.language.temporal import calendar, offsets, words
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, instant, whole
from service.language.temporal.words import HALF, LAST, MONTH, NEXT, NUMBER, UNIT, WEEKDAY, YEAR

_ORDINAL_OPENER = re.compile(
    r"\b(?:on|by|since|until|till|through|before|after|from|week\s+of|due|starting|between|and|to)\s+$"
)
_OF = re.compile(r"\s+of\s")
_SPOKEN = sorted((w.replace(" ", r"[\s-]") for w in words.DAY_WORDS if re.search(r"(?:st|nd|rd|th)$", w)), key=len)[
    ::-1
]
_LAST_OF = re.compile(
    rf"\s+(?:of|in)\s+(?:the\s+)?(?:{MONTH}|{YEAR}|(?:(?:{LAST}|{NEXT}|this)\s+)?(?:month|quarter|year)\b)"
)
_BARE_WEEKDAY = re.compile(
    r"\b(?:on|by|since|until|till|through|thru|before|after|from|to|between|and|or|for|of|due|starting|every|each)\s+$"
    r"|[-–/,(]\s*$"
)


def _named_day(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    word = match.group(1)
    days = offsets.DAYS.get(word, 1)  # every other spelling is one of tomorrow
    return whole(match, calendar.day(scene.today + timedelta(days=days)), "day", sort="near")


def _day_after(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    days = 2 if match.group(1) == "after tomorrow" else -2
    return whole(match, calendar.day(scene.today + timedelta(days=days)), "day")


def _after_next(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    unit, direction = words.unit(match.group(1)), match.group(2)
    return whole(match, calendar.period(scene.now, unit, 2 if direction == "after next" else -2), unit)


def _period(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "last week", "this past month", "next quarter", "the current year"; shorter units count back from now."""
    which, unit = match.group(1), words.unit(match.group(2))
    offset = -1 if re.fullmatch(LAST, which) else 1 if re.fullmatch(NEXT, which) else 0
    if which == "last" and unit in ("week", "weekend", "month") and _LAST_OF.match(scene.text, match.end()):
        return None  # "the last week of 2023"
    if scene.asked and which.endswith("past") and unit not in ("weekend", *calendar.SECONDS_OF):
        return offsets.counted_range(scene, match, -1, 1, unit)
    if unit in calendar.SECONDS_OF:
        if offset == 0 or (unit != "hour" and _idle(scene, match)):
            return None
        return offsets.counted_range(scene, match, offset, 1, unit)
    if offset and match.group(2).endswith("s") and unit != "weekend":
        return offsets.counted_range(scene, match, offset, words.VAGUE["few"], unit)  # "in the coming weeks"
    if unit == "day" and which not in ("next", "following", "previous"):
        return None  # "the last day", "this day": not a day one can name
    if unit == "weekend" and "coming" in which and calendar.period(scene.now, unit)[1] > scene.now:
        offset = 0
    return whole(match, calendar.period(scene.now, unit, offset), unit)


def _idle(scene: TimeContext, match: re.Match[str]) -> bool:
    """ "a last minute change", "the next second of it"."""
    return bool(re.search(r"(?:\b(?:a|an|at the)|-)\s*$", scene.before(match.start())))


def _the_period(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "for the month", "on the weekend", "for the rest of the week", "year to date"."""
    rest, unit = match.group(1), words.unit(match.group(2))
    begins, ends = calendar.period(scene.now, unit)
    if rest:
        return TimePiece(*match.span(), "range", scene.now if unit == "day" else scene.today, ends, unit=unit)
    if unit == "weekend" and _OF.match(scene.text, match.end()):
        return None  # "the weekend of May 4"
    if unit == "weekend" and scene.lean(match.start()) is Lean.PAST and begins > scene.now:
        begins, ends = calendar.period(scene.now, unit, -1)
    opened = re.search(r"\bfor\s+$|\bin\s+$" if unit == "year" else r"\bfor\s+$", scene.before(match.start()))
    weak = unit != "weekend" and not opened
    return whole(match, (begins, ends), unit, weak=weak)


def _to_date(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    begins, _ = calendar.period(scene.now, words.unit(match.group(1)))
    return TimePiece(*match.span(), "range", begins, scene.today, unit="day")


def _within_period(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "later this week" is the rest of it, "earlier this year" what has passed."""
    unit = "day" if match.group(2) == "today" else match.group(2)
    begins, ends = calendar.period(scene.now, unit)
    if match.group(1) == "later":
        begins = scene.now if unit == "day" else scene.today
    else:
        ends = scene.now if unit == "day" else scene.today
    return TimePiece(*match.span(), "range", begins, ends, unit=unit)


def _weekday(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "Friday", "last Friday", "this coming Friday", "Friday of next week", "next week Wednesday"."""
    which, name = match.group(1), match.group(2)
    index, today = words.weekday(name), scene.today
    if not which:
        weak = len(name) < 6 and not _BARE_WEEKDAY.search(scene.before(match.start()))
        if weak and not scene.raw[match.start()].isupper() and name in ("sat", "sun", "wed", "mon"):
            return None  # "he sat", "the sun", "they wed"
        day = calendar.on_weekday(today, index, scene.lean(match.start()))
        return whole(match, day, "day", weak=weak, sort="weekday")
    if which in ("this past", "past"):
        return whole(match, calendar.on_weekday(today, index, Lean.PAST), "day", sort="fixed weekday")
    if re.fullmatch(r"(?:this\s+)?(?:up)?coming", which):
        return whole(
            match, calendar.on_weekday(today + timedelta(days=1), index, Lean.FUTURE), "day", sort="fixed weekday"
        )
    offset = -1 if re.fullmatch(LAST, which) else 1 if re.fullmatch(NEXT, which) else 0
    monday, _ = calendar.period(today, "week", offset)
    return whole(match, calendar.day(monday + timedelta(days=index)), "day", sort="fixed weekday")


def _weekday_of_week(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    first, which_a, which_b, last = match.groups()
    which, name = which_a or which_b, first or last
    offset = -1 if re.fullmatch(LAST, which) else 1 if re.fullmatch(NEXT, which) else 0
    monday, _ = calendar.period(scene.today, "week", offset)
    return whole(match, calendar.day(monday + timedelta(days=words.weekday(name))), "day", sort="of week")


def _day_of_month(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the 15th of next month", "the 3rd day of this month"."""
    day, which = words.day(match.group(1)), match.group(2)
    offset = -1 if re.fullmatch(LAST, which) else 1 if re.fullmatch(NEXT, which) else 0
    begins, _ = calendar.period(scene.now, "month", offset)
    return whole(match, calendar.day(begins.replace(day=day)), "day")


def _ordinal(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "on the 5th": the next one (or the last); weak without a preposition ("Tuesday the 5th")."""
    alone = match.group().startswith("the") and scene.text.strip(" .?!") == match.group()
    opened = alone or _ORDINAL_OPENER.search(scene.before(match.start()))
    day, lean = words.day(match.group(1)), scene.lean(match.start())
    months = range(0, -12, -1) if lean is Lean.PAST else range(12)
    for offset in months:
        begins, ends = calendar.period(scene.now, "month", offset)
        if day <= (ends - begins).days:
            date = begins.replace(day=day)
            if (date < scene.today) if lean is Lean.PAST else (date >= scene.today):
                return whole(match, calendar.day(date), "day", weak=not opened, sort="ordinal")
    return None


def _deadline(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "EOD" is the last second of today, "EOM" the second half of the month, as "end of the month"."""
    letter = match.group(1) or "d"
    if letter in "db":
        return instant(match, calendar.day(scene.now)[1] - calendar.LAST_SECOND)
    unit = {"w": "week", "m": "month", "q": "quarter", "y": "year"}[letter]
    return whole(match, calendar.part(calendar.period(scene.now, unit), "end", unit), unit)


def _edge(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "end of month", "beginning of the week": a half of the running period; "end of day" its last second."""
    which, unit = match.groups()
    begins, ends = calendar.period(scene.now, unit)
    if unit == "day" and which == "end":
        return replace(instant(match, ends - calendar.LAST_SECOND), unit="end")
    part = calendar.part((begins, ends), {"beginning": "start", "middle": "mid"}.get(which, which), unit)
    return TimePiece(*match.span(), "range", *part, unit="part-of")


def _nth_weekday(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the last Friday of this month", "first Monday of March 2027"."""
    nth, name, which, month, year = match.groups()
    if which:
        offset = -1 if re.fullmatch(LAST, which) else 1 if re.fullmatch(NEXT, which) else 0
        begins, ends = calendar.period(scene.today, "month", offset)
    elif year:
        begins, ends = calendar.span_months(int(year), words.month(month), 1)
    else:
        begins, ends = calendar.yearless(scene.now, words.month(month), None, scene.lean(match.start()))
    first = calendar.midnight(begins)
    first += timedelta(days=(words.weekday(name) - first.weekday()) % 7)
    days = [first + timedelta(days=7 * week) for week in range(5)]
    inside = [day for day in days if day < calendar.midnight(ends)]
    place = -1 if nth == "last" else words.day(nth) - 1
    return whole(match, calendar.day(inside[place]), "day", sort="fixed weekday") if place < len(inside) else None


_REF = rf"(?:this|the\s+same|the\s+current|current|{LAST}|{NEXT})"
RULES = (
    Rule(r"(?:the\s+)?day\s+(after\s+tomorrow|before\s+yesterday)\b", _day_after),
    Rule(r"(?:the\s+)?(week|month|year|quarter|weekend)\s+(after\s+next|before\s+last)\b", _after_next),
    Rule(r"(today|tomorrow|yesterday|tmrw|tmr|tomorow|tommorow|2moro)\b", _named_day),
    Rule(
        rf"(?:(?:on\s+)?({WEEKDAY})\s*,?\s+(?:of\s+)?({_REF})\s+week|({_REF})\s+week\s*,?\s+(?:on\s+)?({WEEKDAY}))\b",
        _weekday_of_week,
    ),
    Rule(
        rf"(?:the\s+)?(first|second|third|fourth|fifth|last|[1-5](?:st|nd|rd|th))\s+({WEEKDAY})\s+(?:of|in)\s+(?:the\s+)?"
        rf"(?:({_REF})\s+month\b|({MONTH})(?:\s*,?\s*(?:of\s+)?({YEAR}))?)",
        _nth_weekday,
    ),
    Rule(rf"(?:the\s+)?({words.DAY})(?:\s+day)?\s+of\s+(?:the\s+)?({_REF})\s+month\b", _day_of_month),
    Rule(r"(later|earlier)\s+(?:in\s+)?(?:this\s+|the\s+)?(today|day|week|month|quarter|year)\b", _within_period),
    Rule(rf"(?:the\s+)?()({LAST}|{NEXT})\s+({NUMBER})\s*({UNIT})", offsets.counted),
    Rule(rf"(?:the\s+)?({NUMBER})\s+({LAST}|{NEXT})()\s+({UNIT})", offsets.counted),
    Rule(rf"(?:the\s+)?({_REF})\s+({UNIT})", _period),
    Rule(r"(?:the\s+)?(week|month|quarter|year)\s+to\s+date\b", _to_date),
    Rule(
        rf"({NUMBER}|{HALF})\s*({UNIT})\s+(ago|back|earlier|later|hence|from\s+now|from\s+today)\b"
        r"(?:\s+(today|tomorrow|yesterday|to\s+the\s+day)\b)?",
        offsets.ago,
    ),
    Rule(
        rf"in\s+(?:about\s+|around\s+|another\s+)?({NUMBER}|{HALF})\s*({UNIT})(['\u2019]?s?['\u2019]?\s+time\b)?(?!\s+of\s)",
        offsets.ahead,
    ),
    Rule(rf"within\s+(?:the\s+)?({NUMBER})\s*({UNIT})(?!\s+of\b)", offsets.within),
    Rule(rf"(?:\b({LAST}|{NEXT}|this)\s+)?({WEEKDAY})", _weekday),
    Rule(r"(?:the\s+)?(rest|remainder)\s+of\s+(?:the|this)\s+(day|week|month|quarter|year)\b", _the_period),
    Rule(
        r"(?:the\s+)?(end|start|beginning|middle)\s+of\s+(?:(?:the|this)\s+)?(day|week|month|quarter|year)"
        r"\b(?!\s+(?:of\b|\d))",
        _edge,
    ),
    Rule(r"the\s+()(day|week|month|quarter|year|weekend)\b(?!['\u2019])", _the_period),
    Rule(r"(?:eo([dbwmqy])|cob|close\s+of\s+business)\b", _deadline),
    Rule(
        rf"(?:the\s+)?((?:(?:3[01]|[12]\d|[1-9])(?:st|nd|rd|th)|{'|'.join(_SPOKEN)})\b)(?!\s+(?:[a-z]+\s+)?(?:floor|of|time|street|st"
        r"|ave|avenue|day|night|morning|evening|afternoon|anniversary|birthday|century|grade|place|attempt|edition|version|generation)\b)(?!-)",
        _ordinal,
    ),
)

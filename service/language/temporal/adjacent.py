"""Times named by their place beside another one.

"the same week last year", "this time two years ago", "the Sunday before last", "two Fridays ago", "Friday week"; and of
"the week after Easter", "the night before May 3", "the Friday before Christmas" the first half, which `join` makes one
expression with the time behind it.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from service.language.temporal import calendar, clock, weeks, words
from service.language.temporal.calendar import Interval, Lean
from service.language.temporal.pieces import Rule, TimeContext, TimePiece, whole
from service.language.temporal.words import LAST, MONTH, NEXT, NUMBER, WEEKDAY

ABOUT = timedelta(days=7)
"""'This time last year' begins and ends so far from the start of that day."""

_GRAINS = ("time", "day", "week", "weekend", "month", "quarter", "year")
_GAP = re.compile(r"\s+(after|following|before|preceding|prior\s+to)\s+(?:the\s+)?")


def _same(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "the same week last year", "this time two years ago", "today last month"."""
    groups = match.groupdict()
    grain, which, unit = groups["grain"] or "day", groups["which"], words.unit(groups["unit"] or groups["units"])
    if unit not in _GRAINS or _GRAINS.index(unit) <= _GRAINS.index(grain):
        return None
    count = words.number(groups["count"]) if groups["count"] else 1
    direction = 1 if which and re.fullmatch(NEXT, which) else -1
    return _grain(scene, match, grain, calendar.shift(scene.today, direction * count, unit), unit)


def _ago_same(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "two years ago this month"."""
    count, unit, grain = words.number(match.group(1)), words.unit(match.group(2)), match.group(3)
    if _GRAINS.index(unit) <= _GRAINS.index(grain):
        return None
    return _grain(scene, match, grain, calendar.shift(scene.today, -count, unit), unit)


def _same_behind(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "last year at this time", "next month on the same day", of a question alone."""
    which, unit, grain = match.groups()
    if not scene.asked or _GRAINS.index(unit) <= _GRAINS.index(grain):
        return None
    direction = 1 if re.fullmatch(NEXT, which) else -1
    return _grain(scene, match, grain, calendar.shift(scene.today, direction, unit), unit)


def _grain(scene: TimeContext, match: re.Match[str], grain: str, there: datetime, unit: str) -> TimePiece:
    if grain == "time" and unit == "year":
        return whole(match, (there - ABOUT, there + ABOUT), "week")
    if grain in ("time", "day"):
        return whole(match, calendar.day(there), "day")
    if grain in ("week", "weekend") and unit == "year":  # the week of the same number
        year, week, _ = scene.now.isocalendar()
        there = weeks.monday(year + there.year - scene.now.year, min(week, 52))
    return whole(match, calendar.period(there, grain), grain)


def _weekday_after_next(scene: TimeContext, match: re.Match[str]) -> TimePiece:
    """ "the Sunday before last", "the Friday after next": a week beyond "last Sunday", "next Friday"."""
    offset = 2 if match.group(2) == "after next" else -2
    return _on(scene, match, offset, words.weekday(match.group(1)))


def _weekdays_away(scene: TimeContext, match: re.Match[str]) -> TimePiece | None:
    """ "two Fridays ago": the second last Friday before today."""
    count, index = words.number(match.group(1)), words.weekday(match.group(2))
    if count == 0:
        return None
    if match.group(3) == "ago":
        begins, _ = calendar.on_weekday(scene.today, index, Lean.PAST)
        return whole(match, calendar.day(begins - timedelta(days=7 * (count - 1))), "day")
    begins, _ = calendar.on_weekday(scene.today + timedelta(days=1), index, Lean.FUTURE)
    return whole(match, calendar.day(begins + timedelta(days=7 * (count - 1))), "day")


def _weekday_week(scene: TimeContext, match: re.Match[str]) -> TimePiece:
    """ "Friday week": a week after the coming Friday, or after today."""
    begins, _ = calendar.on_weekday(scene.today, words.weekday(match.group(1)), Lean.FUTURE)
    return whole(match, calendar.day(begins + timedelta(days=7)), "day")


def _on(scene: TimeContext, match: re.Match[str], week: int, weekday: int) -> TimePiece:
    begins, _ = calendar.period(scene.today, "week", week)
    return whole(match, calendar.day(begins + timedelta(days=weekday)), "day")


def _opening(scene: TimeContext, match: re.Match[str]) -> TimePiece:
    """ "the week" of "the week after Easter": nothing without what follows."""
    return TimePiece(*match.span(), "duration", unit="none", sort="beside", weak=True)


def join(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "the week" + "after" + "Easter": seven days from the next day on; a day, night or weekday is the nearest one."""
    step = _GAP.fullmatch(gap) if a.sort == "beside" else None
    if not step or not b.begins or not b.ends or b.weak or b.unit == "none":
        return None
    name = scene.text[a.start : a.end].split()[-1]
    ends = calendar.day(b.begins)[1] if b.begins == b.ends else b.ends
    kind, interval = _nearest(scene, name, (calendar.midnight(b.begins), ends), after=step.group(1) in _AFTER)
    return TimePiece(a.start, b.end, kind, *interval, unit="day" if kind == "date" else "span")


_SOME = {"days": (7, "day"), "weeks": (4, "week"), "months": (3, "month")}  # "the days before Easter"
_AFTER = ("after", "following")


def _nearest(scene: TimeContext, name: str, there: Interval, *, after: bool) -> tuple[str, Interval]:
    day = there[1] if after else there[0] - timedelta(days=1)
    if name == "day":
        return "date", calendar.day(day)
    if name in words.DAYPARTS:
        return "range", clock.hours(scene, calendar.midnight(day), name)
    if name == "weekend":
        begins, ends = calendar.period(day, name)
        if after and begins < there[1]:
            return "range", calendar.period(day, name, 1)
        return "range", (begins, ends) if after or ends <= there[0] else calendar.period(day, name, -1)
    if name in calendar.FIXED_DAYS or name in calendar.MONTHS_OF:
        length = 1 if after else -1
        other = calendar.shift(there[1] if after else there[0], length, name)
        return "range", (there[1], other) if after else (other, there[0])
    if name in _SOME:
        length, unit = _SOME[name]
        other = calendar.shift(there[1] if after else there[0], length if after else -length, unit)
        return "range", (there[1], other) if after else (other, there[0])
    index = words.weekday(name)
    away = (index - day.weekday()) % 7 if after else -((day.weekday() - index) % 7)
    return "date", calendar.day(day + timedelta(days=away))


_FULL = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_NAMED = (
    r"(?:(?:the\s+)?(?:day|week|weekend|month|quarter|year)"
    rf"|the\s+(?:days|weeks|months|night|evening|morning|afternoon|{_FULL}))\b"
)
RULES = (
    Rule(
        r"(?:(?:(?:the\s+)?same|this)\s+(?P<grain>time|day|week|weekend|month|quarter)|today)\s+(?:of\s+|in\s+)?(?:the\s+)?"
        rf"(?:(?P<which>{LAST}|{NEXT})\s+(?P<unit>week|month|quarter|year)\b"
        rf"|(?P<count>{NUMBER})\s+(?P<units>(?:week|month|quarter|year)s?)\s+ago\b)",
        _same,
    ),
    Rule(
        r"(a|an|\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)\s+((?:week|month|quarter|year)s?)"
        r"\s+ago\s+(?:at\s+)?(?:this|the\s+same)\s+(time|day|week|weekend|month|quarter)\b",
        _ago_same,
    ),
    Rule(
        rf"({LAST}|{NEXT})\s+(week|month|quarter|year)\s*,?\s+(?:(?:at|around|about|on|in)\s+)?(?:this|(?:the\s+)?same)\s+"
        r"(time|day|week|weekend|month|quarter)\b",
        _same_behind,
    ),
    Rule(rf"(?:the\s+)?({WEEKDAY})\s+(after\s+next|before\s+last)\b", _weekday_after_next),
    Rule(rf"({NUMBER})\s+({_FULL})s\s+(ago|from\s+now|hence)\b", _weekdays_away),
    Rule(rf"({_FULL})\s+week\b(?!\s*[\d-])(?=\s*(?:$|[?.!,;]))", _weekday_week),
    Rule(
        rf"{_NAMED}(?=\s+(?:(?:after|following)\s+(?!next\b|that\b)"
        rf"|(?:before|preceding|prior\s+to)\s+(?!that\b|last\b(?!\s+(?:{MONTH}|christmas|easter|thanksgiving)))))",
        _opening,
    ),
)

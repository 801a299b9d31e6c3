"""Joins neighbouring pieces into one expression.

"Tue" + "May 9" + "at" + "3pm" is one moment, "from May" + "to June 2020" one range, whose ends lend each other the
year, the week, am or pm; the last unit belongs to it. "A week" + "from" + "Friday" is a day. Each pass goes
over the pieces once and joins two neighbours by the first of its rules that fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from service.language.temporal import calendar, clock, tense
from service.language.temporal.calendar import DAY, SECONDS_OF, WEEK, Interval, Lean
from service.language.temporal.pieces import TimeContext, TimePiece

MAX_GAP_CHARS = 24

_AT = re.compile(r"\s*[,(-]?\s*(?:at|@|around|about|in\s+the|on|of|the|for\s+(?=\d))?\s*")
_COMMA = re.compile(r"\s*[,(-]?\s*(?:on\s+|the\s+)?")
_IN = re.compile(r"\s*,?\s+(?:in|on|at|around|during)\s+(?:the\s+)?|(?:['\u2019]s)?\s+(?:of\s+)?")
_IN_YEAR = re.compile(r"\s*,?\s*(?:in|of)?\s*")
_OFFSET = re.compile(r"\s*(from|after|before)\s+")
_STARTING = re.compile(r"\s*(?:starting|beginning|commencing)\s+(?:from\s+|on\s+)?")
_TO = re.compile(r"\s*(?:-|–|—|~|\b(?:up\s+to|to|until|till?|through|thru|and)\b)\s*(?:the\s+)?")
_FROM = re.compile(r"\b(?:from|between)\s+(?:the\s+)?$")
_SHIFTED = re.compile(rf"\b{tense.SHIFTS}(?:e|p?ed|p?ing|e?s)?\b(?:(?!\b(?:in|on|to)\b)[^,;])*\bfrom\s+(?:the\s+)?$")
_CLOSED = re.compile(r"\s*(?:$|[.,;:!?)]|(?:on|in\s+the|every|today|tomorrow|tonight|this|each|with|for|and)\b)")
_HALF_A_DAY = timedelta(hours=12)

Join = Callable[[TimeContext, TimePiece, TimePiece, str], "TimePiece | None"]


def join(scene: TimeContext, pieces: Iterable[TimePiece]) -> list[TimePiece]:
    """Whole expressions from pieces."""
    pieces_left = list(pieces)
    for joins in _PASSES:
        done: list[TimePiece] = []
        for piece in pieces_left:
            joined = _join(scene, done[-1], piece, joins) if done else None
            if joined:
                done[-1] = joined
            else:
                done.append(piece)
        pieces_left = done
    return pieces_left


def _join(scene: TimeContext, a: TimePiece, b: TimePiece, joins: tuple[Join, ...]) -> TimePiece | None:
    gap = scene.text[a.end : b.start]
    try:
        return (
            next((it for each in joins if (it := each(scene, a, b, gap))), None) if len(gap) < MAX_GAP_CHARS else None
        )
    except (ValueError, OverflowError):  # February 30, the year 12000
        return None


# -- days --------------------------------------------------------------------------------------------------------------


def _dates(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """Joins "Tue May 9", "tomorrow, Friday", "Friday the 13th", "Monday two weeks from now": one day named twice."""
    if a.kind != "date" or b.kind != "date" or not _COMMA.fullmatch(gap):
        return None
    for day, other in ((a, b), (b, a)):
        if "weekday" in day.sort and "weekday" not in other.sort and other.sort != "holiday":
            return replace(_on_weekday(scene, day, other), start=a.start, end=b.end, weak=False)
    return replace(b, start=a.start, end=b.end) if a.sort == "near" and not b.sort else None


def _on_weekday(scene: TimeContext, weekday: TimePiece, other: TimePiece) -> TimePiece:
    """The date that a weekday goes with: in the year or month where they agree, or in the week of "in two weeks"."""
    index, date = weekday.bounds[0].weekday(), other.bounds[0]
    if other.sort == "offset" and weekday.sort == "weekday":
        date = calendar.period(date, "week")[0] + index * DAY
        return replace(other, begins=date, ends=date + DAY)
    if other.partial or other.sort == "ordinal":
        step = 12 if other.partial else 1
        dates = [calendar.add_months(date, step * n) for n in sorted(range(-6, 7), key=abs)]
        agreeing = [d for d in dates if d.weekday() == index and d.day == date.day]
        recent = scene.today - 60 * DAY  # a plan may name a day that has just passed, not one of last year
        if agreeing and not (other.partial and scene.lean(weekday.start) is Lean.FUTURE and agreeing[0] < recent):
            return replace(other, begins=agreeing[0], ends=agreeing[0] + DAY, partial=None, sort="")
    return replace(other, sort="")


def _year(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """Joins "26 June to 28 June in 2020", "Christmas last year", "last year in March"."""
    start, end = a.start, b.end
    if a.unit == "year" and b.unit != "year" and _IN.fullmatch(gap):
        a, b, gap = b, a, " "
    if b.unit != "year" or b.kind != "range" or b.begins is None:
        return None
    return replace(_in(a, b.begins.year), start=start, end=end) if a.partial and _IN_YEAR.fullmatch(gap) else None


def _in(piece: TimePiece, year: int) -> TimePiece:
    begins, ends = piece.bounds
    months = 12 * (year - begins.year)
    begins, ends = calendar.add_months(begins, months), calendar.add_months(ends, months)
    return replace(piece, begins=begins, ends=ends, partial=None, weak=False)


# -- hours -------------------------------------------------------------------------------------------------------------


def _hours(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """A day and a time of day, in either order; a time of day and the part of the day it falls in."""
    if not _AT.fullmatch(gap) and not (a.kind == "date" and b.clock and gap.split() == ["from"]):
        return None
    if b.unit == "part" and not b.begins and a.clock:  # "at 7 in the evening", also "yesterday at 7 in the evening"
        if a.kind == "time":
            return replace(a, end=b.end, clock=clock.sharp(scene, a, b.daypart), meridiem=True, weak=False)
        hour, minute = clock.afternoon(a.clock[0] % 12 or 12, a.clock[1], b.daypart)
        moment = a.bounds[0].replace(hour=hour, minute=minute)
        return None if a.meridiem else replace(a, end=b.end, begins=moment, ends=moment, meridiem=True)
    for day, hours in ((a, b), (b, a)):
        is_part = day.unit == "part" and day.begins is not None
        if (is_part or day.kind == "date") and hours.kind == "time" and hours.begins:
            return _shift(day, hours, a.start, b.end)
        if (is_part and hours.clock) or (day.kind == "date" and hours.kind == "time"):
            return _at(scene, day, hours, a.start, b.end)
    return None


def _at(scene: TimeContext, day: TimePiece, time: TimePiece, start: int, end: int) -> TimePiece:
    date = calendar.midnight(day.bounds[0])
    if time.clock is None:
        begins, ends = clock.hours(scene, date, time.daypart or "morning")
        return TimePiece(start, end, "range", begins, ends, unit="part", daypart=time.daypart)
    hour, minute = clock.sharp(scene, time, day.daypart)
    moment = date.replace(hour=hour, minute=minute)
    if hour < clock.NIGHT_RUNS_TO and day.daypart not in (None, "morning"):  # "tonight at 12", "last night at 2"
        moment += DAY
    meridiem = time.meridiem or day.daypart is not None
    return TimePiece(start, end, "datetime", moment, moment, unit="minute", clock=(hour, minute), meridiem=meridiem)


def _shift(day: TimePiece, hours: TimePiece, start: int, end: int) -> TimePiece:
    """A range of hours, resolved on some day, moved to the named one: "this evening from 7 to 7:30"."""
    begins, ends = hours.bounds
    days = calendar.midnight(day.bounds[0]) - calendar.midnight(begins)
    if day.daypart not in (None, "morning") and not hours.meridiem and ends.hour < 12:
        days += _HALF_A_DAY
    return TimePiece(start, end, "range", begins + days, ends + days, unit="minute")


# -- lengths -----------------------------------------------------------------------------------------------------------


def _lengths(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """Joins "a week from Friday", "a week starting tomorrow"."""
    if a.amount and b.begins and b.kind in ("date", "datetime"):
        if step := _OFFSET.fullmatch(gap):
            return _offset(scene, a.amount, b, -1 if step[1] == "before" else 1, a.start)
        if _STARTING.fullmatch(gap):
            return TimePiece(a.start, b.end, "range", b.begins, _add(scene, b.begins, a.amount, 1), unit=b.unit)
    return None


def _offset(scene: TimeContext, amount: tuple[float, str], b: TimePiece, direction: int, start: int) -> TimePiece:
    moment = _add(scene, b.bounds[0], amount, direction)
    if amount[1] == "weekend":
        return TimePiece(start, b.end, "range", *calendar.period(moment, "weekend"), unit="weekend")
    ends = moment if b.kind == "datetime" else calendar.day(moment)[1]
    return TimePiece(start, b.end, b.kind, moment, ends, unit=b.unit, sort="offset")


def _add(scene: TimeContext, moment: datetime, amount: tuple[float, str], direction: int) -> datetime:
    count, unit = calendar.in_whole_units(*amount)
    if unit in SECONDS_OF:
        return scene.later(direction * count * SECONDS_OF[unit], moment)
    return calendar.shift(moment, direction * count, unit)


# -- ranges ------------------------------------------------------------------------------------------------------------


def _between(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """Joins "from May to June 2020", "3-5pm", "between Monday and Friday", "tomorrow 3pm until 5pm", "May to now"."""
    opener = _FROM.search(scene.before(a.start))
    if opener and not scene.asked and _SHIFTED.search(scene.before(a.start, 80)):
        return None  # "moved from Monday to Friday"
    if not _TO.fullmatch(gap) or ("and" in gap.split() and not (opener and "between" in opener[0])):
        return None
    start = a.start - len(opener[0]) if opener else a.start
    if (a.clock or a.unit == "now") and b.clock:
        return _clock_range(scene, a, b, start)
    if a.begins is None or b.ends is None or a.unit == "span" or "decade" in (a.unit, b.unit):
        return None
    if (b.unit == "now" or b.sort == "near") and a.begins < scene.today == b.begins:  # a record goes up to today
        return TimePiece(start, b.end, "range", a.begins, None if scene.asked else scene.today)
    if (a.weak and b.weak and not opener and not (a.partial and b.partial)) or b.unit == "now":
        return None
    begins, ends = _agree(scene, a, b)
    partial = a.partial if a.partial and b.partial else None
    return TimePiece(start, b.end, "range", begins, ends, unit="span", partial=partial) if begins < ends else None


def _clock_range(scene: TimeContext, a: TimePiece, b: TimePiece, start: int) -> TimePiece | None:
    """Two times of day, where the first learns am or pm from the second: "3-5pm", "9.30-4.30pm"."""
    dated = bool(a.begins or b.begins)
    if a.weak and b.weak and not dated and (start == a.start or not _CLOSED.match(scene.text, b.end)):
        return None
    first, last = clock.sharp(scene, a, None), clock.sharp(scene, b, None)
    if a.clock and not a.meridiem and b.meridiem:
        hour, minute = a.clock
        first = max((t for t in ((hour % 12, minute), (hour % 12 + 12, minute)) if t < last), default=first)
    day = calendar.midnight(a.begins or b.begins or scene.today)
    begins, ends = (day.replace(hour=hour, minute=minute) for hour, minute in (first, last))
    if a.unit == "now":  # "between now and 8"
        begins = scene.now
    if ends <= begins:
        ends += _HALF_A_DAY if not b.meridiem and ends + _HALF_A_DAY > begins else DAY
    sure = a.meridiem and b.meridiem
    kind = "range" if dated else "time"
    return TimePiece(start, b.end, kind, begins, ends, unit="minute", clock=None if dated else first, meridiem=sure)


def _agree(scene: TimeContext, a: TimePiece, b: TimePiece) -> Interval:
    """The bounds of a range whose ends lend each other the year or the week; the last unit is part of it."""
    (begins, _), (last, ends) = a.bounds, b.bounds
    if a.partial and not b.partial:
        month, day = a.partial
        begins = calendar.date(last.year - ((month, day or 1) > (last.month, last.day)), month, day or 1)
    elif a.partial and b.partial:
        over = (b.partial[0], b.partial[1] or 31) < (a.partial[0], a.partial[1] or 1)
        years = begins.year - last.year + over
        if scene.lean(a.start) is Lean.PAST:
            ends = calendar.add_months(ends, 12 * years)
        else:
            begins = calendar.add_months(begins, -12 * years)
    elif a.sort == "weekday" and (ends <= begins or b.sort == "of week"):  # "from Monday to Wednesday last week"
        begins = last - (last.weekday() - begins.weekday()) % 7 * DAY
    elif "weekday" in b.sort and ends <= begins:
        ends += ((begins - ends).days // 7 + 1) * WEEK
    return begins, ends


_PASSES: tuple[tuple[Join, ...], ...] = (
    (_dates, _hours),
    (_between,),
    (_hours, _lengths, _year, _dates),
)

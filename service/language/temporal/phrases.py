"""Joins neighbouring pieces into one expression.

"Tue" + "May 9" + "at" + "3pm" is one moment, "from May" + "to June 2020" one range, "until" + "Friday" an end.
Three passes over the pieces: join a day with its hours, join two ends to a range, apply the words in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from service.language.temporal import adjacent, calendar, clock, holidays, ranges
from service.language.temporal.calendar import Lean
from service.language.temporal.pieces import TimeContext, TimePiece
from service.language.temporal.words import LAST, NEXT, WEEKDAY

_AT = re.compile(r"\s*[,(-]?\s*(?:at|@|around|about|from|in\s+the|on|of|the|between|for\s+(?=\d))?\s*")
_COMMA = re.compile(r"\s*[,(-]?\s*(?:on\s+|the\s+)?")
_LIMIT = re.compile(r"\s*,?\s+(by|before|after|until|till|from)\s+")
_ON = re.compile(r"\s*,?\s+(?:on\s+)?")
_IN = re.compile(r"\s*,?\s+(?:in|on|at|around|during)\s+(?:the\s+)?|(?:['\u2019]s)?\s+(?:of\s+)?")
_WEEKDAY_FIRST = re.compile(rf"{WEEKDAY}\s+\w")
_BESIDE_THIS = re.compile(rf"(?:the\s+)?(?:{LAST}|{NEXT})\b")
_OFFSET = re.compile(r"\s*(from|after|before)\s+")
_LASTING = re.compile(r"\s*,?\s*(?:for|lasting)\s+(?:about\s+|the\s+)?")
_STARTING = re.compile(r"\s*(?:starting|beginning|commencing)\s+(?:from\s+|on\s+)?")

Join = Callable[[TimeContext, TimePiece, TimePiece, str], "TimePiece | None"]


def join(scene: TimeContext, pieces: Iterable[TimePiece]) -> list[TimePiece]:
    """Whole expressions from pieces; weak ones that found no partner are left out."""
    found = list(pieces)
    for joins in (
        (ranges.hours,),
        (_dates, _day_of_month, _hours),
        (_hours, _sets),
        (ranges.between, _year),
        (_hours, _lengths, adjacent.join, _in_week, _year),
        (_dates,),
    ):
        found = _pass(scene, _listed(scene, found), joins)
    return [ranges.to_now(scene, p) for p in found]


def _listed(scene: TimeContext, pieces: list[TimePiece]) -> list[TimePiece]:
    """ "in 2007 and 2009": what is listed behind a sure year is one too; "last Thursday and Friday": in one week."""
    for index in range(1, len(pieces)):
        a, b = pieces[index - 1], pieces[index]
        listed = re.fullmatch(r"\s*(?:,|and|or|&|vs\.?|,\s*and)\s*", scene.text[a.end : b.start])
        if listed and b.weak and b.unit == a.unit == "year" and not a.weak:
            pieces[index] = replace(b, weak=False)
        elif listed and a.sort == "fixed weekday" and b.sort == "weekday" and a.begins and b.begins:
            day = a.begins + timedelta(days=(b.begins - a.begins).days % 7)
            pieces[index] = replace(b, begins=day, ends=calendar.day(day)[1], sort="fixed weekday", weak=False)
        elif listed and a.sort == "weekday" and b.sort == "of week" and a.begins and b.begins:
            day = calendar.period(b.begins, "week")[0] + timedelta(days=a.begins.weekday())
            pieces[index - 1] = replace(a, begins=day, ends=calendar.day(day)[1], sort="of week", weak=False)
    return pieces


def _pass(scene: TimeContext, pieces: list[TimePiece], joins: tuple[Join, ...]) -> list[TimePiece]:
    done: list[TimePiece] = []
    for piece in pieces:
        if done:
            gap = scene.text[done[-1].end : piece.start]
            merged = next((m for j in joins if (m := _safely(j, scene, done[-1], piece, gap))), None)
            if merged:
                done[-1] = merged
                continue
        done.append(piece)
    return done


def _safely(join_two: Join, scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    try:
        return join_two(scene, a, b, gap) if len(gap) < 24 else None
    except (ValueError, OverflowError):
        return None


def _dates(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "Tue May 9", "tomorrow, Friday", "Friday the 13th", "Monday two weeks from now": one day named twice."""
    if a.kind != "date" or b.kind != "date" or not _COMMA.fullmatch(gap):
        return None
    for day, other in ((a, b), (b, a)):
        if "weekday" in day.sort and "weekday" not in other.sort and other.sort != "holiday":
            return replace(_on_weekday(scene, day, other), start=a.start, end=b.end, weak=False)
    return replace(b, start=a.start, end=b.end) if a.sort == "near" and not b.sort else None


def _day_of_month(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "last month on the 20th", "the 20th last month"."""
    for month, day in ((a, b), (b, a)):
        if month.unit == "month" and month.begins and day.sort == "ordinal" and day.begins and _ON.fullmatch(gap):
            date = month.begins.replace(day=day.begins.day)
            return TimePiece(a.start, b.end, "date", *calendar.day(date))
    return None


def _on_weekday(scene: TimeContext, weekday: TimePiece, other: TimePiece) -> TimePiece:
    """The date that a weekday goes with: in the year or month where they agree, or in the week of "in two weeks"."""
    assert weekday.begins
    assert other.begins
    index = weekday.begins.weekday()
    if other.sort == "offset" and weekday.sort == "weekday":
        date = calendar.period(other.begins, "week")[0] + timedelta(days=index)
        return replace(other, begins=date, ends=calendar.day(date)[1])
    if other.partial or other.sort == "ordinal":
        step = 12 if other.partial else 1
        dates = [calendar.add_months(other.begins, step * n) for n in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)]
        limit = timedelta(days=550)
        agreeing = [
            d for d in dates if d.weekday() == index and d.day == other.begins.day and abs(d - scene.today) < limit
        ]
        recent = scene.today - timedelta(days=60)  # a plan may name a day that has just passed, not one of last year
        if agreeing and not (other.partial and scene.lean(weekday.start) is Lean.FUTURE and agreeing[0] < recent):
            return replace(other, begins=agreeing[0], ends=calendar.day(agreeing[0])[1], partial=None, sort="")
    return replace(other, sort="")


def _in_week(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "on Saturday night last week"."""
    if b.unit != "week" or not b.begins or not a.begins or not a.ends or gap.strip(" ,"):
        return None
    if not _WEEKDAY_FIRST.match(scene.text, a.start) or not _BESIDE_THIS.match(scene.text, b.start):
        return None
    days = calendar.midnight(b.begins) + timedelta(days=a.begins.weekday()) - calendar.midnight(a.begins)
    return replace(a, end=b.end, begins=a.begins + days, ends=a.ends + days, sort="")


def _year(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "26 June to 28 June in 2020", "Christmas last year", "last year in March"."""
    if a.unit == "year" and b.unit != "year" and _IN.fullmatch(gap):
        a, b, gap, start, end = b, a, " ", a.start, b.end
    else:
        start, end = a.start, b.end
    if b.unit != "year" or b.kind != "range" or b.begins is None or a.begins is None or a.ends is None:
        return None
    if a.sort == "holiday" and _IN.fullmatch(gap):
        days = holidays.in_year(scene.text[a.start : a.end], b.begins.year)
        return replace(a, start=start, end=end, begins=days[0], ends=days[1], sort="") if days else None
    if a.partial and re.fullmatch(r"\s*,?\s*(?:in|of)?\s*", gap):
        months = 12 * (b.begins.year - a.begins.year)
        begins, ends = calendar.add_months(a.begins, months), calendar.add_months(a.ends, months)
        return replace(a, start=start, end=end, begins=begins, ends=ends, partial=None, weak=False)
    return None


def _hours(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """A day and a time of day, in either order; a time of day and the part of the day it falls in."""
    if a.kind == "date" and b.kind == "time":
        limit = _LIMIT.fullmatch(gap)
        if limit and limit.group(1) != "from" and b.clock:
            return _limited(scene, a, _at(scene, a, b), limit.group(1))
        return _at(scene, a, b) if _AT.fullmatch(gap) or limit else None
    if a.unit == "part" and a.begins and b.clock and (limit := _LIMIT.fullmatch(gap)) and scene.asked:
        moment = _at_part(scene, a, b, a.start, b.end)
        return _limited(scene, a, moment, limit.group(1)) if limit.group(1) != "from" else None
    if not _AT.fullmatch(gap):
        return None
    if a.kind == "datetime" and a.clock and not a.meridiem and b.unit == "part" and b.daypart and not b.begins:
        return _told_apart(a, b)
    if a.kind == "time" and b.kind == "date":
        return _at(scene, b, a, start=a.start, end=b.end)
    if a.unit == "part" and a.begins and b.kind == "range" and b.clock:
        return _shifted(a, _evening(b, a.daypart), a.start, b.end)
    if a.unit == "part" and a.begins and b.clock:
        return _at_part(scene, a, b, a.start, b.end)
    if a.clock and b.unit == "part" and b.begins:
        return _at_part(scene, b, a, a.start, b.end)
    if a.clock and b.unit == "part":
        return replace(a, end=b.end, clock=clock.sharp(scene, a, b.daypart), meridiem=True, weak=False)
    if a.kind == "date" and b.kind == "range" and b.clock:
        return _shifted(a, b, a.start, b.end)
    if a.kind == "range" and a.clock and b.kind == "date":
        return _shifted(b, a, a.start, b.end)
    return None


def _at(
    scene: TimeContext, date: TimePiece, time: TimePiece, start: int | None = None, end: int | None = None
) -> TimePiece | None:
    assert date.begins
    start, end = date.start if start is None else start, time.end if end is None else end
    if time.clock is None:
        begins, ends = clock.hours(scene, date.begins, time.daypart or "morning")
        return TimePiece(start, end, "range", begins, ends, unit="part", daypart=time.daypart)
    hour, minute = clock.sharp(scene, time, time.daypart)
    moment = date.begins.replace(hour=hour, minute=minute)
    if not date.begins <= moment < date.begins + timedelta(days=1):
        return None
    return TimePiece(
        start, end, "datetime", moment, moment, unit="minute", clock=(hour, minute), meridiem=time.meridiem
    )


def _at_part(scene: TimeContext, part: TimePiece, time: TimePiece, start: int, end: int) -> TimePiece:
    assert part.begins
    hour, minute = clock.sharp(scene, time, part.daypart)
    moment = part.begins.replace(hour=hour, minute=minute)
    if hour < clock.NIGHT_RUNS_TO and part.daypart != "morning":  # "tonight at 12", "last night at 2"
        moment += timedelta(days=1)
    return TimePiece(start, end, "datetime", moment, moment, unit="minute", clock=(hour, minute))


def _told_apart(a: TimePiece, b: TimePiece) -> TimePiece:
    """ "yesterday at 7 in the evening"."""
    assert a.begins
    assert a.clock
    hour, minute = clock.afternoon(a.clock[0] % 12 or 12, a.clock[1], b.daypart)
    moment = a.begins.replace(hour=hour, minute=minute)
    return replace(a, end=b.end, begins=moment, ends=moment, clock=(hour, minute), meridiem=True)


def _limited(scene: TimeContext, date: TimePiece, moment: TimePiece | None, word: str) -> TimePiece | None:
    """ "yesterday after 6pm": a question means the rest of that day, a note what holds from then on."""
    if moment is None:
        return None
    if word == "after":
        return replace(moment, kind="range", ends=date.ends if scene.asked else None, clock=None)
    return replace(moment, kind="range", begins=date.begins if scene.asked else None, clock=None)


def _shifted(date: TimePiece, hours: TimePiece, start: int, end: int) -> TimePiece:
    """A range of hours, resolved on some day, moved to the named one."""
    assert date.begins
    assert hours.begins
    assert hours.ends
    days = calendar.midnight(date.begins) - calendar.midnight(hours.begins)
    return TimePiece(start, end, "range", hours.begins + days, hours.ends + days, unit="minute")


def _evening(hours: TimePiece, daypart: str | None) -> TimePiece:
    """ "this evening from 7 to 7:30"."""
    assert hours.begins
    assert hours.ends
    if hours.meridiem or daypart == "morning" or hours.begins.hour >= 12:
        return hours
    half = timedelta(hours=12)
    return replace(
        hours, begins=hours.begins + half, ends=hours.ends + (half if hours.ends.hour < 12 else timedelta(0))
    )


def _sets(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "every Monday at 9", "9am every day"."""
    pair = {a.kind, b.kind}
    if "set" in pair and "time" in pair | {a.unit} and _AT.fullmatch(gap):
        return TimePiece(a.start, b.end, "set", unit="none")
    return None


def _lengths(scene: TimeContext, a: TimePiece, b: TimePiece, gap: str) -> TimePiece | None:
    """ "a week from Friday", "tomorrow at 3pm for two hours", "a week starting tomorrow"."""
    if a.amount and b.begins and b.kind in ("date", "datetime"):
        if step := _OFFSET.fullmatch(gap):
            return _offset(scene, a, b, -1 if step.group(1) == "before" else 1)
        if _STARTING.fullmatch(gap):
            return TimePiece(a.start, b.end, "range", b.begins, _add(scene, b.begins, a.amount, 1), unit=b.unit)
    if b.amount and a.begins and a.kind in ("date", "datetime") and _LASTING.fullmatch(gap):
        return TimePiece(a.start, b.end, "range", a.begins, _add(scene, a.begins, b.amount, 1), unit=a.unit)
    return None


def _offset(scene: TimeContext, a: TimePiece, b: TimePiece, direction: int) -> TimePiece:
    assert a.amount
    assert b.begins
    moment = _add(scene, b.begins, a.amount, direction)
    if a.amount[1] == "weekend":
        return TimePiece(a.start, b.end, "range", *calendar.period(moment, "weekend"), unit="weekend")
    if a.amount[1] in calendar.SECONDS_OF:
        return TimePiece(a.start, b.end, "datetime", moment, moment, unit="minute")
    ends = moment if b.kind == "datetime" else calendar.day(moment)[1]
    return TimePiece(a.start, b.end, b.kind, moment, ends, unit=b.unit, sort="offset")


def _add(scene: TimeContext, moment: datetime, amount: tuple[float, str], direction: int) -> datetime:
    count, unit = amount
    if unit in calendar.SECONDS_OF:
        return scene.local(scene.utc(moment) + timedelta(seconds=direction * count * calendar.SECONDS_OF[unit]))
    if count != int(count):
        return (
            calendar.add_months(moment, direction * 6) if unit == "year" else moment + timedelta(hours=12 * direction)
        )
    return calendar.shift(moment, direction * int(count), unit)

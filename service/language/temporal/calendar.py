"""Days of a week, a quarter, a season, and the choice between two years.

Pure arithmetic on naive local datetimes; intervals are half-open. Raises ValueError or OverflowError for a day
that does not exist or lies beyond year 9999; callers drop such an expression.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum

Interval = tuple[datetime, datetime]

DAY, WEEK = timedelta(days=1), timedelta(days=7)
FIXED_DAYS = {"day": 1, "week": 7, "fortnight": 14, "weekend": 7}
"""Days from the beginning of a unit to that of the next one."""

MONTHS_OF = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120}
SECONDS_OF = {"second": 1, "minute": 60, "hour": 3600}
LAST_SECOND = timedelta(seconds=1)
_SMALLER = {"hour": (60, "minute"), "day": (24, "hour"), "week": (7, "day"), "year": (12, "month")}


class Lean(Enum):
    """The direction in time that the text gives a date without a year: "Friday" is the last one, the next one, or
    either."""

    PAST = -1
    NONE = 0
    FUTURE = 1


def date(year: int, month: int, day: int = 1) -> datetime:
    """Midnight of that day on the wall clock, naive on purpose: the zone is applied once, at the end."""
    return datetime(year, month, day)  # noqa: DTZ001


def midnight(moment: datetime) -> datetime:
    """The start of that day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def add_months(moment: datetime, months: int) -> datetime:
    """The same day `months` later, cut to the month's length (January 31 + 1 = February 28 or 29)."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 28
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def in_whole_units(count: float, unit: str) -> tuple[int, str]:
    """A count of units as a whole one: a year and a half is 18 months. Raises ValueError for half a decade."""
    if count == int(count):
        return int(count), unit
    if unit not in _SMALLER:
        raise ValueError("no smaller unit")
    size, smaller = _SMALLER[unit]
    return int(count * size), smaller


def shift(moment: datetime, count: int, unit: str) -> datetime:
    """The moment `count` units of a day or longer away."""
    if unit in FIXED_DAYS:
        return moment + count * FIXED_DAYS[unit] * DAY
    return add_months(moment, count * MONTHS_OF[unit])


def day(moment: datetime) -> Interval:
    """The day that holds the moment."""
    start = midnight(moment)
    return start, start + DAY


def period(moment: datetime, unit: str, offset: int = 0) -> Interval:
    """The day, week (from Monday), weekend, month, quarter, year or decade that holds the moment, or another one."""
    start = midnight(moment)
    if unit == "day":
        return day(start + offset * DAY)
    if unit in FIXED_DAYS:
        start += offset * WEEK - start.weekday() * DAY
        return (start + 5 * DAY, start + WEEK) if unit == "weekend" else (start, start + FIXED_DAYS[unit] * DAY)
    length = MONTHS_OF[unit]
    months = start.year * 12 + start.month - 1
    first = months - months % length + offset * length
    start = start.replace(year=first // 12, month=first % 12 + 1, day=1)
    return start, add_months(start, length)


def span_months(year: int, month: int, count: int) -> Interval:
    """The interval of `count` months from the first of that month on."""
    start = date(year, month)
    return start, add_months(start, count)


def full_year(year: int, pivot: int) -> int:
    """A year from two or four digits; with two, of the century of `pivot`, or of the one before if more than 30 years
    after it."""
    if year >= 100:
        return year
    year += pivot // 100 * 100
    return year if year <= pivot + 30 else year - 100


def monday(year: int, week: int) -> datetime:
    """The Monday of an ISO week; ValueError for a week that the year has not."""
    return datetime.fromisocalendar(year, week, 1)


def yearless(now: datetime, month: int, day: int | None, lean: Lean, months: int = 1) -> Interval:
    """A date (or `months` whole months, when `day` is None) without a year: the reading that `lean` calls for.

    PAST takes the latest that has begun, FUTURE the first that has not ended, NONE the next one unless the last one
    is much nearer (three times): a note about "June 3" in late June looks back.
    """
    readings = []
    for year in range(now.year - 8, now.year + 9):  # February 29 may be eight years away
        with suppress(ValueError):
            begins = date(year, month, day or 1)
            readings.append((begins, begins + DAY if day else add_months(begins, months)))
    if lean is Lean.NONE:
        today, past, ahead = midnight(now), nearest(readings, now, Lean.PAST), nearest(readings, now, Lean.FUTURE)
        lean = Lean.PAST if (today - past[1]) * 3 < ahead[0] - today else Lean.FUTURE
    return nearest(readings, now, lean)


def nearest(readings: Iterable[Interval], now: datetime, lean: Lean) -> Interval:
    """Of the readings of a recurring time, in order: PAST the latest that has begun (a day: before today), else the
    first that is not over. Raises ValueError if there is none."""
    today = midnight(now)
    if lean is Lean.PAST:
        fitting = [each for each in readings if each[0] < today or each[0] == today != each[1] - DAY][-1:]
    else:
        fitting = [each for each in readings if each[1] > today][:1]
    if not fitting:
        raise ValueError("no such day")
    return fitting[0]


def on_weekday(now: datetime, weekday: int, lean: Lean) -> Interval:
    """A bare weekday: the latest one before today, or the next one (today included)."""
    ahead = (weekday - now.weekday()) % 7
    return day(now + (ahead - 7 if lean is Lean.PAST else ahead) * DAY)


def nth_weekday(interval: Interval, weekday: int, nth: int) -> datetime:
    """The first, second ... weekday of that name in an interval, its last for -1. Raises ValueError for a fifth that
    it has not."""
    begins, ends = interval
    first = begins + (weekday - begins.weekday()) % 7 * DAY
    place = (ends - DAY - first) // WEEK if nth < 0 else nth - 1
    if first + place * WEEK >= ends:
        raise ValueError("no such day")
    return first + place * WEEK


def part(interval: Interval, which: str, unit: str) -> Interval:
    """The early ("start"), middle ("mid") or late ("end") part of a period: a half, or the middle third."""
    begins, ends = interval
    if unit in MONTHS_OF and unit != "month":
        months = (ends.year - begins.year) * 12 + ends.month - begins.month
        middle = add_months(begins, months // 2)
        third = (add_months(begins, months // 3), add_months(begins, months - months // 3))
    elif unit == "month":
        middle, third = begins.replace(day=16), (begins.replace(day=10), begins.replace(day=21))
    else:
        days = max((ends - begins).days, 1)
        middle = begins + (days // 2 * DAY if days > 1 else DAY / 2)
        third = (begins + days // 3 * DAY, ends - days // 3 * DAY)
    return {"start": (begins, middle), "end": (middle, ends), "mid": third}[which]

"""Days of a week, a quarter, a season, and the choice between two years.

Pure arithmetic on naive local datetimes; intervals are half-open. Raises ValueError or OverflowError for a day
that does not exist or lies beyond year 9999; callers drop such an expression.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import datetime, timedelta
from enum import Enum

Interval = tuple[datetime, datetime]

FIXED_DAYS = {"day": 1, "week": 7, "fortnight": 14, "weekend": 7}
"""Days from one to the next."""

MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
SECONDS_OF = {"second": 1, "minute": 60, "hour": 3600}
LAST_SECOND = timedelta(seconds=1)


class Lean(Enum):
    """Which reading of a date without a year the text calls for."""

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
    index = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(index, 12)
    last = monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 28
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def shift(moment: datetime, count: int, unit: str) -> datetime:
    """The moment `count` units of a day or longer away."""
    if unit in FIXED_DAYS:
        return moment + timedelta(days=count * FIXED_DAYS[unit])
    return add_months(moment, count * MONTHS_OF[unit])


def day(moment: datetime) -> Interval:
    """The day that holds the moment."""
    start = midnight(moment)
    return start, start + timedelta(days=1)


def period(moment: datetime, unit: str, offset: int = 0) -> Interval:
    """The day, week (from Monday), weekend, month, quarter, year or decade that holds the moment, or one beside it."""
    start = midnight(moment)
    if unit == "day":
        return day(start + timedelta(days=offset))
    if unit in ("week", "weekend", "fortnight"):
        start += timedelta(days=7 * offset - start.weekday())
        if unit == "weekend":
            start += timedelta(days=5)
        return start, start + timedelta(days={"week": 7, "weekend": 2, "fortnight": 14}[unit])
    length = MONTHS_OF[unit]
    whole = start.year * 12 + start.month - 1
    first = whole - whole % length + offset * length
    start = start.replace(year=first // 12, month=first % 12 + 1, day=1)
    return start, add_months(start, length)


def span_months(year: int, month: int, count: int) -> Interval:
    """`count` months from the first of that month on."""
    start = date(year, month)
    return start, add_months(start, count)


def yearless(now: datetime, month: int, day: int | None, lean: Lean, months: int = 1) -> Interval:
    """A date (or `months` whole months, when `day` is None) without a year: the reading that `lean` calls for.

    PAST takes the latest that has begun, FUTURE the first that has not ended, NONE the next one unless the last one
    is much nearer (three times): a note about "June 3" in late June looks back.
    """
    readings = []
    for year in range(now.year - 8, now.year + 9):  # February 29 may be eight years away
        try:
            begins = date(year, month, day or 1)
        except ValueError:
            continue
        readings.append((begins, begins + timedelta(days=1) if day else add_months(begins, months)))
    if not readings:
        raise ValueError("no such day")
    today = midnight(now)
    ahead = next((r for r in readings if r[1] > today), None)
    behind = next((r for r in reversed(readings) if r[0] < today or (day is None and r[0] <= today)), None)
    if ahead is None or behind is None:
        raise ValueError("beyond the calendar")
    if lean is Lean.NONE and ahead != behind:
        lean = Lean.PAST if (today - behind[1]) * 3 < ahead[0] - today else Lean.FUTURE
    return behind if lean is Lean.PAST else ahead


def on_weekday(now: datetime, weekday: int, lean: Lean) -> Interval:
    """A bare weekday: the latest one before today, or the next one (today included)."""
    ahead = (weekday - now.weekday()) % 7
    return day(now + timedelta(days=ahead - 7 if lean is Lean.PAST else ahead))


def part(interval: Interval, which: str, unit: str) -> Interval:
    """The early, middle or late part of a period: its halves, or the middle third (May to August of a year)."""
    begins, ends = interval
    if unit in ("year", "quarter", "decade", "half"):
        months = (ends.year - begins.year) * 12 + ends.month - begins.month
        middle = add_months(begins, months // 2)
        third = (add_months(begins, months // 3), add_months(begins, months - months // 3))
    elif unit == "month":
        middle, third = begins.replace(day=16), (begins.replace(day=10), begins.replace(day=21))
    else:
        days = max((ends - begins).days, 1)
        middle = begins + timedelta(days=days // 2) if days > 1 else begins + timedelta(hours=12)
        third = (begins + timedelta(days=days // 3), ends - timedelta(days=days // 3))
    return {"start": (begins, middle), "end": (middle, ends), "mid": third}[which]

"""A piece of a temporal expression, and the context it is read in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from service.language.temporal import calendar
from service.language.temporal.calendar import Interval, Lean


@dataclass(frozen=True, slots=True)
class TimeContext:
    """A sentence, lower-cased and `raw`, and the reader's clock: `now` is naive local time, `instant` its UTC.

    `asked`: it asks for what lies in a time, and is no note that says when.
    """

    text: str
    raw: str
    instant: datetime
    zone: ZoneInfo
    lean: Callable[[int], Lean]
    asked: bool = False

    @property
    def now(self) -> datetime:
        return self.local(self.instant)

    @property
    def today(self) -> datetime:
        return calendar.midnight(self.now)

    def local(self, moment: datetime) -> datetime:
        """Naive wall-clock time of an aware moment; `fold` keeps the hour that the clocks repeat apart."""
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def later(self, seconds: float) -> datetime:
        """Wall-clock time so many real seconds away: right across a change of clocks."""
        return self.local(self.instant + timedelta(seconds=seconds))

    def utc(self, moment: datetime) -> datetime:
        """UTC of a naive local moment; one that the clocks skip is read with the offset before the change."""
        return moment.replace(tzinfo=self.zone).astimezone(UTC)

    def before(self, position: int, chars: int = 24) -> str:
        """What stands left of a position."""
        return self.text[max(0, position - chars) : position]


@dataclass(frozen=True, slots=True)
class TimePiece:
    """A part of a sentence that names a time; `begins` and `ends` are naive local time, half-open.

    `kind`: date, time, datetime, range, duration or set, as in Mention. `unit` is the grain ("day", "month" ...).
    `partial` (month, day or None) and `months`: a date whose year is a guess and may be learned from a neighbour.
    `clock` (hour, minute) and `meridiem` (False: a bare 3 that may be 3 or 15 o'clock): a time of day.
    `amount` (count, unit): a duration. `weak`: counts only beside another piece. `sort`: how a day is named, where a
    neighbour may name it better ("weekday", "fixed weekday", "near", "ordinal", "offset").
    """

    start: int
    end: int
    kind: str
    begins: datetime | None = None
    ends: datetime | None = None
    unit: str = "day"
    partial: tuple[int, int | None] | None = None
    months: int = 1
    clock: tuple[int, int] | None = None
    meridiem: bool = True
    daypart: str | None = None
    amount: tuple[float, str] | None = None
    sort: str = ""
    weak: bool = False


Handler = Callable[[TimeContext, "re.Match[str]"], TimePiece | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, and what its match means (None: no time after all)."""

    pattern: str
    read: Handler


def whole(match: re.Match[str], interval: Interval, unit: str, *, weak: bool = False, sort: str = "") -> TimePiece:
    """A piece that names a whole day or period."""
    return TimePiece(*match.span(), "date" if unit == "day" else "range", *interval, unit=unit, weak=weak, sort=sort)


def yearless(scene: TimeContext, match: re.Match[str], month: int, day: int | None, months: int = 1) -> TimePiece:
    """A date or some months without a year, in the reading that the tense calls for."""
    interval = calendar.yearless(scene.now, month, day, scene.lean(match.start()), months)
    kind, unit = ("date", "day") if day else ("range", {1: "month", 3: "quarter", 6: "half"}[months])
    return TimePiece(*match.span(), kind, *interval, unit=unit, partial=(month, day), months=months)


def instant(match: re.Match[str], moment: datetime) -> TimePiece:
    """A piece that names a point in time: begins and ends coincide."""
    return TimePiece(*match.span(), "datetime", moment, moment, unit="minute")

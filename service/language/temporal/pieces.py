"""A piece of a temporal expression, the sentence it is read in, and the place where a rule matched."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from service.language.temporal import calendar
from service.language.temporal.calendar import Interval, Lean


@dataclass(frozen=True)
class TimeContext:
    """A sentence, lower-cased and `raw`, and the reader's clock: `instant` is its UTC.

    `asked`: it asks for what lies in a time, and is not a note that says when.
    """

    text: str
    raw: str
    instant: datetime
    zone: ZoneInfo
    lean: Callable[[int], Lean]
    asked: bool = False

    @cached_property
    def now(self) -> datetime:
        """Naive local time."""
        return self.local(self.instant)

    @cached_property
    def today(self) -> datetime:
        return calendar.midnight(self.now)

    def local(self, moment: datetime) -> datetime:
        """Naive wall-clock time of an aware moment; `fold` keeps the hour that the clocks repeat apart."""
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def later(self, seconds: float, moment: datetime | None = None) -> datetime:
        """Wall-clock time a number of real seconds away: right across a change of clocks."""
        return self.local((self.utc(moment) if moment else self.instant) + timedelta(seconds=seconds))

    def utc(self, moment: datetime) -> datetime:
        """UTC of a naive local moment; one that the clocks skip is read with the offset before the change."""
        return moment.replace(tzinfo=self.zone).astimezone(UTC)

    def before(self, position: int, chars: int = 24) -> str:
        """The text left of a position."""
        return self.text[max(0, position - chars) : position]


@dataclass(frozen=True, slots=True)
class TimePiece:
    """A part of a sentence that names a time; `begins` and `ends` are naive local time, half-open.

    `kind`: date, time, datetime, range, duration or set, as in TimeMention. `unit` is the grain ("day", "month" ...).
    `partial` (month, day or None): a date whose year is a guess and may be learned from a neighbour.
    `clock` (hour, minute) and `meridiem` (False: a bare 3 that may be 3 or 15 o'clock): a time of day.
    `amount` (count, unit): a duration. `weak`: counts only with another piece. `sort`: how a day is named, where a
    neighbour may name it better ("weekday", "fixed weekday", "of week", "near", "ordinal", "offset", "holiday").
    """

    start: int
    end: int
    kind: str
    begins: datetime | None = None
    ends: datetime | None = None
    unit: str = "day"
    partial: tuple[int, int | None] | None = None
    clock: tuple[int, int] | None = None
    meridiem: bool = True
    daypart: str | None = None
    amount: tuple[float, str] | None = None
    sort: str = ""
    weak: bool = False

    @property
    def bounds(self) -> Interval:
        """Both ends of the piece. Raises ValueError where one is open."""
        if self.begins is None or self.ends is None:
            raise ValueError("an open end")
        return self.begins, self.ends


_OPENER = re.compile(
    r"\b(?:in|on|by|for|of|from|since|until|till|through|thru|before|after|during|over|between|around|early|late|mid"
    r"|starting|beginning|due|this|circa|year|than|as\s+of|week\s+of|year['\u2019]s)[\s-]\s*(?:the\s+)?$"
)
_LINK = re.compile(r"\b(?:and|or|to)\s+(?:the\s+)?$")


@dataclass(frozen=True, slots=True)
class TimeMatch:
    """Where a rule matched, and the pieces that it may find there."""

    scene: TimeContext
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.scene.text[self.start : self.end]

    @property
    def raw(self) -> str:
        """The text of the match as it was written."""
        return self.scene.raw[self.start : self.end]

    @property
    def lean(self) -> Lean:
        return self.scene.lean(self.start)

    def follows(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern matches the text before the match."""
        return pattern.search(self.scene.before(self.start)) is not None

    def precedes(self, pattern: re.Pattern[str]) -> bool:
        """Whether a pattern matches the text after the match."""
        return pattern.match(self.scene.text, self.end) is not None

    @property
    def is_opened(self) -> bool:
        """Whether a word that dates come after stands before the match."""
        return self.follows(_OPENER)

    @property
    def is_linked(self) -> bool:
        """Whether the match goes on a list or a range: "the 5th and the 20th", "Mon to Wed"."""
        return self.follows(_LINK)

    @property
    def is_alone(self) -> bool:
        return self.scene.text.strip(" .?!") == self.text.strip(" .")

    def span(self, begins: datetime, ends: datetime, unit: str = "day", **more: Any) -> TimePiece:
        """A day, or a range in other units."""
        kind = "date" if unit == "day" and ends - begins == calendar.DAY else "range"
        return TimePiece(self.start, self.end, kind, begins, ends, unit=unit, **more)

    def day(self, moment: datetime, *, weak: bool = False, sort: str = "") -> TimePiece:
        """The day that holds a moment."""
        return self.span(*calendar.day(moment), weak=weak, sort=sort)

    def instant(self, moment: datetime) -> TimePiece:
        """A point in time: begins and ends coincide."""
        return TimePiece(self.start, self.end, "datetime", moment, moment, unit="minute")

    def months(self, year: int, month: int, unit: str) -> TimePiece:
        """A month, quarter, year or decade from the first of a month on."""
        return self.span(*calendar.span_months(year, month, calendar.MONTHS_OF[unit]), unit)

    def yearless(self, month: int, day: int | None, unit: str = "day") -> TimePiece:
        """A date or some months without a year, in the reading that the tense calls for."""
        months = 1 if day else calendar.MONTHS_OF[unit]
        interval = calendar.yearless(self.scene.now, month, day, self.lean, months)
        return self.span(*interval, unit, partial=(month, day))


Reader = TypeVar("Reader", bound=Callable[..., "TimePiece | None"])


class RuleTable(list[tuple[str, Callable[..., "TimePiece | None"]]]):
    """Patterns with slots, and for each the function that reads what it matches, in the order in which they are tried.

    The function takes the place of the match and the values of the slots by name; None is no time after all.
    """

    def reads(self, *patterns: str) -> Callable[[Reader], Reader]:
        """A decorator: the function reads what one of the patterns matches."""

        def enter(reader: Reader) -> Reader:
            self.extend((pattern, reader) for pattern in patterns)
            return reader

        return enter

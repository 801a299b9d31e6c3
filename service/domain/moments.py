"""Parsing of times within the calendar that both Postgres and Python support; the clock, which tests can set; a
stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema

FIRST: Final = datetime(2, 1, 1, tzinfo=UTC)
END: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""The driver treats Python's first and last moment as infinity, from which nothing can be subtracted. A year is left at
both ends, so that no zone, day or week around a moment leaves the calendar."""

WHOLE_HOURS: Final = frozenset(range(-12, 15)) - {0}
"""Offsets, in hours, that have a zone without a place."""

BEYOND: Final = "must be between the years 2 and 9998; leave it out for never"


def clamp(moment: datetime) -> datetime:
    """A bound with the same memories on each side, since nothing is stored beyond the calendar."""
    return min(max(moment, FIRST - timedelta(days=1)), END)


def parse(given: object, zone: tzinfo = UTC) -> datetime:
    """Parses ISO 8601, in `zone` unless it has one, or seconds since 1970; returns UTC. Raises ValueError."""
    if isinstance(given, str):
        return utc(datetime.fromisoformat(given.strip()), zone)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError("must be an ISO 8601 time, or seconds since 1970")
    try:
        return utc(datetime.fromtimestamp(given, UTC))
    except (OverflowError, OSError):
        raise ValueError(BEYOND) from None


def utc(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """The moment in UTC. Raises ValueError outside the years 2 to 9998."""
    try:
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise ValueError(BEYOND) from None
    if not FIRST <= moment < END:
        raise ValueError(BEYOND)
    return moment


def zone_of(written: object) -> str | None:
    """The IANA name of the offset of an ISO 8601 time ("Etc/GMT-2" for +02:00); None if it has none, is UTC, or has
    minutes."""
    try:
        offset = datetime.fromisoformat(written.strip()).utcoffset() if isinstance(written, str) else None
    except ValueError:
        return None
    hours, rest = divmod(offset or timedelta(), timedelta(hours=1))
    return f"Etc/GMT{-hours:+d}" if hours in WHOLE_HOURS and not rest else None


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC, ending in +00:00."""
    return (moment if moment.tzinfo is UTC else moment.astimezone(UTC)).isoformat()


STORED: Final = "stored"
"""The context in which a stored answer is parsed: its times may lie outside the range that requests allow."""


def _read(value: object, info: ValidationInfo) -> datetime:
    if isinstance(value, datetime):  # from the database or an adapter: a page has hundreds
        return value if value.tzinfo is UTC else value.astimezone(UTC)
    if not isinstance(value, str):
        raise ValueError("must be an ISO 8601 time in a string")
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("must be an ISO 8601 time such as 2026-03-02T09:30:00+00:00") from None
    return moment if info.context == STORED else utc(moment)


Time = Annotated[
    datetime,
    BeforeValidator(_read),
    PlainSerializer(iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A time in requests and responses: ISO 8601; UTC by default, `Z` is accepted, responses end in +00:00."""

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds by stage."""

    ms: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        """Ends a stage that began when the last one ended; a repeated one adds up."""
        now = time.perf_counter()
        self.ms[stage] = round(self.ms.get(stage, 0.0) + (now - self._at) * 1000, 3)
        self._at = now

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Adds the time of the block to the stage."""
        began = time.perf_counter()
        yield
        self.ms[stage] = round(self.ms.get(stage, 0.0) + elapsed_ms(began), 3)


def elapsed_ms(began: float) -> float:
    """Milliseconds since `time.perf_counter()` was `began`."""
    return round((time.perf_counter() - began) * 1000, 3)

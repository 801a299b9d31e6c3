"""Bounds that a caller's conditions put on columns with a btree. Pure.

Row-level security lets comparisons of plain columns use their btrees, unlike filter keys (filter_keys.py). Where such a
range leaves few rows of the workspace, they are looked up by it. As with filter keys, a condition may be left out, but
no bound may be added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from service.domain.filters import Check, Value
from service.domain.query import Narrow, Window
from service.search.filter_keys import flat

EQUAL: Final = ("id", "hash", "user_id", "agent_id", "run_id")
ORDERED: Final = ("created_at", "importance", "timestamp")
"""Columns that come first in a btree, after the workspace."""

TIME_STEP: Final = timedelta(microseconds=1)
"""The smallest difference between two moments in the database."""


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """A column of `memory`: from `low` to `high`, both included, or one of `among`; each unless it is None. `low` and
    `high` are numbers or moments."""

    field: str
    low: Any = None
    high: Any = None
    among: tuple[Value, ...] | None = None


def find_ranges(narrow: Narrow, window: Window) -> tuple[ColumnRange, ...]:
    """The ranges that each row must meet, at most one per column."""
    checks = [] if narrow.filters is None else [part for part in flat(narrow.filters) if isinstance(part, Check)]
    equal = (_equal(name, [part for part in checks if part.field.name == name]) for name in EQUAL)
    between = (_between(name, [part for part in checks if part.field.name == name], window) for name in ORDERED)
    return tuple(column_range for column_range in (*equal, *between) if column_range is not None)


def time_span(ranges: Sequence[ColumnRange]) -> tuple[datetime | None, datetime | None]:
    """The first and the last moment that `timestamp` may have."""
    return next(
        ((column_range.low, column_range.high) for column_range in ranges if column_range.field == "timestamp"),
        (None, None),
    )


def _equal(name: str, checks: Sequence[Check]) -> ColumnRange | None:
    for check in checks:
        if check.operator == "in" and isinstance(check.value, tuple):
            return ColumnRange(name, among=check.value)
        if check.operator == "eq" and check.value is not None and not isinstance(check.value, tuple):
            return ColumnRange(name, among=(check.value,))
    return None


def _between(name: str, checks: Sequence[Check], window: Window) -> ColumnRange | None:
    given: list[tuple[str, Any]] = [(check.operator, check.value) for check in checks if check.value is not None]
    if name == "timestamp":
        given += [(operator, at) for operator, at in (("gte", window.start), ("lt", window.end)) if at is not None]
    lows = [_next(value, 1) if op == "gt" else value for op, value in given if op in ("gt", "gte", "eq")]
    highs = [_next(value, -1) if op == "lt" else value for op, value in given if op in ("lt", "lte", "eq")]
    return ColumnRange(name, max(lows, default=None), min(highs, default=None)) if lows or highs else None


def _next(value: Any, sign: int) -> Any:
    """The next value in the direction of `sign`."""
    return value + sign * TIME_STEP if isinstance(value, datetime) else math.nextafter(value, sign * math.inf)

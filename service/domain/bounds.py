"""Between which values of a column with a btree does everything lie that a caller asks for? Pure.

Row-level security lets comparisons of plain columns through to their btrees, unlike marks (marks.py). Where one of them
leaves few rows of the workspace, they are looked up by it. As with marks, something may be left out, never added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from service.domain.filters import Check, Value
from service.domain.marks import flat
from service.domain.query import Narrow, Window

EQUAL: Final = ("id", "hash", "user_id", "agent_id", "run_id")
ORDERED: Final = ("created_at", "importance", "timestamp")
"""Columns that a btree begins with, behind the workspace."""

NEXT: Final = timedelta(microseconds=1)
"""No moment in the database lies between."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A column of memory: from `low` to `high`, both included, or one of `among`; each unless it is None. `low` and
    `high` are numbers or moments."""

    field: str
    low: Any = None
    high: Any = None
    among: tuple[Value, ...] | None = None


def needed(narrow: Narrow, window: Window) -> tuple[Bound, ...]:
    """What must hold of each row, for every column at most once."""
    asked = [] if narrow.filters is None else [each for each in flat(narrow.filters) if isinstance(each, Check)]
    equal = (_equal(name, [each for each in asked if each.field.name == name]) for name in EQUAL)
    within = (_between(name, [each for each in asked if each.field.name == name], window) for name in ORDERED)
    return tuple(each for each in (*equal, *within) if each is not None)


def span(found: Sequence[Bound]) -> tuple[datetime | None, datetime | None]:
    """The first and the last moment that `timestamp` may have."""
    return next(((each.low, each.high) for each in found if each.field == "timestamp"), (None, None))


def _equal(name: str, checks: Sequence[Check]) -> Bound | None:
    for check in checks:
        if check.operator == "in" and isinstance(check.value, tuple):
            return Bound(name, among=check.value)
        if check.operator == "eq" and check.value is not None and not isinstance(check.value, tuple):
            return Bound(name, among=(check.value,))
    return None


def _between(name: str, checks: Sequence[Check], window: Window) -> Bound | None:
    given: list[tuple[str, Any]] = [(each.operator, each.value) for each in checks if each.value is not None]
    if name == "timestamp":
        given += [(sign, at) for sign, at in (("gte", window.start), ("lt", window.end)) if at is not None]
    lows = [_next(value, 1) if sign == "gt" else value for sign, value in given if sign in ("gt", "gte", "eq")]
    highs = [_next(value, -1) if sign == "lt" else value for sign, value in given if sign in ("lt", "lte", "eq")]
    return Bound(name, max(lows, default=None), min(highs, default=None)) if lows or highs else None


def _next(value: Any, sign: int) -> Any:
    """The next value in the direction of `sign`; the last one of all has none."""
    if isinstance(value, datetime):
        with suppress(OverflowError):
            return value + sign * NEXT
        return value
    return math.nextafter(value, sign * math.inf)

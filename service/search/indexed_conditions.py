"""What the indexes can find of a caller's conditions: filter keys, and bounds on columns with a btree. Pure.

A row has as filter keys its tags and their prefixes, its categories, a few of its columns, every single value in its
metadata under the last step of its path, and for numbers and times there the keys that ranges are made of. A GIN index
finds rows by their keys (`memory_filter_keys()` in the database computes them). Row-level security lets comparisons of
plain columns use their btrees as well. The rows found are then checked against the whole conditions. So a condition may
be left out here, and two that differ may ask for the same key, but nothing may be required that a row meeting the
conditions could lack.

A number, or a moment as seconds since 1970, is a float64. Its bits, in the order of the values, are cut off after
several lengths, and the value carries one key per length: values close to each other share the longer ones, as in the
numeric tries of Lucene. A range is covered by the fewest keys that leave nothing out. They may let in what lies just
outside, within two hundred-thousandths of the value, where the longest key ends.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from service.domain.filters import ORDER, AllOf, AnyOf, Check, Filter, Value, fold, iso_time
from service.domain.query import Narrow, Window

RangeKind = Literal["number", "time"]

PREFIX_BITS: Final = (6, 12, 16, 20, 24, 28)
"""Lengths of the keys in bits. A value has one key of each length, a range at most some 300 keys; the two shortest
lengths keep it to few for a range with an open end."""

SMALLEST, LARGEST = 1e-300, 1e300
"""Beyond these a value counts as zero or as infinite: jsonb holds numbers that float64 does not."""

_ALL_BITS: Final = 64
_FIRST, _LAST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class FilterKey:
    """A tag, a prefix of one, any other word, a category, or `value` in metadata under `word`."""

    kind: Literal["word", "category", "metadata"]
    word: str
    value: Value | None = None


KeyGroup = tuple[FilterKey, ...]
"""Alternatives: a row has at least one of these keys."""


@dataclass(frozen=True, slots=True)
class FilterKeys:
    """The keys that a row must carry: each of `all_of`, and one of each group of `any_of`, at most two groups. False
    where nothing is required. Keys are never compared: 1 and True are equal in Python."""

    all_of: KeyGroup = ()
    any_of: tuple[KeyGroup, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all_of or self.any_of)


NO_FILTER_KEYS: Final = FilterKeys()

MAX_GROUPS: Final = 2
"""Groups of several keys that are looked up in the index; further conditions are only checked on the rows found."""

MAX_GROUP_KEYS: Final = 4_000
"""Keys in a group. A larger group is left out: looking up a key takes a microsecond or two."""

KEY_COLUMNS: Final = {
    "type": "type",
    "role": "role",
    "speaker": "speaker",
    "session_id": "session",
    "conversation_id": "conversation",
}
"""Columns whose values are keys, with the prefix of the key."""

_LIST_INDEX = re.compile(r"\s*[+-]?\d")
"""A step that may choose an element of a list, which has no name to make a key of."""


def find_keys(narrow: Narrow) -> FilterKeys:
    """The keys of every row that meets the conditions: all single ones, and the smallest groups of several."""
    groups = [*_tags(narrow), *_tree(narrow.filters)]
    if narrow.categories:
        groups.append(tuple(FilterKey("category", category) for category in narrow.categories))
    if narrow.types:
        groups.append(tuple(_column("type", kind) for kind in narrow.types))
    several = sorted((group for group in groups if 1 < len(group) <= MAX_GROUP_KEYS), key=len)
    return FilterKeys(tuple(group[0] for group in groups if len(group) == 1), tuple(several[:MAX_GROUPS]))


def _tags(narrow: Narrow) -> list[KeyGroup]:
    keys = tuple(FilterKey("word", tag) for tag in narrow.tags)
    if narrow.tag_mode == "all":
        return [(key,) for key in keys]
    return [keys] if keys else []


def _column(name: str, value: object) -> FilterKey:
    return FilterKey("word", f"{KEY_COLUMNS[name]} {value}")


def _tree(tree: Filter | None) -> Sequence[KeyGroup]:
    """Groups of keys; every row that passes the filter carries at least one key of each group. A negation gives no
    group, because it also passes rows without the value, which carry no key."""
    match tree:
        case AllOf():
            parts = list(flatten(tree))
            ranges = [part for part in parts if isinstance(part, Check) and part.operator in ORDER]
            others = [part for part in parts if not isinstance(part, Check) or part.operator not in ORDER]
            return [*_ranges(ranges), *(group for part in others for group in _tree(part))]
        case AnyOf(parts):
            of_parts = [_tree(part) for part in parts]
            return _either([min(groups, key=len) for groups in of_parts]) if all(of_parts) else []
        case Check(_, "in", tuple() as values):
            return _either([_equal_keys(tree, each) for each in values])
        case Check(_, "eq", value) if value is not None and not isinstance(value, tuple):
            return _either([_equal_keys(tree, value)])
        case Check(_, operator) if operator in ORDER:
            return _ranges([tree])
    return []


def flatten(tree: Filter) -> Iterator[Filter]:
    """The parts of an AND and of the ANDs inside it; any other filter as it is."""
    if isinstance(tree, AllOf):
        for part in tree.parts:
            yield from flatten(part)
    else:
        yield tree


def _either(groups: Sequence[KeyGroup]) -> list[KeyGroup]:
    """The union of the groups of an OR; none if one alternative has no keys."""
    return [tuple(key for group in groups for key in group)] if groups and all(groups) else []


def _equal_keys(check: Check, value: Value) -> KeyGroup:
    """A group of keys; a row with this value carries one of them. No keys if the field has none."""
    field = check.field
    if field.path:
        return (FilterKey("metadata", field.path[-1], value),) if _is_named(field.path) else ()
    match field.name:
        case "tag":
            return (FilterKey("word", fold(value)), FilterKey("metadata", "tag", value))
        case "tag_prefix":
            return (FilterKey("word", fold(value)),)
        case "category":
            return (FilterKey("category", fold(value)), FilterKey("metadata", "category", value))
        case name if name in KEY_COLUMNS:
            return (_column(name, value),)
    return ()


def _is_named(path: Sequence[str]) -> bool:
    return len(path) == 1 or not _LIST_INDEX.match(path[-1])


# -- ranges of values in metadata -------------------------------------------------------------------------------------


def _ranges(checks: Sequence[Check]) -> list[KeyGroup]:
    """A group for each path with bounds, as far as keys exist. Of a list, one element may meet the lower bound and
    another one the upper, so a list of several values always passes."""
    bounds: dict[tuple[tuple[str, ...], RangeKind], tuple[list[float], list[float]]] = {}
    for check in checks:
        place = _range_value(check.value)
        if check.field.path and _is_named(check.field.path) and place is not None:
            lows, highs = bounds.setdefault((check.field.path, place[0]), ([], []))
            (lows if check.operator in ("gt", "gte") else highs).append(place[1])
    groups = []
    for (path, kind), (lows, highs) in bounds.items():
        words = cover_range(path[-1], kind, max(lows, default=None), min(highs, default=None))
        if lows and highs:
            words.append(f"{path[-1]} many")  # the key of a list of several values
        groups.append(tuple(FilterKey("word", word) for word in words))
    return groups


def _range_value(value: object) -> tuple[RangeKind, float] | None:
    """The kind of values compared with this one, and its place among them; None for a text that is not a time."""
    if isinstance(value, str):
        moment = iso_time(value)
        return None if moment is None else ("time", moment.timestamp())
    return ("number", value) if isinstance(value, int | float) else None


def cover_range(name: str, kind: RangeKind, low: float | None, high: float | None) -> list[str]:
    """The keys of a range; None for an open end. Empty if `low` is above `high`."""
    first = _FIRST if low is None else _order_bits(low)
    last = _LAST if high is None else _order_bits(high)
    words: list[str] = []
    bits = PREFIX_BITS[-1]
    first, last = first >> _ALL_BITS - bits, last >> _ALL_BITS - bits
    for shorter in reversed((0, *PREFIX_BITS[:-1])):
        step = bits - shorter
        # parts that a shorter key would cover too widely: before the first multiple of 2^step and after the last one
        begins, ends = -(-first >> step), (last + 1) >> step
        if shorter == 0 or begins >= ends:
            return words + _words(name, kind, bits, first, last)
        words += _words(name, kind, bits, first, (begins << step) - 1)
        words += _words(name, kind, bits, ends << step, last)
        bits, first, last = shorter, begins, ends - 1
    raise AssertionError("the last step returns")


def _words(name: str, kind: RangeKind, bits: int, first: int, last: int) -> list[str]:
    return [f"{name} {kind}{bits} {prefix}" for prefix in range(first, last + 1)]


def _order_bits(value: float) -> int:
    """The bits of a float64 as a signed number, in the order of the values."""
    if abs(value) > LARGEST:
        value = float("inf") if value > 0 else float("-inf")
    elif abs(value) < SMALLEST:
        value = 0.0
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return bits if bits >= 0 else bits ^ _LAST


# -- columns with a btree ---------------------------------------------------------------------------------------------

EQUAL_COLUMNS: Final = ("id", "hash", "user_id", "agent_id", "run_id")
ORDERED_COLUMNS: Final = ("created_at", "importance", "timestamp")
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


def find_column_ranges(narrow: Narrow, window: Window) -> tuple[ColumnRange, ...]:
    """The ranges that each row must meet, at most one per column."""
    checks = [] if narrow.filters is None else [part for part in flatten(narrow.filters) if isinstance(part, Check)]
    equal = (_one_of(name, [part for part in checks if part.field.name == name]) for name in EQUAL_COLUMNS)
    between = (_between(name, [part for part in checks if part.field.name == name], window) for name in ORDERED_COLUMNS)
    return tuple(column_range for column_range in (*equal, *between) if column_range is not None)


def time_span(ranges: Sequence[ColumnRange]) -> tuple[datetime | None, datetime | None]:
    """The first and the last moment that `timestamp` may have."""
    return next(
        ((column_range.low, column_range.high) for column_range in ranges if column_range.field == "timestamp"),
        (None, None),
    )


def _one_of(name: str, checks: Sequence[Check]) -> ColumnRange | None:
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

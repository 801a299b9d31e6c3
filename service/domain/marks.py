"""Which marks must a row bear to meet what a caller narrowed a search by? Pure.

A row is marked with its tags and their prefixes, its categories, a few of its columns, every single value in its
metadata under the last step of its path, and numbers and times there once more with words that ranges are made of
(spans.py; migration 0025). An index finds rows by their marks; the whole conditions are asked of what it finds.
So a condition may be left out here, and two that differ may ask for the same mark, but nothing may be asked for that a
row which meets the conditions could lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from service.domain import spans
from service.domain.filters import ORDER, AllOf, AnyOf, Check, Filter, Value, iso_time, kept
from service.domain.query import Narrow
from service.domain.spans import Sort


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag, a prefix of one or any other word, a category, or `value` in metadata under `word`."""

    kind: Literal["word", "category", "metadata"]
    word: str
    value: Value | None = None


Group = tuple[Mark, ...]
"""One of them is enough."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What a row must bear: each of `all_of`, and one of each group of `any_of`, two at most. False where nothing is
    asked for. Marks are never compared: 1 and True are equal in Python."""

    all_of: Group = ()
    any_of: tuple[Group, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all_of or self.any_of)


NO_MARKS: Final = Marks()

GROUPS: Final = 2
"""Groups of several marks that a row is asked for; what else it must meet, its conditions say."""

MOST: Final = 4_000
"""Marks in a group. What needs more is left out: to look each of them up takes a microsecond or two."""

COLUMNS: Final = {
    "type": "type",
    "role": "role",
    "speaker": "speaker",
    "session_id": "session",
    "conversation_id": "conversation",
}
"""Columns that are marks, with what stands before their values."""

_PLACE = re.compile(r"\s*[+-]?\d")
"""A step that may choose an element of a list, which stands under no name."""


def needed(narrow: Narrow) -> Marks:
    """Of the groups of which a row must meet each: those of one mark, and the smallest of several."""
    groups = [*_tags(narrow), *_tree(narrow.filters)]
    if narrow.categories:
        groups.append(tuple(Mark("category", each) for each in narrow.categories))
    if narrow.types:
        groups.append(tuple(_column("type", each) for each in narrow.types))
    several = sorted((group for group in groups if 1 < len(group) <= MOST), key=len)
    return Marks(tuple(group[0] for group in groups if len(group) == 1), tuple(several[:GROUPS]))


def _tags(narrow: Narrow) -> list[Group]:
    marks = tuple(Mark("word", each) for each in narrow.tags)
    if narrow.tag_mode == "all":
        return [(each,) for each in marks]
    return [marks] if marks else []


def _column(name: str, value: object) -> Mark:
    return Mark("word", f"{COLUMNS[name]} {value}")


def _tree(tree: Filter | None) -> Sequence[Group]:
    """Groups of which each row that the filter lets through meets every one. What negates lets through what is not
    there, which bears no mark."""
    match tree:
        case AllOf():
            parts = list(flat(tree))
            ranges = [each for each in parts if isinstance(each, Check) and each.operator in ORDER]
            others = [each for each in parts if not isinstance(each, Check) or each.operator not in ORDER]
            return [*_ranges(ranges), *(group for each in others for group in _tree(each))]
        case AnyOf(parts):
            found = [_tree(each) for each in parts]
            return _either([min(groups, key=len) for groups in found]) if all(found) else []
        case Check(_, "in", tuple() as values):
            return _either([_equal(tree, each) for each in values])
        case Check(_, "eq", value) if value is not None and not isinstance(value, tuple):
            return _either([_equal(tree, value)])
        case Check(_, operator) if operator in ORDER:
            return _ranges([tree])
    return []


def flat(tree: Filter) -> Iterator[Filter]:
    """The parts of an AND, and theirs where one is an AND as well; anything else as it is."""
    if isinstance(tree, AllOf):
        for each in tree.parts:
            yield from flat(each)
    else:
        yield tree


def _either(groups: Sequence[Group]) -> list[Group]:
    """The group of which a row meets one that meets one of the groups; none where one of them is unknown."""
    return [tuple(mark for group in groups for mark in group)] if groups and all(groups) else []


def _equal(check: Check, value: Value) -> Group:
    """The marks of which a row with this value bears one; none where no mark tells."""
    field = check.field
    if field.path:
        return (Mark("metadata", field.path[-1], value),) if _is_named(field.path) else ()
    match field.name:
        case "tag":
            return (Mark("word", kept(value)), Mark("metadata", "tag", value))
        case "tag_prefix":
            return (Mark("word", kept(value)),)
        case "category":
            return (Mark("category", kept(value)), Mark("metadata", "category", value))
        case name if name in COLUMNS:
            return (_column(name, value),)
    return ()


def _is_named(path: Sequence[str]) -> bool:
    return len(path) == 1 or not _PLACE.match(path[-1])


# -- ranges of what stands in metadata --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Span:
    """All ranges of one place and sort that must hold together."""

    low: float | None = None
    high: float | None = None

    def add(self, operator: str, value: float) -> None:
        if operator in ("gt", "gte"):
            self.low = value if self.low is None else max(self.low, value)
        else:
            self.high = value if self.high is None else min(self.high, value)


def _ranges(checks: Sequence[Check]) -> list[Group]:
    """A group for each place that is held between bounds, as far as marks tell. Of a list one element may meet the
    lower bound and another one the upper, so it is let through whatever is in it."""
    found: dict[tuple[tuple[str, ...], Sort], _Span] = {}
    for check in checks:
        sorted_by = _sort(check.value)
        if check.field.path and _is_named(check.field.path) and sorted_by is not None:
            found.setdefault((check.field.path, sorted_by[0]), _Span()).add(check.operator, sorted_by[1])
    groups = []
    for (path, sort), span in found.items():
        words = spans.covering(path[-1], sort, span.low, span.high)
        if span.low is not None and span.high is not None:
            words.append(spans.many(path[-1]))
        groups.append(tuple(Mark("word", each) for each in words))
    return groups


def _sort(value: object) -> tuple[Sort, float] | None:
    """What is compared with it, and where it stands there; None for a text that is no time."""
    if isinstance(value, str):
        moment = iso_time(value)
        return None if moment is None else ("time", moment.timestamp())
    return ("number", value) if isinstance(value, int | float) else None

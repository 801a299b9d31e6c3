"""Which marks must a row bear to meet what a caller narrowed a search by? Pure.

A row is marked with its tags and their prefixes, its categories, and every single value in its metadata under the last
step of its path (migration 0022). An index finds rows by their marks; the whole conditions are asked of what it finds.
So a condition may be left out here, and two that differ may ask for the same mark, but nothing may be asked for that a
row which meets the conditions could lack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from service.domain.filters import AllOf, AnyOf, Check, Filter, Value, kept
from service.domain.query import Narrow


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag or prefix of one, a category, or `value` in metadata under `word`."""

    kind: Literal["tag", "category", "metadata"]
    word: str
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """What a row must bear: each of `all_of`, and one of `any_of` unless there is none. False where nothing is asked
    for. Marks are never compared: 1 and True are equal in Python."""

    all_of: tuple[Mark, ...] = ()
    any_of: tuple[Mark, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all_of or self.any_of)


NO_MARKS: Final = Marks()

Group = tuple[Mark, ...]
"""One of them is enough."""

_PLACE = re.compile(r"\s*[+-]?\d")
"""A step that may choose an element of a list, which stands under no name."""


def needed(narrow: Narrow) -> Marks:
    """Of the groups of which a row must meet each: those of one mark, and the smallest of several."""
    groups = [*_tags(narrow), *_tree(narrow.filters)]
    if narrow.categories:
        groups.append(tuple(Mark("category", each) for each in narrow.categories))
    several = sorted((group for group in groups if len(group) > 1), key=len)
    return Marks(tuple(group[0] for group in groups if len(group) == 1), several[0] if several else ())


def _tags(narrow: Narrow) -> list[Group]:
    marks = tuple(Mark("tag", each) for each in narrow.tags)
    if narrow.tag_mode == "all":
        return [(each,) for each in marks]
    return [marks] if marks else []


def _tree(tree: Filter | None) -> Sequence[Group]:
    """Groups of which each row that the filter lets through meets every one. What negates lets through what is not
    there, which bears no mark."""
    match tree:
        case AllOf(parts):
            return [group for each in parts for group in _tree(each)]
        case AnyOf(parts):
            found = [_tree(each) for each in parts]
            return _either([min(groups, key=len) for groups in found]) if all(found) else []
        case Check(_, "in", tuple() as values):
            return _either([_equal(tree, each) for each in values])
        case Check(_, "eq", value) if value is not None and not isinstance(value, tuple):
            return _either([_equal(tree, value)])
    return []


def _either(groups: Sequence[Group]) -> list[Group]:
    """The group of which a row meets one that meets one of the groups; none where one of them is unknown."""
    return [tuple(mark for group in groups for mark in group)] if groups and all(groups) else []


def _equal(check: Check, value: Value) -> Group:
    """The marks of which a row with this value bears one; none where no mark tells."""
    field = check.field
    if field.path:
        step = field.path[-1]
        return () if len(field.path) > 1 and _PLACE.match(step) else (Mark("metadata", step, value),)
    match field.name:
        case "tag":
            return (Mark("tag", kept(value)), Mark("metadata", "tag", value))
        case "tag_prefix":
            return (Mark("tag", kept(value)),)
        case "category":
            return (Mark("category", kept(value)), Mark("metadata", "category", value))
    return ()

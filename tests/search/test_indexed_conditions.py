"""The filter keys and column ranges of a question, of which no row that it asks for may lack one."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import service
from service.domain import filters, moments
from service.domain.query import EVER, Narrow, Window
from service.search import indexed_conditions
from service.search.indexed_conditions import (
    TIME_STEP,
    ColumnRange,
    FilterKey,
    FilterKeys,
    KeyGroup,
    find_column_ranges,
    find_keys,
    time_span,
)
from tests.support.filter_keys import value_keys


def check(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def held(word: str, value: Any) -> FilterKey:
    return FilterKey("metadata", word, value)


def tag(word: str) -> FilterKey:
    return FilterKey("word", word)


def spanning(name: str, sort: Any, low: float | None, high: float | None, *more: FilterKey) -> KeyGroup:
    return (*(tag(word) for word in indexed_conditions.cover_range(name, sort, low, high)), *more)


P, Q = check("p", "eq", 1), check("q", "in", ["x", "y", "z"])

TREES: list[tuple[dict[str, Any], FilterKeys]] = [
    (P, FilterKeys((held("p", 1),))),
    (Q, FilterKeys((), ((held("q", "x"), held("q", "y"), held("q", "z")),))),
    (check("q", "in", [True]), FilterKeys((held("q", True),))),
    (check("a.b", "eq", "c"), FilterKeys((held("b", "c"),))),
    (check("a.0.b", "eq", "c"), FilterKeys((held("b", "c"),))),
    (check("a..b", "eq", "c"), FilterKeys((held("b", "c"),))),
    (check("a.", "eq", "c"), FilterKeys((held("", "c"),))),
    (check("tag", "eq", " Work"), FilterKeys((), ((tag("work"), held("tag", " Work")),))),
    (check("tag_prefix", "eq", "Work"), FilterKeys((tag("work"),))),
    (check("category", "eq", "Food"), FilterKeys((), ((FilterKey("category", "food"), held("category", "Food")),))),
    (check("type", "eq", "Habit"), FilterKeys((tag("type Habit"),))),
    (check("session_id", "eq", "s1"), FilterKeys((tag("session s1"),))),
    (check("speaker", "in", ["Ana", "Ben"]), FilterKeys((), ((tag("speaker Ana"), tag("speaker Ben")),))),
    (check("conversation_id", "eq", str(UUID(int=7))), FilterKeys((tag(f"conversation {UUID(int=7)}"),))),
    ({"AND": [P, check("p", "contains", "x"), check("r", "eq", 2)]}, FilterKeys((held("p", 1), held("r", 2)))),
    (
        {"AND": [P, Q, check("s", "in", [1, 2])]},
        FilterKeys((held("p", 1),), ((held("s", 1), held("s", 2)), (held("q", "x"), held("q", "y"), held("q", "z")))),
    ),
    ({"OR": [P, check("r", "eq", 2)]}, FilterKeys((), ((held("p", 1), held("r", 2)),))),
    ({"OR": [{"AND": [P, Q]}, check("r", "eq", 2)]}, FilterKeys((), ((held("p", 1), held("r", 2)),))),
    # ranges: those of one path together, where a list may meet both ends with two elements
    (check("p", "lt", 1), FilterKeys((), (spanning("p", "number", None, 1),))),
    (check("a.p", "gte", 2**53 + 1), FilterKeys((), (spanning("p", "number", 2**53, None),))),
    (
        {"AND": [check("p", "gte", 1), {"AND": [check("p", "lt", 5), check("p", "gt", 3)]}]},
        FilterKeys((), (spanning("p", "number", 3, 5, tag("p many")),)),
    ),
    ({"AND": [check("p", "gt", 5), check("p", "lt", 1)]}, FilterKeys((tag("p many"),))),
    (
        {"AND": [check("p", "gt", 1), check("p", "lt", "2026-01-01")]},
        FilterKeys((), (spanning("p", "number", 1, None), spanning("p", "time", None, 1767225600.0))),
    ),
    (
        {"AND": [check("p", "gte", "2026-01-01"), check("p", "lt", "2026-01-01T01:00:00+00:00")]},
        FilterKeys((), (spanning("p", "time", 1767225600.0, 1767229200.0, tag("p many")),)),
    ),
    (
        {"OR": [P, check("p", "gt", 0)]},
        FilterKeys((), ((held("p", 1), *spanning("p", "number", 0, None)),)),
    ),
    # conditions that rows without any key may meet, and those without keys
    ({"OR": [P, check("p", "gt", "a")]}, FilterKeys()),
    (check("a.0", "gt", 1), FilterKeys()),
    (check("importance", "gt", 0.5), FilterKeys()),
    (check("type", "gt", "Habit"), FilterKeys()),
    ({"NOT": P}, FilterKeys()),
    (check("p", "ne", 1), FilterKeys()),
    (check("p", "nin", [1]), FilterKeys()),
    (check("p", "eq", None), FilterKeys()),
    (check("tag", "eq", None), FilterKeys()),
    (check("p", "in", []), FilterKeys()),
    (check("p", "contains", "x"), FilterKeys()),
    (check("tag", "icontains", "x"), FilterKeys()),
    *((check(f"a.{step}", "eq", "c"), FilterKeys()) for step in ("0", "-1", "+1", " 1")),
]


@pytest.mark.parametrize(("raw", "keys"), TREES)
def test_of_a_filter(raw: dict[str, Any], keys: FilterKeys) -> None:
    assert find_keys(Narrow(filters.read(raw))) == keys


NARROWED: list[tuple[Narrow, FilterKeys]] = [
    (Narrow(), FilterKeys()),
    (Narrow(tags=("a",)), FilterKeys((tag("a"),))),
    (Narrow(tags=("a", "b")), FilterKeys((), ((tag("a"), tag("b")),))),
    (Narrow(tags=("a", "b"), tag_mode="all"), FilterKeys((tag("a"), tag("b")))),
    (Narrow(categories=("c",)), FilterKeys((FilterKey("category", "c"),))),
    (
        Narrow(tags=("a",), categories=("c", "d")),
        FilterKeys((tag("a"),), ((FilterKey("category", "c"), FilterKey("category", "d")),)),
    ),
    (Narrow(types=("Habit", "Style")), FilterKeys((), ((tag("type Habit"), tag("type Style")),))),
    (Narrow(exclude_tags=("a",), min_confidence=0.9, without=("run_id",)), FilterKeys()),
]


@pytest.mark.parametrize(("narrow", "keys"), NARROWED)
def test_of_what_a_caller_narrows_by(narrow: Narrow, keys: FilterKeys) -> None:
    assert find_keys(narrow) == keys


# -- ranges -----------------------------------------------------------------------------------------------------------

NUMBERS = [0, -0.0, 1, 1.0, 2.5, -3, 1e-310, 5e-324, 2**53 + 1, 1e305, -1.7e308, 10**308]
VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20) | st.sampled_from(NUMBERS)


@given(VALUES, VALUES, VALUES)
def test_every_value_of_a_range_carries_one_of_its_keys(one: float, other: float, value: float) -> None:
    low, high = sorted((one, other))
    inside = low <= value <= high
    for begin, end, meant in ((low, high, inside), (low, None, low <= value), (None, high, value <= high)):
        words = indexed_conditions.cover_range("n", "number", begin, end)
        assert len(words) == len(set(words)) <= 350
        if meant:
            assert set(words) & set(value_keys("n", "number", value)), (begin, end, value)


@given(st.floats(-1e290, 1e290), st.floats(1e-4, 1), st.booleans())
def test_what_lies_outside_by_more_than_the_longest_key_tells_carries_none(value: float, by: float, up: bool) -> None:
    outside = value + (abs(value) * by + 1e-9) * (1 if up else -1)
    words = indexed_conditions.cover_range("n", "number", None if up else value, value if up else None)
    assert not set(words) & set(value_keys("n", "number", outside))


def test_there_is_no_key_for_an_empty_range() -> None:
    assert indexed_conditions.cover_range("n", "number", 2, 1) == []
    assert len(value_keys("n", "time", 0.0)) == len(indexed_conditions.PREFIX_BITS) == 6


def test_another_name_or_kind_has_other_keys() -> None:
    words = [set(value_keys(*of, 5.0)) for of in (("n", "number"), ("m", "number"), ("n", "time"))]
    assert not words[0] & words[1]
    assert not words[0] & words[2]


EXPRESSION = re.compile(r"memory_filter_keys\((?:m\.)?workspace_id,.*?, true\)")
"""What the index of filter keys holds of a row, in SQL without line breaks."""


def test_the_functions_read_the_expression_that_is_indexed() -> None:
    """The planner uses the index only for exactly its expression."""
    written = []
    for name in ("memories/tables.sql", "search/functions/ids_with_keys.sql", "search/functions/tag_ids.sql"):
        sql = " ".join((Path(service.__file__).parent / name).read_text().split()).replace("( ", "(")
        written += [found.replace("m.", "") for found in EXPRESSION.findall(sql)]
    assert len(written) == 3
    assert len(set(written)) == 1, written
    columns = {column: word for word, column in re.findall(r"'(\w+) ' \|\| (\w+)", written[0])}
    assert columns == indexed_conditions.KEY_COLUMNS


# -- ranges of columns -------------------------------------------------------------------------------------------------

MAY, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6))
SINCE, UNTIL = check("timestamp", "gte", MAY.isoformat()), check("timestamp", "lt", JUNE.isoformat())
BEFORE_ALL = moments.FIRST - timedelta(days=1)
ONE = str(UUID(int=1))

FOUND: list[tuple[dict[str, Any], tuple[ColumnRange, ...]]] = [
    (SINCE, (ColumnRange("timestamp", MAY),)),
    ({"AND": [SINCE, {"AND": [UNTIL]}]}, (ColumnRange("timestamp", MAY, JUNE - TIME_STEP),)),
    ({"AND": [SINCE, check("timestamp", "gt", JUNE.isoformat())]}, (ColumnRange("timestamp", JUNE + TIME_STEP),)),
    (check("created_at", "eq", MAY.isoformat()), (ColumnRange("created_at", MAY, MAY),)),
    (check("created_at", "lt", "0001-01-01"), (ColumnRange("created_at", None, BEFORE_ALL - TIME_STEP),)),
    (check("created_at", "gt", "9999-12-31T23:59:59.999999Z"), (ColumnRange("created_at", moments.END + TIME_STEP),)),
    (check("importance", "gt", 0.5), (ColumnRange("importance", math.nextafter(0.5, 1)),)),
    (check("importance", "lte", 1), (ColumnRange("importance", None, 1),)),
    (check("id", "in", [ONE]), (ColumnRange("id", among=(UUID(ONE),)),)),
    (
        {"AND": [check("user_id", "eq", "ana"), check("importance", "gte", 0.9)]},
        (ColumnRange("user_id", among=("ana",)), ColumnRange("importance", 0.9)),
    ),
    # what bounds nothing
    ({"OR": [SINCE, check("importance", "gt", 0.9)]}, ()),
    ({"NOT": SINCE}, ()),
    (check("timestamp", "ne", MAY.isoformat()), ()),
    (check("timestamp", "eq", None), ()),
    (check("id", "nin", [ONE]), ()),
    (check("user_id", "gt", "ana"), ()),
    (check("updated_at", "gt", MAY.isoformat()), ()),
    (check("metadata.importance", "gt", 0.9), ()),
]


@pytest.mark.parametrize(("raw", "bounds"), FOUND)
def test_ranges_of_a_filter(raw: dict[str, Any], bounds: tuple[ColumnRange, ...]) -> None:
    assert find_column_ranges(Narrow(filters.read(raw)), EVER) == bounds


def test_ranges_of_a_window() -> None:
    found = find_column_ranges(Narrow(filters.read(UNTIL)), Window(MAY, JUNE))
    assert found == (ColumnRange("timestamp", MAY, JUNE - TIME_STEP),)
    assert time_span(found) == (MAY, JUNE - TIME_STEP)
    assert time_span(find_column_ranges(Narrow(), Window(None, JUNE))) == (None, JUNE - TIME_STEP)
    assert time_span(find_column_ranges(Narrow(filters.read(check("importance", "gt", 1))), EVER)) == (None, None)
    assert find_column_ranges(Narrow(), EVER) == ()

"""The filter keys of a question, of which no row that it asks for may lack one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import service
from service.domain import filters
from service.domain.query import Narrow
from service.search import filter_keys
from service.search.filter_keys import FilterKey, FilterKeys, KeyGroup, find_keys


def check(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def held(word: str, value: Any) -> FilterKey:
    return FilterKey("metadata", word, value)


def tag(word: str) -> FilterKey:
    return FilterKey("word", word)


def spanning(name: str, sort: Any, low: float | None, high: float | None, *more: FilterKey) -> KeyGroup:
    return (*(tag(word) for word in filter_keys.covering(name, sort, low, high)), *more)


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


# -- random rows and filters, with both rules written down once more --------------------------------------------------

WORDS = st.sampled_from(["a", "b", "B ", "0", "1", ""])
NUMBERS = [0, -0.0, 1, 1.0, 2.5, -3, 1e-310, 5e-324, 2**53 + 1, 1e305, -1.7e308, 10**308]
TIMES = ["2026-01-01", "2026-01-01T09:00:00Z", "2026-01-01 10:00:00+02:00", "1969-07-20", "0001-01-01"]
SINGLE = st.none() | st.booleans() | st.sampled_from([*NUMBERS, *TIMES, "a", "b", "B ", "1"])
JSON = st.recursive(SINGLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))
STEPS = st.lists(st.sampled_from(["a", "b", "0", "1", ""]), min_size=1, max_size=3)
PATHS = STEPS.map(".".join).filter(lambda name: name.strip("."))
METADATA = st.dictionaries(WORDS | PATHS | st.sampled_from(["tag", "category"]), JSON, max_size=4)
ASKED = SINGLE.filter(lambda value: value is not None)
LEAF = (
    st.builds(check, PATHS | st.sampled_from(["tag", "category"]), st.just("eq"), st.sampled_from(["a", "b", "B "]))
    | st.builds(check, PATHS, st.sampled_from(["eq", "ne"]), SINGLE)
    | st.builds(check, PATHS, st.sampled_from(["in", "nin"]), st.lists(ASKED, max_size=3))
    | st.builds(check, st.just("type"), st.just("eq"), st.sampled_from(["Habit", "Style"]))
    | st.builds(check, PATHS, st.sampled_from(["gt", "gte", "lt", "lte"]), st.sampled_from([*NUMBERS, *TIMES, "a"]))
)
TREE = st.recursive(
    LEAF,
    lambda inner: (
        st.builds(lambda name, parts: {name: parts}, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=1))
        | st.builds(lambda part: {"NOT": part}, inner)
    ),
    max_leaves=6,
)
ROW = st.fixed_dictionaries(
    {
        "tag": st.lists(st.sampled_from("ab")),
        "category": st.lists(st.sampled_from("ab")),
        "type": st.sampled_from(["Habit", "Style"]),
        "metadata": METADATA,
    }
)


def alike(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def meets(row: Mapping[str, Any], raw: Mapping[str, Any]) -> bool:
    if "NOT" in raw:
        return not meets(row, raw["NOT"])
    if "AND" in raw:
        return all(meets(row, each) for each in raw["AND"])
    if "OR" in raw:
        return any(meets(row, each) for each in raw["OR"])
    name, operator, value = raw["field"], raw["operator"], raw["value"]
    if operator in ("ne", "nin"):
        return not meets(row, check(name, operator.replace("n", "", 1) if operator == "nin" else "eq", value))
    if name == "type":
        return bool(row["type"] == value)
    stands = _at(row["metadata"], name)
    if operator in SIGNS:
        return any(_stands(operator, each, value) for each in (stands if isinstance(stands, list) else [stands]))
    if value is None:
        return stands is None or stands == []
    wanted = value if operator == "in" else [value]
    there = stands if isinstance(stands, list) else [stands]
    words = {"tag": row["tag"], "category": row["category"]}.get(name, [])
    return any(alike(each, one) for one in wanted for each in there) or any(
        str(one).strip().lower() in words for one in wanted
    )


SIGNS = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def _stands(operator: str, value: Any, wanted: Any) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        if (moment := filters.iso_time(wanted)) is not None:
            stored = filters.iso_time(value)
            return stored is not None and bool(SIGNS[operator](stored, moment))
        return bool(SIGNS[operator](value, wanted))
    numbers = [each for each in (value, wanted) if isinstance(each, int | float) and not isinstance(each, bool)]
    return len(numbers) == 2 and bool(SIGNS[operator](value, wanted))


def _at(metadata: Any, name: str) -> Any:
    if metadata.get(name) is not None or name in metadata:
        return metadata[name]
    inside = metadata
    for step in name.split("."):
        if isinstance(inside, dict) and step in inside:
            inside = inside[step]
        elif isinstance(inside, list) and step.isdigit() and int(step) < len(inside):
            inside = inside[int(step)]
        else:
            return None
    return inside


def keys_of(row: Mapping[str, Any]) -> list[FilterKey]:
    """As `memory_filter_keys` in the database."""
    words = [tag(each) for each in row["tag"]] + [FilterKey("category", each) for each in row["category"]]
    words.append(tag(f"type {row['type']}"))
    for key, value in ((key, value) for inside in _objects(row["metadata"]) for key, value in inside.items()):
        name, among = key.rpartition(".")[2], value if isinstance(value, list) else [value]
        words += [held(name, each) for each in among if not isinstance(each, list | dict)]
        ordered = [found for each in among if (found := sorted_by(each)) is not None]
        words += [tag(word) for sort, place in ordered for word in filter_keys.of_value(name, sort, place)]
        words += [tag(filter_keys.of_list(name))] if len(ordered) > 1 else []
    return words


def sorted_by(value: Any) -> tuple[filter_keys.RangeKind, float] | None:
    if isinstance(value, str):
        moment = filters.iso_time(value)
        return None if moment is None else ("time", moment.timestamp())
    return ("number", value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def carries(row: Mapping[str, Any], keys: FilterKeys) -> bool:
    def has(key: FilterKey) -> bool:
        return any((each.kind, each.word) == (key.kind, key.word) and alike(each.value, key.value) for each in have)

    have = keys_of(row)
    return all(map(has, keys.all_of)) and all(any(map(has, group)) for group in keys.any_of)


@given(ROW, TREE)
def test_a_row_that_meets_a_filter_carries_its_keys(row: dict[str, Any], raw: dict[str, Any]) -> None:
    if meets(row, raw):
        assert carries(row, find_keys(Narrow(filters.read(raw))))


@given(ROW, st.lists(st.sampled_from("ab"), min_size=1), st.sampled_from(["any", "all"]))
def test_and_its_tags(row: dict[str, Any], tags: list[str], mode: Any) -> None:
    enough = all if mode == "all" else any
    if enough(each in row["tag"] for each in tags):
        assert carries(row, find_keys(Narrow(tags=tuple(tags), tag_mode=mode)))


# -- ranges -----------------------------------------------------------------------------------------------------------

VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20) | st.sampled_from(NUMBERS)


@given(VALUES, VALUES, VALUES)
def test_every_value_of_a_range_carries_one_of_its_keys(one: float, other: float, value: float) -> None:
    low, high = sorted((one, other))
    inside = low <= value <= high
    for begin, end, meant in ((low, high, inside), (low, None, low <= value), (None, high, value <= high)):
        words = filter_keys.covering("n", "number", begin, end)
        assert len(words) == len(set(words)) <= 350
        if meant:
            assert set(words) & set(filter_keys.of_value("n", "number", value)), (begin, end, value)


@given(st.floats(-1e290, 1e290), st.floats(1e-4, 1), st.booleans())
def test_what_lies_outside_by_more_than_the_longest_key_tells_carries_none(value: float, by: float, up: bool) -> None:
    outside = value + (abs(value) * by + 1e-9) * (1 if up else -1)
    words = filter_keys.covering("n", "number", None if up else value, value if up else None)
    assert not set(words) & set(filter_keys.of_value("n", "number", outside))


def test_there_is_no_key_for_an_empty_range() -> None:
    assert filter_keys.covering("n", "number", 2, 1) == []
    assert len(filter_keys.of_value("n", "time", 0.0)) == len(filter_keys.PREFIX_BITS) == 6


def test_another_name_or_kind_has_other_keys() -> None:
    words = [set(filter_keys.of_value(*of, 5.0)) for of in (("n", "number"), ("m", "number"), ("n", "time"))]
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
    assert columns == filter_keys.COLUMNS

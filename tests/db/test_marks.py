"""Which marks does a question need? Never one that a row it asks for could lack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import filters
from service.domain.marks import Mark, Marks, needed
from service.domain.query import Narrow


def check(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


def held(word: str, value: Any) -> Mark:
    return Mark("metadata", word, value)


def tag(word: str) -> Mark:
    return Mark("tag", word)


P, Q = check("p", "eq", 1), check("q", "in", ["x", "y", "z"])

TREES: list[tuple[dict[str, Any], Marks]] = [
    (P, Marks((held("p", 1),))),
    (Q, Marks((), (held("q", "x"), held("q", "y"), held("q", "z")))),
    (check("q", "in", [True]), Marks((held("q", True),))),
    (check("a.b", "eq", "c"), Marks((held("b", "c"),))),
    (check("a.0.b", "eq", "c"), Marks((held("b", "c"),))),
    (check("tag", "eq", " Work"), Marks((), (tag("work"), held("tag", " Work")))),
    (check("tag_prefix", "eq", "Work"), Marks((tag("work"),))),
    (check("category", "eq", "Food"), Marks((), (Mark("category", "food"), held("category", "Food")))),
    ({"AND": [P, check("p", "gt", 0), check("r", "eq", 2)]}, Marks((held("p", 1), held("r", 2)))),
    ({"AND": [P, Q, check("s", "in", [1, 2])]}, Marks((held("p", 1),), (held("s", 1), held("s", 2)))),
    ({"OR": [P, check("r", "eq", 2)]}, Marks((), (held("p", 1), held("r", 2)))),
    ({"OR": [{"AND": [P, Q]}, check("r", "eq", 2)]}, Marks((), (held("p", 1), held("r", 2)))),
    # what rows without any mark may meet, and what no mark tells
    ({"OR": [P, check("p", "gt", 0)]}, Marks()),
    ({"NOT": P}, Marks()),
    (check("p", "ne", 1), Marks()),
    (check("p", "nin", [1]), Marks()),
    (check("p", "eq", None), Marks()),
    (check("tag", "eq", None), Marks()),
    (check("p", "in", []), Marks()),
    (check("p", "lt", 1), Marks()),
    (check("p", "contains", "x"), Marks()),
    (check("tag", "icontains", "x"), Marks()),
    (check("type", "eq", "Habit"), Marks()),
    (check("type", "in", ["Habit", "Style"]), Marks()),
    *((check(f"a.{step}", "eq", "c"), Marks()) for step in ("0", "-1", "+1", " 1")),
]


@pytest.mark.parametrize(("raw", "marks"), TREES)
def test_of_a_filter(raw: dict[str, Any], marks: Marks) -> None:
    assert needed(Narrow(filters.read(raw))) == marks


NARROWED: list[tuple[Narrow, Marks]] = [
    (Narrow(), Marks()),
    (Narrow(tags=("a",)), Marks((tag("a"),))),
    (Narrow(tags=("a", "b")), Marks((), (tag("a"), tag("b")))),
    (Narrow(tags=("a", "b"), tag_mode="all"), Marks((tag("a"), tag("b")))),
    (Narrow(categories=("c",)), Marks((Mark("category", "c"),))),
    (Narrow(tags=("a",), categories=("c", "d")), Marks((tag("a"),), (Mark("category", "c"), Mark("category", "d")))),
    (Narrow(exclude_tags=("a",), types=("Habit",), without=("run_id",)), Marks()),
]


@pytest.mark.parametrize(("narrow", "marks"), NARROWED)
def test_of_what_a_caller_narrows_by(narrow: Narrow, marks: Marks) -> None:
    assert needed(narrow) == marks


# -- random rows and filters, with both rules written down once more --------------------------------------------------

WORDS = st.sampled_from(["a", "b", "B ", "0", "1"])
SINGLE = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5, "a", "b", "B ", "1"])
JSON = st.recursive(SINGLE, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3))
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1"]), min_size=1, max_size=3).map(".".join)
METADATA = st.dictionaries(WORDS | PATHS | st.sampled_from(["tag", "category"]), JSON, max_size=4)
ASKED = SINGLE.filter(lambda value: value is not None)
LEAF = (
    st.builds(check, PATHS | st.sampled_from(["tag", "category"]), st.just("eq"), st.sampled_from(["a", "b", "B "]))
    | st.builds(check, PATHS, st.sampled_from(["eq", "ne"]), SINGLE)
    | st.builds(check, PATHS, st.sampled_from(["in", "nin"]), st.lists(ASKED, max_size=3))
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
    {"tag": st.lists(st.sampled_from("ab")), "category": st.lists(st.sampled_from("ab")), "metadata": METADATA}
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
    stands = _at(row["metadata"], name)
    if value is None:
        return stands is None or stands == []
    wanted = value if operator == "in" else [value]
    there = stands if isinstance(stands, list) else [stands]
    words = {"tag": row["tag"], "category": row["category"]}.get(name, [])
    return any(alike(each, one) for one in wanted for each in there) or any(
        str(one).strip().lower() in words for one in wanted
    )


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


def borne(row: Mapping[str, Any]) -> list[Mark]:
    """As `memory_marks` in the database."""
    words = [tag(each) for each in row["tag"]] + [Mark("category", each) for each in row["category"]]
    pairs = [(key, value) for inside in _objects(row["metadata"]) for key, value in inside.items()]
    singles = ((key, each) for key, value in pairs for each in (value if isinstance(value, list) else [value]))
    return words + [held(key.rpartition(".")[2], each) for key, each in singles if not isinstance(each, list | dict)]


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def bears(row: Mapping[str, Any], marks: Marks) -> bool:
    def has(mark: Mark) -> bool:
        return any((each.kind, each.word) == (mark.kind, mark.word) and alike(each.value, mark.value) for each in have)

    have = borne(row)
    return all(map(has, marks.all_of)) and (not marks.any_of or any(map(has, marks.any_of)))


@given(ROW, TREE)
def test_whoever_meets_a_filter_bears_its_marks(row: dict[str, Any], raw: dict[str, Any]) -> None:
    if meets(row, raw):
        assert bears(row, needed(Narrow(filters.read(raw))))


@given(ROW, st.lists(st.sampled_from("ab"), min_size=1), st.sampled_from(["any", "all"]))
def test_and_its_tags(row: dict[str, Any], tags: list[str], mode: Any) -> None:
    enough = all if mode == "all" else any
    if enough(each in row["tag"] for each in tags):
        assert bears(row, needed(Narrow(tags=tuple(tags), tag_mode=mode)))

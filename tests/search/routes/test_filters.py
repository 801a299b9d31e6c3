"""A filter lets through what it says, on every route, and a wrong one is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain import filters
from tests.support.calls import store

QUESTION = "what is it about"
MEMORIES: dict[str, dict[str, Any]] = {
    "python": {"content": "User likes Python for ML", "tags": ["work", "lang:python"], "metadata": {"priority": 3}},
    "snake": {"content": "The PYTHON at the zoo is 4 m long", "tags": ["zoo"], "metadata": {"priority": 4.0}},
    "wild": {"content": "Saves 100% of _all_ invoices", "metadata": {"priority": "high", "done": False, "a..b": 2}},
    "boat": {
        "content": "The boat lies at Łódź",
        "importance": 0.9,
        "metadata": {
            "tag": "work",
            "who": {"name": "Ana", "langs": ["pt", "de"]},
            "a.b": 1,
            "e.g.": "x",
            "due": "2026-05-01",
        },
    },
    "bike": {
        "content": "The bike stands in the shed",
        "importance": 0.2,
        "metadata": {"category": "sport", "who": None, "done": True, "due": "2026-05-01T12:00:00+02:00", "n": 2**60},
    },
}


@pytest.fixture
async def name_of(client: AsyncClient) -> dict[str, str]:
    return {await store(client, **body, dedup=False): name for name, body in MEMORIES.items()}


async def everywhere(client: AsyncClient, name_of: dict[str, str], tree: dict[str, Any]) -> list[list[str]]:
    """The names that a filter lets through on each of the four routes."""
    scope, said = {"user_id": "alice"}, {"filters": json.dumps(tree)}
    answers = [
        await client.post("/v1/memories/search", json={**scope, "query": QUESTION, "filters": tree}),
        await client.post("/v1/memories/search", json={**scope, "filters": tree}),
        await client.get("/v1/memories/search", params={**scope, "query": QUESTION, **said}),
        await client.get("/v1/memories", params={**scope, **said}),
    ]
    return [sorted(name_of[each["id"]] for each in answer.json()["results"]) for answer in answers]


async def test_what_is_null_is_not_given(client: AsyncClient, name_of: dict[str, str]) -> None:
    """Some clients send every field there is."""
    nothing = dict.fromkeys(("field", "operator", "value", "AND", "OR", "NOT"))
    work = {**nothing, **on("tag", "eq", "work")}
    for tree in (
        work,
        {**nothing, "AND": [work]},
        {**nothing, "OR": [work]},
        {**nothing, "NOT": {**nothing, "NOT": work}},
    ):
        assert await everywhere(client, name_of, tree) == [["boat", "python"]] * 4, tree
    lacking = {**nothing, "field": "who.name", "operator": "eq"}
    assert await found(client, name_of, lacking) == ["bike", "python", "snake", "wild"]


async def found(client: AsyncClient, name_of: dict[str, str], tree: dict[str, Any]) -> list[str]:
    answer = await client.post("/v1/memories/search", json={"user_id": "alice", "filters": tree})
    assert answer.status_code == 200, answer.text
    return sorted(name_of[each["id"]] for each in answer.json()["results"])


def on(field: str, operator: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": operator, "value": value}


WORK = on("tag", "eq", "work")
HIGH = on("priority", "gte", 4)

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("equal", WORK, "boat python"),
    ("in", on("tag", "in", ["zoo", "lang:python"]), "python snake"),
    ("and", {"AND": [WORK, on("created_at", "gte", "2024-01-01")]}, "boat python"),
    ("and, none", {"AND": [WORK, on("created_at", "lt", "2024-01-01")]}, ""),
    ("or", {"OR": [WORK, HIGH]}, "boat python snake"),
    ("not keeps rows without the field", {"NOT": on("priority", "eq", 3)}, "bike boat snake wild"),
    ("contains", on("memory", "contains", "Python"), "python"),
    ("contains has no wildcards", on("memory", "contains", "%"), "wild"),
    ("nor underscores", on("memory", "contains", "_"), "wild"),
    ("nor backslashes", on("memory", "icontains", "\\"), ""),
    ("icontains", on("content", "icontains", "pyTHON"), "python snake"),
    ("icontains beyond ASCII", on("memory", "icontains", "łÓDŹ"), "boat"),
    ("icontains is no pattern", on("memory", "icontains", ".*"), ""),
    ("icontains special signs", on("memory", "icontains", "100% OF _"), "wild"),
    ("eq is case-sensitive", on("memory", "eq", "the bike stands in the shed"), ""),
    ("order of texts", {"AND": [on("memory", "gte", "T"), on("memory", "lt", "The c")]}, "bike boat snake"),
    ("prefix of a tag", on("tag_prefix", "eq", "Lang"), "python"),
    ("part of a tag", on("tags", "contains", "YTHO"), "python"),
    ("no tags", on("tag", "eq", None), "bike wild"),
    ("category in metadata", on("category", "eq", "sport"), "bike"),
    ("a number is a number", on("metadata.priority", "eq", 4), "snake"),
    ("and not its text", on("metadata.priority", "eq", "4"), ""),
    ("comparisons pass over other types", on("priority", "lt", 10), "python snake"),
    ("texts, too", on("priority", "lt", "z"), "wild"),
    ("ne holds without the field", on("priority", "ne", 3), "bike boat snake wild"),
    ("nin, too", on("priority", "nin", [3, "high"]), "bike boat snake"),
    ("nin of nothing", on("priority", "nin", []), "bike boat python snake wild"),
    ("in nothing", on("priority", "in", []), ""),
    ("in mixed types", on("priority", "in", [3, "high", True]), "python wild"),
    ("missing or null", on("metadata.who", "eq", None), "bike python snake wild"),
    ("there", on("metadata.who", "ne", None), "boat"),
    ("deeper", on("metadata.who.name", "eq", "Ana"), "boat"),
    ("an element of a list", on("who.langs", "eq", "de"), "boat"),
    ("one of its elements", on("who.langs", "in", ["es", "pt"]), "boat"),
    ("part of an element", on("who.langs", "icontains", "D"), "boat"),
    ("elements in order", on("who.langs", "gt", "p"), "boat"),
    ("an element by its place", on("who.langs.0", "eq", "pt"), "boat"),
    ("a key with a dot", on("metadata.a.b", "eq", 1), "boat"),
    ("two in a row", on("a..b", "eq", 2), "wild"),
    ("one at the end", on("metadata.e.g.", "eq", "x"), "boat"),
    ("a step without a name", on("who..b", "eq", 1), ""),
    ("false is not 0", on("done", "eq", 0), ""),
    ("false", on("done", "eq", False), "wild"),
    ("large numbers are exact", on("n", "eq", 2**60 + 1), ""),
    ("large numbers", on("n", "gt", 2**60 - 1), "bike"),
    ("times in metadata", on("due", "gt", "2026-05-01T09:59:00Z"), "bike"),
    ("a day there", on("due", "lte", "2026-05-01"), "boat"),
    ("columns of numbers", on("importance", "gt", 0.85), "boat"),
    ("counters that stand elsewhere", on("access_count", "gte", 0), "bike boat python snake wild"),
    ("ids", on("conversation_id", "eq", None), "bike boat python snake wild"),
    ("flags", on("archived", "eq", True), ""),
    ("the scope stays", on("user_id", "eq", "bob"), ""),
    ("nested", {"NOT": {"OR": [WORK, {"AND": [HIGH, {"NOT": on("tag", "eq", "x")}]}]}}, "bike wild"),
    ("injection by a name", on("x') OR ('1'='1", "eq", 1), ""),
    ("injection by a path", on("metadata.a'}'::text[] OR true --", "ne", 1), "bike boat python snake wild"),
    ("injection by a value", on("memory", "contains", "'; DROP TABLE memory; --"), ""),
    ("a name that looks like a parameter", on("metadata.:now", "eq", ":now"), ""),
    ("braces", on("metadata.{rows}", "eq", "{scope}"), ""),
]


async def test_what_a_filter_lets_through(client: AsyncClient, name_of: dict[str, str]) -> None:
    for name, tree, expected in CASES:
        assert await found(client, name_of, tree) == expected.split(), name


async def test_a_filter_says_the_same_on_every_route(client: AsyncClient, name_of: dict[str, str]) -> None:
    for _, tree, expected in CASES[::8]:
        assert await everywhere(client, name_of, tree) == [expected.split()] * 4


DEEP: dict[str, Any] = WORK
for _ in range(filters.MAX_DEPTH + 1):
    DEEP = {"NOT": DEEP}

WRONG: list[tuple[Any, str]] = [
    ({}, "filters"),
    ({"AND": [WORK], "OR": [WORK]}, "filters"),
    ({"AND": [WORK], **WORK}, "filters"),
    ({"AND": [WORK, on("tag", "like", "x")]}, "filters.AND[1].operator"),
    ({"AND": [WORK, {"field": "tag", "operator": "~", "value": "x"}]}, "filters.AND[1].operator"),
    ({"field": "tag", "op": "eq", "value": "x"}, "filters.op"),
    ({"AND": [WORK, on("importance", "gt", "high")]}, "filters.AND[1].value"),
    ({"AND": [WORK, on("importance", "gt", True)]}, "filters.AND[1].value"),
    ({"OR": [{"NOT": on("created_at", "gte", "soon")}]}, "filters.OR[0].NOT.value"),
    (on("created_at", "contains", "2024"), "filters.operator"),
    (on("importance", "icontains", "2"), "filters.operator"),
    (on("tag", "gt", "a"), "filters.operator"),
    (on("id", "eq", "17"), "filters.value"),
    (on("id", "gt", "17"), "filters.operator"),
    (on("archived", "eq", 1), "filters.value"),
    (on("memory", "contains", 5), "filters.value"),
    (on("x", "contains", None), "filters.value"),
    (on("x", "gt", None), "filters.value"),
    (on("x", "eq", [1]), "filters.value"),
    (on("x", "eq", {"y": 1}), "filters.value"),
    (on("x", "in", "abc"), "filters.value"),
    (on("x", "in", 5), "filters.value"),
    (on("x", "in", [1, None]), "filters.value[1]"),
    (on("x", "in", [[1]]), "filters.value[0]"),
    (on("type", "nin", ["Habit", 5]), "filters.value[1]"),
    (on("type", "nin", ["Habit", "habits"]), "filters.value[1]"),
    (on("type", "eq", "preference"), "filters.value"),
    ({"OR": [on("temporal_tag", "ne", "now")]}, "filters.OR[0].value"),
    (on("x", "in", list(range(filters.MAX_VALUES + 1))), "filters.value"),
    ({"OR": [on("x", "in", list(range(400)))] * 3}, "filters.OR[2].value"),
    ({"OR": [on("x", "icontains", "y")] * (filters.MAX_PATTERNS + 1)}, f"filters.OR[{filters.MAX_PATTERNS}].operator"),
    (on("x", "eq", "y" * (filters.MAX_TEXT + 1)), "filters.value"),
    (on("", "eq", 1), "filters.field"),
    (on("metadata", "eq", 1), "filters.field"),
    (on("metadata.", "eq", 1), "filters.field"),
    (on("..", "eq", 1), "filters.field"),
    (on(".".join("abcdefghi"), "eq", 1), "filters.field"),
    ({"operator": "eq", "value": 1}, "filters.field"),
    ({"field": "x", "value": 1}, "filters.operator"),
    ({"field": "x", "operator": "eq"}, "filters.value"),
    ({"field": 5, "operator": "eq", "value": 1}, "filters.field"),
    ({"field": None, "operator": "eq", "value": 1}, "filters.field"),
    ({"field": "x", "operator": None, "value": 1}, "filters.operator"),
    ({**WORK, "colour": "red"}, "filters.colour"),
    ({"AND": [{**WORK, "colour": "red"}]}, "filters.AND[0].colour"),
    ({"AND": []}, "filters.AND"),
    ({"AND": WORK}, "filters.AND"),
    ({"NOT": [WORK]}, "filters.NOT"),
    ({"and": [WORK]}, "filters.and"),
    ({"XOR": [WORK]}, "filters.XOR"),
    ({"AND": [WORK, {"NOT": {"Or": [WORK]}}]}, "filters.AND[1].NOT.Or"),
    ({"AND": [WORK], "value": 5}, "filters"),
    ([WORK], "filters"),
    ("tag", "filters"),
    ({"OR": [WORK] * (filters.MAX_PARTS + 1)}, "filters.OR"),
    ({"OR": [{"AND": [WORK] * 60}, {"AND": [WORK] * 60}]}, "filters.OR[1].AND[40]"),
    (DEEP, "filters" + ".NOT" * (filters.MAX_DEPTH + 1)),
]


async def test_a_wrong_filter_is_refused_at_its_place(client: AsyncClient) -> None:
    for tree, field in WRONG:
        body = {"user_id": "alice", "query": QUESTION, "filters": tree}
        posted = await client.post("/v1/memories/search", json=body)
        said = {"user_id": "alice", "filters": json.dumps(tree)}
        listed = await client.get("/v1/memories", params=said)
        if isinstance(tree, dict) and len(str(tree)) > 10_000:
            answers = [posted]  # too long for an address
        else:
            answers = [posted, listed, await client.get("/v1/memories/search", params={**said, "query": QUESTION})]
        for answer in answers:
            assert (answer.status_code, answer.json()["field"]) == (400, field), (tree, answer.text)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("{", "filters"),
        ("", "filters"),
        ("nul", "filters"),
        ("NaN", "filters"),
        ('"\\u0000"', "filters"),
        ("[" * 99, "filters"),
        ('{"field": "x", "operator": "eq", "value": NaN}', "filters.value"),
        ('{"AND": [{"field": "x\\u0000", "operator": "eq", "value": 1}]}', "filters.AND[0].field"),
        ("[" * 40 + "]" * 40, "filters" + "[0]" * 33),
    ],
)
async def test_what_is_no_json_is_refused(client: AsyncClient, text: str, field: str) -> None:
    for path in ("/v1/memories", "/v1/memories/search?query=x"):
        answer = await client.get(path, params={"user_id": "alice", "filters": text})
        assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text


async def test_the_widest_filter_is_answered(client: AsyncClient, name_of: dict[str, str]) -> None:
    """As many conditions, values and levels as there may be."""
    tree: dict[str, Any] = {"OR": [on(f"k{number}", "eq", number) for number in range(98)]}
    tree["OR"].append(on("priority", "in", list(range(10_000, 10_000 + filters.MAX_VALUES))))
    tree["OR"].append(on("memory", "icontains", "python at" + "É" * (filters.MAX_TEXT - 9)))
    assert await found(client, name_of, tree) == []
    tree["OR"][98] = on("priority", "in", [*range(filters.MAX_VALUES - 1), "high"])
    assert await found(client, name_of, tree) == ["python", "snake", "wild"]
    deep: dict[str, Any] = WORK
    for _ in range(filters.MAX_DEPTH):
        deep = {"NOT": deep}
    assert await found(client, name_of, deep) == ["boat", "python"]

"""The SQL of a filter is sound for every field, and its text depends on its shape alone."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from service.domain import filters
from service.domain.draft import EmbeddingStatus
from service.domain.filters import CHOICES, FIELDS, OPERATORS, Kind
from service.domain.scope import Scope
from service.memories.statements import visibility
from service.postgres import scopes
from service.postgres.engine import Database
from service.postgres.filters import COLUMNS, any_case, compile_filter
from service.postgres.template import typed_text

SAMPLE: dict[Kind, Any] = {
    "text": "it's %",
    "number": 2.5,
    "time": "2026-03-02T09:30:00+02:00",
    "flag": True,
    "id": str(uuid4()),
    "words": "work",
    "any": "2026-03-02",
}


EMPTY = """jsonb_populate_record(NULL::memory, '{"tags": [], "tag_prefixes": [], "categories": []}')"""
"""A row without a value in any column that may be without one."""


def test_the_words_of_a_vector_are_those_that_are_written() -> None:
    """Spelt out in the filters, which stand below the drafts."""
    assert CHOICES["embedding"] == tuple(EmbeddingStatus)


def every_operator(field: str, kind: Kind) -> list[dict[str, Any]]:
    value = CHOICES[field][0] if field in CHOICES else SAMPLE[kind]
    asked = [{"field": field, "operator": each, "value": value} for each in sorted(OPERATORS[kind])]
    listed = [{**each, "value": [each["value"]] * 2} if each["operator"] in ("in", "nin") else each for each in asked]
    return [*listed, {"field": field, "operator": "eq", "value": None}]


@pytest.mark.parametrize("field", [*FIELDS, "metadata.a", "metadata.a.b"])
async def test_every_field_takes_every_operator_of_its_kind(database: Database, workspace: UUID, field: str) -> None:
    """All are true or false for a row, never unknown: a condition or its opposite holds."""
    kind = FIELDS.get(field, "any")
    for raw in every_operator(field, kind):
        here = compile_filter("m", filters.read({"OR": [raw, {"NOT": raw}]}))
        async with database.read(workspace) as session:
            shape = typed_text(f"SELECT {here.sql} FROM {EMPTY} m")
            assert await session.scalar(shape, here.values) is True, raw


def test_every_special_column_is_a_field() -> None:
    assert set(COLUMNS) <= set(FIELDS)


def test_equal_shapes_share_their_text_and_hold_no_value() -> None:
    tree: dict[str, Any] = {
        "AND": [
            {"field": "metadata.{}", "operator": "gt", "value": "{}"},
            {"NOT": {"field": "tag", "operator": "in", "value": ["{}", "x{}"]}},
            {"field": "memory", "operator": "icontains", "value": "{}"},
        ]
    }
    first, second = (compile_filter("m", filters.read(_named(tree, word))) for word in ("quokka", "wombat"))
    assert first.sql == second.sql
    assert first.values != second.values
    assert "quokka" not in first.sql
    assert set(re.findall(r":(filter_\w+)", first.sql)) == set(first.values)


def _named(raw: Any, word: str) -> Any:
    if isinstance(raw, str):
        return raw.replace("{}", word)
    if isinstance(raw, list):
        return [_named(each, word) for each in raw]
    return {name: _named(each, word) for name, each in raw.items()} if isinstance(raw, dict) else raw


async def test_many_shapes_push_each_other_out(database: Database, workspace: UUID) -> None:
    scope = scopes.readable("m", Scope(workspace, "alice"))
    async with database.read(workspace) as session:
        for number in range(300):
            names = [f"k{bit}" if number >> bit & 1 else f"k{bit}.x" for bit in range(9)]
            raw = {"OR": [{"field": name, "operator": "eq", "value": 1} for name in names]}
            await visibility.most_important(session, scope & compile_filter("m", filters.read(raw)), limit=1)
    kept = visibility.MOST_IMPORTANT.fill.cache_info()
    assert kept.misses >= 300
    assert kept.maxsize is not None
    assert kept.currsize <= kept.maxsize < 300


@pytest.mark.parametrize(
    ("sought", "pattern"),
    [
        ("aB", "[Aa][Bb]"),
        ("1 %_", "1 %_"),
        ("a.b*", r"[Aa]\.[Bb]\*"),
        ("***:x", r"\*\*\*:[Xx]"),
        ("(?i)\\", r"\(\?[Ii]\)\\"),
        ("Łś", "[Łł][Śś]"),
        ("ß", "ß"),
        ("", ""),
        ("日本🎂", "日本🎂"),
    ],
)
def test_a_pattern_finds_just_the_text_in_any_case(sought: str, pattern: str) -> None:
    assert any_case(sought) == pattern
    assert re.fullmatch(pattern, sought.swapcase() if sought != "ß" else sought)

"""The functions that find candidates give nothing to another tenant, and the caller what the table says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest
from httpx2 import AsyncClient
from pgvector import SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import Text, bindparam, text
from sqlalchemy.types import ARRAY

from service.domain import filters
from service.language import lexemes
from service.postgres.engine import Database
from service.postgres.roles import APP
from service.postgres.vectors import TERM_DIMENSIONS
from service.search import indexed_conditions
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.filter_keys import value_keys

WORDS = ("heron", "quartz")
LEXICAL = text("""
    SELECT id FROM lexical_ids(:user, NULL, NULL, :channels, :in_context, CAST(:any_of_1 AS integer[]),
                               CAST(:any_of_2 AS integer[]), :query_bm25, 100, 50, :min_candidates)
""").bindparams(
    bindparam("query_bm25", type_=SPARSEVEC(TERM_DIMENSIONS)),
    bindparam("user", type_=Text()),
    bindparam("channels", type_=ARRAY(Text())),
)
FILTER_KEYS = """memory_filter_keys(:w, CAST(:tags AS text[]), '{}', CAST(:categories AS text[]), '{}',
                       CAST(:metadata AS jsonb), false)"""
NARROW = [
    text(f"SELECT narrow_ids(CAST(:user AS text), NULL, NULL, NULL, NULL, NULL, {groups}, :max_ids)")
    for groups in (f"{FILTER_KEYS}, '{{}}', '{{}}'", f"'{{}}', {FILTER_KEYS}, '{{}}'", f"'{{}}', '{{}}', {FILTER_KEYS}")
]
TAGS = text("SELECT id FROM tag_ids(NULL, NULL, NULL, NULL, CAST(:tags AS text[]), 100, 50)")


async def _store(client: AsyncClient, content: str, user: str = "iris", **more: object) -> UUID:
    answer = await client.post("/v1/memories", json={"content": content, "user_id": user, "dedup": False, **more})
    assert answer.status_code == 201, answer.text
    return UUID(answer.json()["results"][0]["id"])


async def _words(
    database: Database,
    workspace: UUID,
    words: Sequence[str],
    *,
    user: str | None = None,
    channels: list[str] | None = None,
    in_context: bool = False,
    other_words: Sequence[str] = (),
    min_candidates: int = 1,
) -> list[UUID]:
    terms, others = ([lexemes.term_id(word) for word in each] for each in (words, other_words))
    query_bm25 = SparseVector({term: 1.0 + at for at, term in enumerate([*terms, *others])}, TERM_DIMENSIONS)
    values: dict[str, Any] = {
        "user": user,
        "channels": channels,
        "in_context": in_context,
        "any_of_1": terms,
        "query_bm25": query_bm25,
    }
    values |= {"any_of_2": others, "min_candidates": min_candidates}
    async with database.read(workspace) as session:
        return list(await session.scalars(LEXICAL, values))


async def test_words_are_found_best_first_in_the_callers_workspace_only(
    client: AsyncClient, other_client: AsyncClient, database: Database, tenant: Tenant, stranger: Tenant
) -> None:
    both = await _store(client, "A heron on quartz")
    one = await _store(client, "A heron by the lake")
    foreign = await _store(other_client, "A heron on quartz")
    assert await _words(database, tenant.workspace_id, WORDS) == [both, one]
    assert await _words(database, stranger.workspace_id, WORDS) == [foreign]
    assert await _words(database, tenant.workspace_id, ["quartz"]) == [both]
    assert await _words(database, tenant.workspace_id, ["unheard"]) == []


async def test_words_of_the_turns_before(client: AsyncClient, database: Database, tenant: Tenant) -> None:
    said = [{"role": "user", "content": "Did you see the heron?"}, {"role": "assistant", "content": "Yes, at noon."}]
    answer = await client.post("/v1/memories", json={"messages": said, "infer": False, "user_id": "iris"})
    first, second = (UUID(each["id"]) for each in answer.json()["results"])
    assert await _words(database, tenant.workspace_id, ["heron"]) == [first]
    assert set(await _words(database, tenant.workspace_id, ["heron"], in_context=True)) == {first, second}


@pytest.mark.parametrize("in_context", [False, True])
async def test_a_word_and_one_of_other_words(
    client: AsyncClient, database: Database, tenant: Tenant, in_context: bool
) -> None:
    """Only rows with both, best first; unless they are too few."""
    texts = ("A heron by the lake", "A heron on quartz", "A heron on quartz, and quartz again", "Quartz and granite")
    ids = []
    for number, content in enumerate(texts):
        said = [{"role": "user", "content": content}, {"role": "assistant", "content": "I see."}]
        body = {"messages": said, "infer": False, "user_id": f"iris{number}"}
        ids.append((await client.post("/v1/memories", json=body)).json()["results"][in_context]["id"])
    lake, once, twice, _ = map(UUID, ids)

    async def found(min_candidates: int, **more: Any) -> list[UUID]:
        both: dict[str, Any] = {"other_words": ["quartz", "unheard"], "in_context": in_context, **more}
        met = await _words(database, tenant.workspace_id, ["heron"], min_candidates=min_candidates, **both)
        return [each for each in met if each in {lake, once, twice}]  # a context is that of either turn

    assert await found(2) == [twice, once]
    assert await found(7) == [twice, once, lake]
    assert await found(2, user="iris0") == [lake]


async def test_tags_in_the_callers_workspace_only(
    client: AsyncClient,
    other_client: AsyncClient,
    database: Database,
    tenant: Tenant,
    stranger: Tenant,
) -> None:
    found = {}
    for each, who in ((client, tenant), (other_client, stranger)):
        found[who] = await _store(each, "The boat is moored", tags=["harbour:north"])
    await _store(client, "Something else", tags=["kitchen"])
    for who, memory_id in found.items():
        async with database.read(who.workspace_id) as session:
            assert list(await session.scalars(TAGS, {"tags": ["harbour"]})) == [memory_id]
            assert list(await session.scalars(TAGS, {"tags": ["harbour:north", "absent"]})) == [memory_id]


async def _narrowed(
    database: Database, workspace: UUID, held: Mapping[str, Any], *, user: str | None = None, max_ids: int = 10
) -> list[UUID] | None:
    """Ids of rows with all of these filter keys, once as all_of and then each alone, as any_of_1 and any_of_2."""
    here = {"tags": [], "categories": [], "metadata": {}, **held}
    values = {"w": workspace, "user": user, "max_ids": max_ids, **here, "metadata": json.dumps(here["metadata"])}
    async with database.read(workspace) as session:
        found = [await session.scalar(each, values) for each in NARROW]
    assert found[0] == found[1] == found[2]
    return None if found[0] is None else sorted(found[0])


async def test_filter_keys_in_the_callers_workspace_and_scope_only(
    client: AsyncClient, other_client: AsyncClient, database: Database, tenant: Tenant, stranger: Tenant
) -> None:
    more: dict[str, Any] = {"tags": ["harbour:north"], "metadata": {"ship": {"name": "Ada", "masts": [1, 2.50, None]}}}
    mine = await _store(client, "The boat is moored", **more)
    theirs = await _store(client, "The boat is moored", user="noor", **more)
    foreign = await _store(other_client, "The boat is moored", **more)
    await _store(client, "Another thing", tags=["kitchen"], metadata={"name": "ada", "masts": "1", "1": True})
    here = tenant.workspace_id
    bearing: list[dict[str, Any]] = [
        {"tags": ["harbour"]},
        {"tags": ["harbour:north"]},
        {"metadata": {"name": "Ada"}},
        {"metadata": {"masts": 1.0}},
        {"metadata": {"masts": 2.5}},
    ]
    for held in bearing:
        assert await _narrowed(database, here, held) == sorted([mine, theirs]), held
        assert await _narrowed(database, here, held, user="noor") == [theirs], held
        assert await _narrowed(database, stranger.workspace_id, held) == [foreign], held
    assert await _narrowed(database, here, {"metadata": {"masts": 3}}) == []


async def test_more_rows_than_it_may_look_at_say_nothing(
    client: AsyncClient, database: Database, tenant: Tenant
) -> None:
    """Never a part of the rows for all of them. Where others' are too many, those of the scope are looked up alone."""
    mine = [await _store(client, f"Boat {number}", tags=["boat"]) for number in range(3)]
    await _store(client, "Boat 4", user="noor", tags=["boat"])
    here = tenant.workspace_id
    assert await _narrowed(database, here, {"tags": ["boat"]}, user="iris", max_ids=4) == sorted(mine)
    assert await _narrowed(database, here, {"tags": ["boat"]}, user="iris", max_ids=3) == sorted(mine)
    assert await _narrowed(database, here, {"tags": ["boat"]}, user="iris", max_ids=2) is None
    assert await _narrowed(database, here, {"tags": ["boat"]}, max_ids=3) is None
    assert await _narrowed(database, here, {"tags": ["boat"]}, user="nobody", max_ids=4) == []


@pytest.mark.parametrize(
    "call",
    [
        "lexical_ids(NULL, NULL, NULL, NULL, false, '{1}', '{2}', '{1:1}/1000000000', 1, 1, 1)",
        "tag_ids(NULL, NULL, NULL, NULL, '{a}', 1, 1)",
        "narrow_ids(NULL, NULL, NULL, NULL, NULL, NULL, '{1}', '{}', '{}', 1)",
    ],
)
async def test_without_a_workspace_they_refuse(owner_url: str, call: str) -> None:
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""), server_settings={"role": APP})
    with pytest.raises(asyncpg.PostgresError, match=r"loxodon\.workspace"):
        await connection.fetch(f"SELECT * FROM {call}")
    await connection.close()


async def test_equal_words_of_two_tenants_are_kept_apart_in_the_index(tables: Tables) -> None:
    keyed = """SELECT workspace_terms($1, '{7, 8}'),
                      memory_filter_keys($1, '{a}', '{b}', '{a}', '{c}', '{"a": ["a", 1, {"b": 1}]}', true)"""
    first, again, other = [(await tables.fetch(keyed, UUID(int=number)))[0] for number in (1, 1, 2)]
    assert first == again
    assert not set(first[0]) & set(other[0])
    assert not set(first[1]) & set(other[1])
    assert len(set(first[1])) == 7 + 2 * len(indexed_conditions.PREFIX_BITS)


NUMBERS = ["0", "-0.0", "1", "1.0", "0.1", "-3", "9007199254740993", "1e-310", "-5e-324", "1e300", "-1.7e308", "12e25"]
BEYOND = [("1e-1000", 0.0), ("-1e-1000", 0.0), ("1e1000", 1e308), ("-1e1000", -1e308)]
"""What jsonb holds and float64 does not, and where it stands."""

TIMES = ["2026-01-01", "2026-01-01T09:00:00Z", "2026-01-01 10:00:00.25+0200", "1969-07-20T20:17-04:00", "0001-01-01"]
NO_TIMES = ["2026-02-30", "2026-01-01T25:00", "0000-01-01", "2026-01-01 and more", "12026-01-01", "1"]

RANGED, EQUAL = (
    f"SELECT memory_filter_keys($1, '{{}}', '{{}}', '{{}}', $3, $2::jsonb, {ranged})" for ranged in (True, False)
)


async def test_the_database_computes_the_filter_keys_of_ranges_of_numbers_and_times(tables: Tables) -> None:
    here = UUID(int=1)

    async def computed(shape: str, written: str, words: Sequence[str | None] = ()) -> list[int]:
        return sorted((await tables.fetch(shape, here, written, list(words)))[0][0])

    placed: list[tuple[str, indexed_conditions.RangeKind, float]] = [(each, "number", float(each)) for each in NUMBERS]
    placed += [(each, "number", place) for each, place in BEYOND]
    for each in TIMES:
        moment = filters.iso_time(each)
        assert moment is not None
        placed.append((json.dumps(each), "time", moment.timestamp()))
    for written, sort, place in placed:
        row = f'{{"a": {{"x.n": {written}}}}}'
        words = value_keys("n", sort, place)
        assert await computed(RANGED, row) == await computed(EQUAL, row, words), written
    for each in [*map(json.dumps, NO_TIMES), "true", "null", '"a"']:
        row = f'{{"n": {each}}}'
        assert await computed(RANGED, row) == await computed(EQUAL, row), each
    row = '{"n": [1, "a", "2026-01-01"]}'
    words = [
        *value_keys("n", "number", 1),
        *value_keys("n", "time", 1767225600.0),
        "n many",
    ]
    assert await computed(RANGED, row) == await computed(EQUAL, row, words)
    words = ["type Habit", "role user"]
    assert await computed(RANGED, "{}", [words[0], None, words[1]]) == await computed(EQUAL, "{}", words)
    source = await tables.fetch("SELECT prosrc FROM pg_proc WHERE proname = 'iso_seconds'")
    assert filters.ISO_TIME in source[0][0]

"""Nothing outside workspace, scope, channel rule, validity and filter ever appears in an answer.

Hundreds of rows that differ in everything, hundreds of random questions, thousands with `make test-thorough`, and a
model in plain Python that says what each may see. The condition that all arms share is compared directly, then whole
searches and lists over HTTP, on the exact path, on the one by the vector index, and on the one by filter keys.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from httpx2 import AsyncClient

from service.domain import filters, sizes
from service.domain.query import Narrow, Query, ScopeId, Window
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText, content_hash
from service.language import lexemes, tags
from service.memories.statements import visibility
from service.postgres import scopes
from service.postgres.engine import Database
from service.postgres.template import typed_text
from service.runtime.resources import Resources
from service.search import indexed_conditions
from service.search.statements import search_plan
from service.search.statements.search_plan import SearchPlan
from tests.conftest import DIMENSION, SetClock, Tenant, new_tenant
from tests.fakes.embedder import AngleEmbedder
from tests.search.scores import explained_score
from tests.search.statements.naive import Case, NaiveRow, moment, sees
from tests.support.application import Tables, client_of, serving
from tests.thorough import many

ROWS = 400
CONDITIONS = many(300, 2_000)
SEARCHES = many(12, 60)
ROOT = UUID(int=7)

IDS: tuple[ScopeId, ...] = ("user_id", "agent_id", "run_id")
USERS = ("ana", "ben", None)
AGENTS = ("guide", None)
RUNS = ("r1", "r2", None)
CHANNELS = (GLOBAL_CHANNEL, "red", "blue")
TAGS = ("work", "work:atlas", "work/q", "home", "home:garden", "slack:user:u1")
CATEGORIES = ("travel", "food", "health")
TYPES = ("Decision", "Habit", "Context")
WORDS = ("boat", "Harbour", "ÄPFEL", "łódź", "100%", "a_b", "tea", "日本", "🎂")
VALUES: tuple[Any, ...] = (
    *(0, 1, 2.5, -3, 2**53, 2**53 + 1, True, False, None, "", "a", "B", "Äpfel", "a_b", "%", "1", "true"),
    *("2026-01-01", "2026-02-30", "2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z", "work"),
    *([], ["a", 1], [2.5, "2026-01-01"], ["Äpfel", None, True], {"x": 1}, {"x": ["a", "b"]}, {"x": {"y": "a"}}, [[1]]),
)
SCALARS = tuple(value for value in VALUES if not isinstance(value, list | dict) and value is not None)
TEXTS = tuple(value for value in SCALARS if isinstance(value, str))
KEYS = ("k", "l", "tag", "category", "k.x")
PATHS = ("k", "metadata.k", "l", "k.x", "metadata.k.x.y", "l.0", "metadata.tag", "nowhere", "k.x.1")
MOMENTS = tuple(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=7 * step) for step in range(30))
NOW = MOMENTS[15]


def make_row(dice: random.Random, number: int) -> NaiveRow:
    """The first of the caller's workspace, every fifth of another one."""
    begins, ends = sorted(dice.sample(MOMENTS, 2))
    return NaiveRow(
        id=str(uuid5(ROOT, str(number))),
        workspace=int(number % 5 == 4),
        user_id=dice.choice(USERS),
        agent_id=dice.choice(AGENTS),
        run_id=dice.choice(RUNS),
        channel=dice.choice(CHANNELS),
        content=f"{' '.join(dice.sample(WORDS, 3))} {number}",
        type=dice.choice(TYPES),
        importance=dice.randrange(11) / 10,
        fact_confidence=dice.choice([None, 0.2, 0.5, 0.9]),
        tags=dice.sample(TAGS, dice.choice([0, 1, 2])),
        categories=dice.sample(CATEGORIES, dice.choice([0, 1, 2])),
        metadata={key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.5},
        timestamp=dice.choice(MOMENTS),
        t_valid=begins if dice.random() < 0.3 else None,
        t_invalid=ends if dice.random() < 0.3 else None,
        expires_at=dice.choice(MOMENTS) if dice.random() < 0.2 else None,
        archived=dice.random() < 0.15,
        flagged=dice.random() < 0.05,
        has_vector=dice.random() < 0.9,
        in_talk=number % 3 == 0,
    )


def make_filter(dice: random.Random, depth: int = 0) -> dict[str, Any]:
    branch = dice.random()
    if depth < 4 and branch < 0.45:
        if branch < 0.12:
            return {"NOT": make_filter(dice, depth + 1)}
        parts = [make_filter(dice, depth + 1) for _ in range(dice.randint(1, 3))]
        return {"AND" if branch < 0.28 else "OR": parts}
    name, operators, values = dice.choice(LEAVES)
    operator = dice.choice(operators)
    if operator in ("in", "nin"):
        value: Any = dice.sample(values, dice.randint(0, min(3, len(values))))
    elif operator in ("contains", "icontains"):
        value = dice.choice([str(each)[: dice.randint(0, 4)].swapcase() for each in values if isinstance(each, str)])
    elif operator in ("gt", "gte", "lt", "lte"):
        value = dice.choice([each for each in values if not isinstance(each, bool)])
    else:
        value = None if dice.random() < 0.15 else dice.choice(values)
    return {"field": name, "operator": operator, "value": value}


EQUAL, ORDER, PART = ["eq", "ne", "in", "nin"], ["gt", "gte", "lt", "lte"], ["contains", "icontains"]
INSTANTS = [each.isoformat() for each in MOMENTS]
LEAVES: list[tuple[str, list[str], Sequence[Any]]] = [
    *((path, [*EQUAL, *ORDER, *PART], SCALARS) for path in PATHS),
    *((name, [*EQUAL, *PART], [*TAGS, "WORK", "x"]) for name in ("tag", "tags")),
    ("category", [*EQUAL, *PART], [*CATEGORIES, "a"]),
    ("memory", [*EQUAL, *ORDER, *PART], WORDS),
    ("type", EQUAL, TYPES),
    ("channel", [*EQUAL, *ORDER, *PART], CHANNELS),
    ("user_id", EQUAL, ("ana", "ben")),
    ("importance", [*EQUAL, *ORDER], (0, 0.3, 0.5, 1)),
    ("fact_confidence", [*EQUAL, *ORDER], (0.2, 0.5, 1)),
    *((name, [*EQUAL, *ORDER], INSTANTS) for name in ("timestamp", "t_valid", "t_invalid", "expires_at")),
    ("archived", EQUAL, (True, False)),
]


def make_case(dice: random.Random) -> Case:
    """Every option now and then, seldom all at once."""
    ids = {name: value for name, value in (("user_id", dice.choice(USERS)), ("agent_id", dice.choice(AGENTS))) if value}
    if not ids or dice.random() < 0.1:
        ids["run_id"] = "r1"
    options: dict[str, Any] = {}
    channel = dice.choice([None, "red", "blue", GLOBAL_CHANNEL])

    def sometimes(name: str, value: Any, chance: float = 0.2) -> None:
        if dice.random() < chance:
            options[name] = value

    sometimes("filters", make_filter(dice), 0.6)
    sometimes("tags", dice.sample([*TAGS, "slack", "slack:user"], dice.randint(1, 2)))
    sometimes("exclude_tags", dice.sample(TAGS, 1), 0.15)
    sometimes("tag_match", "exact", 0.5)
    sometimes("tag_mode", "all", 0.5)
    sometimes("categories", dice.sample(CATEGORIES, dice.randint(1, 2)), 0.1)
    sometimes("types", dice.sample(TYPES, 2), 0.1)
    sometimes("min_confidence", dice.choice([0, 0.5, 0.95]), 0.1)
    sometimes("start", dice.choice(INSTANTS[:12]), 0.1)
    sometimes("end", dice.choice(INSTANTS[12:]), 0.1)
    sometimes("include_archived", True)
    sometimes("scope_mode", "exact", 0.1)
    sometimes("include_shared", dice.random() < 0.8, 0.4)
    if "scope_mode" not in options:
        sometimes("scope_match", "any", 0.4)
    if dice.random() < 0.1:
        ids = {}
        options = {name: value for name, value in options.items() if name != "include_shared"} | {"shared": True}
    if dice.random() < 0.2:
        options["valid_at"] = dice.choice(INSTANTS)
    elif dice.random() < 0.3:
        options["validity"] = dice.choice(["demote", "ignore"])
    if channel is None and dice.random() < 0.4:
        options["channels"] = dice.sample(["red", "blue", "green"], dice.randint(1, 2))
    return Case(ids, channel, options)


def columns(row: NaiveRow, workspaces: Sequence[UUID]) -> dict[str, Any]:
    weights = lexemes.weights(row.content)
    sparse = ",".join(f"{term}:{weight}" for term, weight in sorted(weights.items()))
    shared = ("id", "user_id", "agent_id", "run_id", "channel", "content", "type", "importance", "fact_confidence")
    return {
        **{name: getattr(row, name) for name in (*shared, "categories", "metadata", "archived")},
        **{name: iso(getattr(row, name)) for name in ("timestamp", "t_valid", "t_invalid", "expires_at")},
        "workspace_id": str(workspaces[row.workspace]),
        "hash": content_hash(CleanText(row.content)),
        "terms": sorted(weights),
        "bm25": f"{{{sparse}}}/1000000000",
        "context_terms": sorted(weights) if row.in_talk else [],
        "context_bm25": f"{{{sparse}}}/1000000000" if row.in_talk else None,
        "type_confidence": 1.0,
        "classification_source": "explicit",
        "importance_level": max(1, round(row.importance * 10)),
        "tags": row.tags,
        "tag_prefixes": tags.prefixes(row.tags),
        "mentions": [],
        "enrichment_attempts": 0,
        "embedding_status": "stored" if row.has_vector else "queued",
        "review_status": "flagged" if row.flagged else None,
        "version": 1,
        "created_at": iso(NOW),
        "updated_at": iso(NOW),
    }


def iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


WIDEST = Case(
    {"agent_id": "guide"},
    None,
    {"channels": ["red", "blue"], "include_archived": True, "validity": "ignore", "include_shared": True},
)
"""Enough rows that the vector index fills an arm on its own."""


async def insert(tables: Tables, table: str, rows: list[dict[str, Any]]) -> None:
    names = ", ".join(f'"{name}"' for name in rows[0])
    await tables.fetch(
        f"INSERT INTO {table} ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::{table}, $1::jsonb)",
        json.dumps(rows),
    )


@pytest.fixture(scope="module")
async def tenant(database: Database) -> Tenant:
    """Of all tests here: they only read."""
    return await new_tenant(database)


@pytest.fixture(scope="module")
async def world(database: Database, tables: Tables, tenant: Tenant) -> list[NaiveRow]:
    dice = random.Random(1)
    rows = [make_row(dice, number) for number in range(ROWS)]
    workspaces = (tenant.workspace_id, (await new_tenant(database)).workspace_id)
    embedder = AngleEmbedder(DIMENSION)
    memories = [columns(row, workspaces) for row in rows]
    await insert(tables, "memory", memories)
    keys = [{"workspace_id": each["workspace_id"], "memory_id": each["id"]} for each in memories]
    stat = {"relevance": 1, "salience": 0.5, "access_count": 0, "base_relevance": 1, "base_salience": 0.5}
    await insert(tables, "memory_stat", [{**key, **stat, "last_accessed": iso(NOW)} for key in keys])
    owned = ("user_id", "agent_id", "run_id", "channel", "created_at")
    vectors = [
        {
            **key,
            **{name: each[name] for name in owned},
            "generation": 1,
            "kind": kind,
            "embedding": str([round(float(value), 4) for value in embedder.vector(row.content)]),
        }
        for key, each, row in zip(keys, memories, rows, strict=True)
        for kind in ("text", "context")
        if row.has_vector and (kind == "text" or row.in_talk)
    ]
    await insert(tables, "memory_vector", vectors)
    await name_them(tables, memories)
    return rows


async def name_them(tables: Tables, memories: list[dict[str, Any]]) -> None:
    """Every second memory names Zenobia, each tenant's own."""
    entities = {each: uuid5(UUID(each), "Zenobia") for each in {each["workspace_id"] for each in memories}}
    named = {"name": "Zenobia", "name_key": "zenobia", "type": "person", "extracted_by": "test"}
    rows = [{"workspace_id": each, "id": str(entity), **named} for each, entity in entities.items()]
    for row in rows:
        names = ", ".join(row)
        given = ", ".join(f"${at}" for at in range(1, len(row) + 1))
        await tables.fetch(f"INSERT INTO entity ({names}) VALUES ({given})", *row.values())
    links = [
        {
            "workspace_id": each["workspace_id"],
            "memory_id": each["id"],
            "entity_id": str(entities[each["workspace_id"]]),
        }
        for each in memories[::2]
    ]
    await tables.fetch(
        "INSERT INTO memory_entity (workspace_id, memory_id, entity_id) SELECT workspace_id, memory_id, entity_id"
        " FROM jsonb_populate_recordset(NULL::memory_entity, $1::jsonb)",
        json.dumps(links),
    )


def query_of(case: Case, workspace_id: UUID) -> Query:
    asked = case.options
    channels = tuple(asked.get("channels", ()))
    include_shared = asked.get("include_shared", False) or asked.get("shared", False)
    scope = Scope(workspace_id, case.ids.get("user_id"), case.ids.get("agent_id"), case.ids.get("run_id"))
    scope = replace(scope, match=asked.get("scope_match", "all"), include_shared=include_shared)
    tree = filters.read(asked["filters"]) if "filters" in asked else None
    if tree is not None:
        assert filters.read(filters.write(tree)) == tree
    return Query(
        replace(scope, channel=channels[0] if channels else case.channel or GLOBAL_CHANNEL),
        CleanText("boat"),
        10,
        Window(moment(asked.get("start")), moment(asked.get("end"))),
        asked.get("validity", "exclude"),
        asked.get("include_archived", False),
        narrow=Narrow(
            tree,
            tuple(asked.get("tags", ())),
            asked.get("tag_match", "prefix"),
            asked.get("tag_mode", "any"),
            tuple(asked.get("exclude_tags", ())),
            tuple(asked.get("categories", ())),
            tuple(asked.get("types", ())),
            asked.get("min_confidence"),
            moment(asked.get("valid_at")),
            tuple(name for name in IDS if name not in case.ids) if asked.get("scope_mode") == "exact" else (),
        ),
        channels=channels,
    )


async def test_the_condition_says_what_the_model_says(
    world: list[NaiveRow], database: Database, tenant: Tenant, clock: SetClock
) -> None:
    dice = random.Random(2)
    lengths: list[int] = []
    async with database.read(tenant.workspace_id) as session:
        for _ in range(CONDITIONS):
            case = make_case(dice)
            query = query_of(case, tenant.workspace_id)
            here = scopes.readable("m", query.scope, query.channels) & visibility.conditions("m", query, NOW)
            shape = typed_text(f"SELECT m.id FROM memory m WHERE {here.sql}")
            found = {str(each) for each in await session.scalars(shape, here.values)}
            expected = {row.id for row in world if sees(case, row, NOW)}
            assert found == expected, (case, found ^ expected)
            lengths.append(len(found))
    assert sum(map(bool, lengths)) > CONDITIONS / 3, "most questions find nothing: they prove little"


async def test_the_filter_keys_of_a_question_lose_no_row(
    world: list[NaiveRow], database: Database, tenant: Tenant, clock: SetClock
) -> None:
    """Cut down to the rows that carry them, a scope still has all that meet the conditions."""
    dice = random.Random(5)
    asked = narrower = 0
    async with database.read(tenant.workspace_id) as session:
        for _ in range(CONDITIONS):
            case = make_case(dice)
            query = query_of(case, tenant.workspace_id)
            found = indexed_conditions.find_keys(query.narrow)
            if not found:
                continue
            rows = visibility.conditions("m", query, NOW)
            scope, vectors = (scopes.readable(each, query.scope, query.channels) for each in "mv")
            within = indexed_conditions.find_column_ranges(query.narrow, query.window)
            plan = SearchPlan(scope, vectors, search_plan.NO_CONDITION, 1, ROWS, found, within)
            plan = replace(plan, match=query.scope.match, with_shared=query.scope.include_shared)
            few = search_plan.restrict_to_few(plan).scope
            shape = typed_text(f"SELECT m.id, {rows.sql} AS seen FROM memory m WHERE {few.sql}")
            answer = (await session.execute(shape, {**few.values, **rows.values})).all()
            expected = {row.id for row in world if sees(case, row, NOW)}
            assert {str(row.id) for row in answer if row.seen} == expected, case
            asked += 1
            narrower += len(answer) < len(world) / 4
    assert asked > CONDITIONS / 4
    assert narrower > asked / 2, "keys that most rows carry prove little"


async def test_the_column_ranges_of_a_question_lose_no_row(
    world: list[NaiveRow], database: Database, tenant: Tenant, clock: SetClock
) -> None:
    dice = random.Random(6)
    asked = 0
    async with database.read(tenant.workspace_id) as session:
        for _ in range(CONDITIONS):
            case = make_case(dice)
            query = query_of(case, tenant.workspace_id)
            rows = visibility.conditions("m", query, NOW)
            scope, vectors = (scopes.readable(each, query.scope, query.channels) for each in "mv")
            ranges = indexed_conditions.find_column_ranges(query.narrow, query.window)
            plan = SearchPlan(scope, vectors, rows, 1, ROWS, column_ranges=ranges)
            expected = {row.id for row in world if sees(case, row, NOW)} if ranges else set()
            for bounds in ranges:
                few = search_plan.restrict_to_few(plan, bounds).scope
                shape = typed_text(f"SELECT m.id FROM memory m WHERE {few.sql}")
                assert {str(each) for each in await session.scalars(shape, few.values)} == expected, (case, bounds)
                asked += 1
    assert asked > CONDITIONS / 8


def make_ranking(dice: random.Random) -> dict[str, Any]:
    """What changes the order, and must not change who is seen."""
    tuning = {
        "fusion": dice.choice(["weighted", "rrf"]),
        "diversity": dice.choice([0.0, 0.0, 0.5, 1.0]),
        "factors": dice.choice([{}, {"importance": 1.0, "salience": 0.5, "recency": 1.0}]),
        "techniques": {name: dice.random() < 0.7 for name in ("hybrid", "entity_centric")},
    }
    return {
        "tuning": tuning,
        "prefer_tags": dice.choice([[], [dice.choice(TAGS)]]),
        "explain": dice.random() < 0.5,
    }


@pytest.mark.parametrize(
    ("exact_rows", "prefilter_rows", "binary_rows", "down", "ways"),
    [
        (20_000, 2_000, 0, False, {"exact"}),
        (20_000, 3, 0, False, {"exact"}),
        (30, 3, 0, False, {"exact", "hnsw", "fallback"}),
        (3, 3, 0, False, {"hnsw", "fallback"}),
        (3, 3, 150_000, False, {"binary", "fallback"}),
        (20_000, 3, 0, True, {"none"}),
        (3, 3, 0, True, {"none"}),
    ],
)
async def test_a_search_finds_as_many_as_there_are_and_nothing_else(
    world: list[NaiveRow],
    resources: Resources,
    tenant: Tenant,
    clock: SetClock,
    embedder: AngleEmbedder,
    monkeypatch: pytest.MonkeyPatch,
    exact_rows: int,
    prefilter_rows: int,
    binary_rows: int,
    down: bool,
    ways: set[str],
) -> None:
    """Exactly min(k, matching), whichever way the vectors are searched, or with the embedder away, however it is
    ranked; and each score adds up."""
    clock.now = NOW
    embedder.down = down
    monkeypatch.setattr("service.search.statements.candidates.PREFILTER_ROWS", prefilter_rows)
    monkeypatch.setattr(sizes, "EXACT_ROWS", exact_rows)
    monkeypatch.setattr(sizes, "BINARY_ROWS", binary_rows)
    dice = random.Random(exact_rows)
    paths: set[str] = set()
    async with serving(replace(resources)) as app, client_of(app, tenant.key) as client:
        for number in range(SEARCHES):
            case, limit = (make_case(dice), dice.choice([1, 3, 10, 100])) if number % 10 else (WIDEST, 10)
            # of three words where the embedder is away, which knows the questions of two by now
            question = " ".join(dice.sample([*WORDS, "slack", "last week", "-1", "Zenobia"], 2 + down))
            body = {**case.ids, **case.options, **make_ranking(dice), "query": question, "limit": limit}
            answer = await client.post("/v1/memories/search", json=with_channel(body, case))
            assert answer.status_code == 200, answer.text
            paths.add(answer.json()["vector_path"])
            hits = answer.json()["results"]
            check(hits, case, world, limit)
            off = [abs(explained_score(hit["explain"]) - hit["score"]) for hit in hits if body["explain"]]
            assert max(off, default=0) <= 1e-6, body
            assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert ways <= paths <= ways | {"exact"}


async def test_a_list_and_a_listing_show_the_same(world: list[NaiveRow], client: AsyncClient, clock: SetClock) -> None:
    """A list pays no heed to validity unless it is asked to; a search without a question goes by importance."""
    clock.now = NOW
    dice = random.Random(4)
    for _ in range(SEARCHES // 2):
        case = make_case(dice)
        options = {name: value for name, value in case.options.items() if name != "validity"}
        params = {**options, **({"filters": json.dumps(options["filters"])} if "filters" in options else {})}
        answer = await client.get("/v1/memories", params=with_channel({**case.ids, **params, "limit": 1_000}, case))
        assert answer.status_code == 200, answer.text
        every = {} if "valid_at" in options else {"validity": "ignore"}
        check(answer.json()["results"], replace(case, options={**options, **every}), world, 1_000)
        body = with_channel({**case.ids, **case.options, "min_confidence": 0, "limit": 7, "detail": "full"}, case)
        listed = (await client.post("/v1/memories/search", json=body)).json()["results"]
        unconfident = replace(case, options={**case.options, "min_confidence": 0})
        check(listed, unconfident, world, 7)
        order = [(-each["importance"], -datetime.fromisoformat(each["timestamp"]).timestamp()) for each in listed]
        assert order == sorted(order)


def with_channel(asked: dict[str, Any], case: Case) -> dict[str, Any]:
    return {**asked, "channel": case.channel} if case.channel else asked


def check(hits: list[dict[str, Any]], case: Case, world: list[NaiveRow], limit: int) -> None:
    found = [hit["id"] for hit in hits]
    expected = {row.id for row in world if sees(case, row, NOW)}
    assert len(found) == len(set(found)) == min(limit, len(expected)), (case, len(found), len(expected))
    assert set(found) <= expected, (case, set(found) - expected)

"""The plans of the hot reads do not depend on statistics: they are the same on a database that was never analysed, that
was analysed while it was empty, and that has just been analysed.

Else the first searches after a load, until autoanalyze comes by, would read another way, several times as long.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import event

from bench.superuser import login_url, own_database
from service.domain import sizes
from service.kit.settings import Settings
from service.postgres import connections, migrate
from service.postgres.engine import Database
from service.postgres.roles import APP, OWNER, SESSION_SETTINGS
from service.runtime.resources import Resources
from tests.conftest import Tenant, new_tenant, open_as
from tests.support.application import client_of, serving

TEXTS, NAMES = 400, 12

ASKED = "Which book did Ada lend to her brother?"
SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/memories/search", {"query": ASKED}),
    ("/v1/memories/search", {"query": "What did Eva say about Ada last week?", "prefer_tags": ["t1"]}),
    ("/v1/recall", {"query": ASKED}),
    ("/v1/memories", {"content": "Ada lends a book to her brother.", "dry_run": True}),
]

FILL = """
    WITH told AS (
        INSERT INTO memory (workspace_id, id, user_id, content, hash, terms, bm25, type, type_confidence,
            classification_source, importance, importance_level, tag_prefixes, speaker, "timestamp",
            embedding_status, created_at, updated_at)
        SELECT $1, gen_random_uuid(), 'ann', 'Ada ' || n || ' lends a book', n::text, ARRAY[1, 100 + n % 50],
            ('{2:1,' || 101 + n % 50 || ':1}/1000000000')::sparsevec, 'Context', 1, 'default', 0.5, 5,
            ARRAY['t' || n % 9], 'Eva', now() - n * interval '1 hour', 'stored', now() - n * interval '1 hour', now()
        FROM generate_series(1, $2) n RETURNING workspace_id, id, user_id, "timestamp"
    ), measured AS (
        INSERT INTO memory_stat (workspace_id, memory_id, last_accessed) SELECT workspace_id, id, now() FROM told
    ), placed AS (
        INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
        SELECT workspace_id, id, 1, kind, user_id,
            ARRAY(SELECT random() - 0.5 + length(id::text) * 0 FROM generate_series(1, $4))::real[]::halfvec
        FROM told, unnest(ARRAY['text', 'context']) kind
    ), named AS (
        INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by)
        SELECT $1, gen_random_uuid(), 'ann', 'Ada ' || n, CASE n WHEN 1 THEN 'ada' ELSE 'ada ' || n END, 'person',
            'rules'
        FROM generate_series(1, $3) n RETURNING workspace_id, id
    ), called AS (
        INSERT INTO entity_alias (workspace_id, entity_id, alias_key, alias, user_id)
        SELECT workspace_id, id, id::text, id::text, 'ann' FROM named
    ), linked AS (
        INSERT INTO memory_entity (workspace_id, memory_id, entity_id)
        SELECT $1, told.id, named.id FROM told, named
    ), talk AS (
        INSERT INTO conversation (workspace_id, id, user_id, external_id, started_at)
        VALUES ($1, gen_random_uuid(), 'ann', 'talk', now()) RETURNING workspace_id, id
    ), said AS (
        INSERT INTO turn (workspace_id, id, conversation_id, turn_index, user_id, role, content, content_hash,
            "timestamp", terms, bm25)
        SELECT workspace_id, gen_random_uuid(), id, n, 'ann', 'user', 'Ada said ' || n, n::text,
            now() - n * interval '1 hour', ARRAY[1], '{2:1}/1000000000' FROM talk, generate_series(1, $2) n
        RETURNING workspace_id, id
    ), heard AS (
        INSERT INTO turn_vector (workspace_id, turn_id, generation, user_id, embedding)
        SELECT workspace_id, id, 1, 'ann',
            ARRAY(SELECT random() - 0.5 + length(id::text) * 0 FROM generate_series(1, $4))::real[]::halfvec FROM said
    ), read AS (
        INSERT INTO memory_source (workspace_id, memory_id, turn_id)
        SELECT t.workspace_id, t.id, s.id FROM (SELECT *, row_number() OVER () AS n FROM told) t
        JOIN (SELECT *, row_number() OVER () AS n FROM said) s USING (n) WHERE n % 2 = 0
    ), wanted AS (
        INSERT INTO goal (workspace_id, id, user_id, description, updated_at)
        SELECT $1, gen_random_uuid(), 'user ' || n % 9, 'goal', now() FROM generate_series(1, 60) n
    )
    INSERT INTO entity_edge (workspace_id, id, source_id, target_id, rel_type, label, extracted_by)
    SELECT $1, gen_random_uuid(), one.id, two.id, 'KNOWS', 'knows', 'rules' FROM named one, named two
    WHERE one.id < two.id
"""

OURS = "oid IN (SELECT c.oid FROM pg_class c WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace)"
FORGET = f"DELETE FROM pg_statistic WHERE starelid IN (SELECT oid FROM pg_class WHERE {OURS})"
SIZES = f"""UPDATE pg_class SET reltuples = $1::integer, relallvisible = 0,
    relpages = CASE WHEN relkind = 'i' AND $1::integer = 0 THEN 1 ELSE 0 END WHERE {OURS}"""

Change = Callable[["asyncpg.Connection[Any]"], Awaitable[Any]]


async def _analysed(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute("ANALYZE")


async def _never(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute(FORGET)
    await connection.execute(SIZES, -1)


async def _as_empty(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute(FORGET)
    await connection.execute(SIZES, 0)


STATES: dict[str, Change] = {"analysed": _analysed, "never analysed": _never, "analysed as empty": _as_empty}

TURNS_BY_ID = "AS next_turn_id"
MEMOIZED = re.compile(r"->  Memoize|Cache (?:Key|Mode):")
FULL_JOIN = "Hash Full Join"
HASHED = re.compile(r"->  Hash$|->  Subquery Scan on (?:source|near)$|Hash Cond:")
SWITCHES = re.compile(r"SET LOCAL ((?:enable|plan_cache|seq_|random_)\w+ = [\w.]+)")


@dataclass(frozen=True, eq=False)
class Read:
    """A statement as it was sent, with its values and the switches of the planner that were set."""

    sql: str
    values: tuple[Any, ...]
    switches: tuple[str, ...]

    @property
    def is_steady(self) -> bool:
        """Whether its plan is kept."""
        modes = [switch for switch in self.switches if switch.startswith("plan_cache_mode")]
        return modes[-1:] == ["plan_cache_mode = force_generic_plan"]

    @property
    def name(self) -> str:
        return " ".join(self.sql.split())[:300]


class Listener:
    """What the connections of a pool are asked."""

    def __init__(self) -> None:
        self.reads: dict[tuple[str, tuple[str, ...]], Read] = {}
        self._switches: dict[asyncpg.Connection[Any], tuple[str, ...]] = {}

    def hear(self, database: Database) -> None:
        def connected(raw: Any, _: Any) -> None:
            connection = raw.driver_connection
            connection.add_query_logger(lambda asked: self._note(connection, asked))

        event.listen(database.engine.sync_engine, "connect", connected)

    def _note(self, connection: asyncpg.Connection[Any], asked: Any) -> None:
        if asked.query.startswith(("BEGIN", "SET LOCAL")):
            began = () if asked.query.startswith("BEGIN") else self._switches[connection]
            self._switches[connection] = (*began, *SWITCHES.findall(asked.query))
        elif asked.query.lstrip().startswith(("SELECT", "WITH")):
            switches = self._switches.get(connection, ())
            self.reads.setdefault((asked.query, switches), Read(asked.query, tuple(asked.args or ()), switches))


@pytest.fixture
async def own_url(owner_url: str, settings: Settings) -> AsyncIterator[str]:
    """A database without the rows of other tests: the sizes of tables and indexes bear on a plan, too."""
    async with own_database(owner_url, "steady") as (url, _):
        await asyncio.to_thread(migrate.upgrade, login_url(url, OWNER), settings)
        yield url


@pytest.fixture
async def heard(own_url: str) -> AsyncIterator[tuple[Database, Listener]]:
    async with open_as(own_url, APP) as found:
        listener = Listener()
        listener.hear(found)
        yield found, listener


async def test_hot_reads_are_planned_alike_whatever_was_analysed(
    resources: Resources, heard: tuple[Database, Listener], own_url: str
) -> None:
    database, listener = heard
    tenant = await new_tenant(database)
    connection = await asyncpg.connect(own_url.replace("+asyncpg", ""))
    await connections.register_codecs(connection)
    await connection.execute(FILL, tenant.workspace_id, TEXTS, NAMES, resources.embedder.dimension)
    res = replace(resources, db=database)
    async with serving(res) as app, client_of(app, tenant.key) as client:
        for path, body in SEARCHES:
            answer = await client.post(path, json={"user_id": "ann", **body})
            assert answer.is_success, answer.text
        answer = await client.get("/v1/turns/search", params={"user_id": "ann", "query": ASKED})
        assert answer.is_success, answer.text
    await connection.execute("REINDEX TABLE memory")  # the row of the dry run left entries in its indexes
    assert len(listener.reads) > 5
    assert any(TURNS_BY_ID in read.sql and read.is_steady for read in listener.reads.values())
    plans = {name: await _plans(connection, state, tenant, listener.reads.values()) for name, state in STATES.items()}
    await connection.close()
    analysed = plans.pop("analysed")
    different = [
        "\n".join((read.name, name, *difflib.unified_diff(analysed[read], found[read], "analysed", name, lineterm="")))
        for name, found in plans.items()
        for read in analysed
        if found[read] != analysed[read]
    ]
    assert not different, "\n\n".join(different)


async def test_plans_are_steady_again_after_a_walk_of_the_graph(
    resources: Resources, heard: tuple[Database, Listener], own_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, listener = heard
    tenant = await new_tenant(database)
    connection = await asyncpg.connect(own_url.replace("+asyncpg", ""))
    await connections.register_codecs(connection)
    await connection.execute(FILL, tenant.workspace_id, TEXTS, NAMES, resources.embedder.dimension)
    await connection.close()
    monkeypatch.setattr(sizes, "EXACT_ROWS", TEXTS // 4)
    res = replace(resources, db=database)
    async with serving(res) as app, client_of(app, tenant.key) as client:
        answer = await client.post("/v1/memories/search", json={"user_id": "ann", "query": ASKED})
        assert answer.is_success, answer.text
    reads = list(listener.reads.values())
    walks = [at for at, read in enumerate(reads) if "FROM turn_vector v JOIN turn t" in read.sql]
    assert walks
    assert not any(reads[at].is_steady for at in walks)
    assert all(read.is_steady for read in reads[walks[-1] + 1 :])
    assert any("active_goals" in read.sql for read in reads[walks[-1] + 1 :])


async def _plans(
    connection: asyncpg.Connection[Any], state: Change, tenant: Tenant, reads: Collection[Read]
) -> dict[Read, list[str]]:
    """The steps of each statement's plan under these statistics, without costs, and without Memoize, which reads no row
    another way. Nor does it matter which side of a full join is hashed."""
    found: dict[Read, list[str]] = {}
    transaction = connection.transaction()
    await transaction.start()
    await state(connection)
    for name, value in SESSION_SETTINGS.items():
        await connection.execute(f"SET LOCAL {name} = '{value}'")
    await connection.execute(f"SET LOCAL ROLE {APP}; SET LOCAL loxodon.workspace = '{tenant.workspace_id}'")
    for read in reads:
        nested = connection.transaction()
        await nested.start()
        for switch in read.switches:
            await connection.execute(f"SET LOCAL {switch}")
        steps = [row[0].strip() for row in await _explained(connection, read)]
        found[read] = [step for step in steps if not MEMOIZED.match(step)]
        if any(FULL_JOIN in step for step in steps):
            found[read] = sorted(step for step in found[read] if not HASHED.match(step))
        await nested.rollback()
    await transaction.rollback()
    return found


async def _explained(connection: asyncpg.Connection[Any], read: Read) -> list[Any]:
    if not read.is_steady:
        rows: list[Any] = await connection.fetch(f"EXPLAIN (COSTS OFF) {read.sql}", *read.values)
        return rows
    types = [each.name for each in (await connection.prepare(read.sql)).get_parameters()]
    declared, given = (f"({', '.join(each)})" if each else "" for each in (types, ["NULL"] * len(types)))
    await connection.execute(f"PREPARE kept{declared} AS {read.sql}")
    rows = await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE kept{given}")
    await connection.execute("DEALLOCATE kept")
    return rows

"""Plans of every path of a search, and that each gives exactly what it promises.

One workspace with a big user, larger than `exact_rows` is here, and a small one; the plans are those of 100,000 rows,
which `python -m bench.scale 100000 --plans` prints.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import TextClause, text

from service.domain import bm25, filters
from service.domain.draft import CallerFields, Draft, EmbeddingStatus, Options
from service.domain.query import ApproximatePath, Narrow, Query, Window
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.memories.statements import near_memories, visibility
from service.postgres import direct, scopes
from service.postgres.engine import Database, Session, driver
from service.postgres.scopes import Condition
from service.postgres.template import typed_text
from service.search import indexed_conditions
from service.search.indexed_conditions import NO_FILTER_KEYS
from service.search.statements import approximate, candidates, exact, features, search_plan, term_statistics
from service.search.statements.features import TermIdf
from service.search.statements.search_plan import NOWHERE, SearchPlan
from tests.conftest import new_tenant

ROWS, SMALL, EXACT_ROWS = 3_000, 200, 500
PART = 500  # into the graph at once, well inside the time that a statement has
GROUPS = 60
ARM = 100

# Places in a sparse vector begin at 1 when written out, so word n stands at n + 1.
# Word 1 in all texts, 100 + n % 50 in 2 %, 1,000 + n in one. Rows of both users are mixed; every 150th has no vector.
# Without ON CONFLICT, Citus would copy the rows into the table, which row-level security refuses.
MEMORIES = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, terms, bm25, type, type_confidence,
        classification_source, importance, importance_level, tag_prefixes, metadata, "timestamp", embedding_status,
        created_at, updated_at)
    SELECT $1, new.id, CASE WHEN n % 16 = 0 THEN 'small' ELSE 'big' END, 'text ' || n, n::text,
        ARRAY[1, 100 + n % 50, 1000 + n],
        ('{2:1,' || 101 + n % 50 || ':1,' || 1001 + n || ':1}/1000000000')::sparsevec,
        'Context', 1, 'default', 0.5, 5, ARRAY['t' || n % 100], jsonb_build_object('n', n),
        timestamptz '2026-01-01' + n * interval '1 hour', CASE WHEN n % 150 = 7 THEN 'queued' ELSE 'stored' END,
        timestamptz '2026-01-01' + n * interval '1 hour', now()
    FROM unnest($2::uuid[]) WITH ORDINALITY new (id, n)
    ON CONFLICT DO NOTHING
"""
OTHERS = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, dedup_key, type, type_confidence,
        classification_source, importance, importance_level, embedding_status, "timestamp", created_at, updated_at)
    SELECT $1::uuid, new.id, 'tenant-' || n % 3 || $1::uuid, 'text ' || n, md5(n::text), md5(n::text), 'Context', 1,
        'default', 0.5, 5, 'queued', now(), now(), now()
    FROM unnest($2::uuid[]) WITH ORDINALITY new (id, n)
    ON CONFLICT DO NOTHING
"""
VECTORS = """
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, embedding)
    SELECT $1, new.id, 1, 'text', CASE WHEN (n + $4) % 16 = 0 THEN 'small' ELSE 'big' END, new.embedding::halfvec
    FROM unnest($2::uuid[], $3::text[]) WITH ORDINALITY new (id, embedding, n)
    WHERE (n + $4) % 150 <> 7
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class LargeScope:
    workspace: UUID
    ids: list[UUID]
    vectors: NDArray[np.float32]

    def plan(self, user: str, rows: str = "true", **more: Any) -> SearchPlan:
        scope = Scope(self.workspace, user_id=user)
        given = {"arm_limit": ARM, "goal_scope": scopes.readable("g", scope), **more}
        return SearchPlan(
            scopes.readable("m", scope), scopes.readable("v", scope), Condition(rows), 1, EXACT_ROWS, **given
        )

    def asking(self, user: str, at: int = 0, rows: str = "true", **more: Any) -> SearchPlan:
        """The plan of a query with three terms and a vector."""
        given = {"terms": [1, 100, 1000 + 49], "vector": self.vectors[at], **more}
        return self.plan(user, rows, **given)


@pytest.fixture(scope="module")
async def store(database: Database, owner_url: str, settings: Settings) -> AsyncIterator[LargeScope]:
    chance = np.random.default_rng(3)
    middle = chance.standard_normal((GROUPS, settings.embedder.dim))
    spread = middle[chance.integers(0, GROUPS, ROWS)] + 0.6 * chance.standard_normal((ROWS, settings.embedder.dim))
    vectors: NDArray[np.float32] = np.asarray(spread / np.linalg.norm(spread, axis=1, keepdims=True), dtype=np.float32)
    ids = [UUID(int=(7 << 124) + number) for number in range(1, ROWS + 1)]
    tenant = await new_tenant(database)
    async with database.begin(tenant.workspace_id) as session:
        raw = await driver(session)
        await raw.execute(MEMORIES, tenant.workspace_id, ids)
        written = ["[" + ",".join(f"{value:.4f}" for value in vector) + "]" for vector in vectors]
        for begin in range(0, ROWS, PART):
            part = slice(begin, begin + PART)
            await raw.execute(VECTORS, tenant.workspace_id, ids[part], written[part], begin)
        await term_statistics.count(session)
    await _as_owner(owner_url, "ANALYZE memory", "ANALYZE memory_vector", "ANALYZE term_stat")
    yield LargeScope(tenant.workspace_id, ids, vectors)
    async with database.begin(tenant.workspace_id) as session:
        await session.execute(text("DELETE FROM memory WHERE workspace_id = :w"), {"w": tenant.workspace_id})


async def _as_owner(owner_url: str, *statements: str) -> None:
    import asyncpg  # type: ignore[import-untyped]

    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def _plan(session: Session, statement: Any, values: Any) -> str:
    explained = statement.text
    shown = text(f"EXPLAIN {explained}").bindparams(*statement._bindparams.values())
    return "\n".join(row[0] for row in await session.execute(shown, values))


async def _graphs(session: Session) -> list[str]:
    """The HNSW indexes of the partitions, as plans name them."""
    rows = await session.execute(
        text("SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%' AND tablename ~ '^memory_vector'")
    )
    return [row[0] for row in rows]


def _parts(plan: str) -> dict[str, str]:
    """The plan of each CTE by name, and the rest as ''."""
    found: dict[str, list[str]] = {"": []}
    name, depth = "", 0
    for line in plan.splitlines():
        indent = len(line) - len(line.lstrip())
        if name and indent <= depth:
            name = ""
        if (begins := re.match(r"\s*CTE (\w+)$", line)) is not None:
            name, depth = begins[1], indent
        found.setdefault(name, []).append(line)
    return {key: "\n".join(lines) for key, lines in found.items()}


def _no_scan(plan: str) -> None:
    assert not re.search(r"Seq Scan on (public\.)?memory", plan), plan


async def test_the_exact_path_reads_the_scopes_btrees(database: Database, store: LargeScope) -> None:
    small = store.asking("small")
    statement, values = exact.statement(small), exact.values(small)
    async with database.snapshot(store.workspace) as session:
        plan = await _plan(session, statement, values)
        graphs = await _graphs(session)
    _no_scan(plan)
    assert graphs
    assert not any(graph in plan for graph in graphs), plan
    assert "ix_memory_user" in plan


FEWER = text("SELECT set_config('hnsw.ef_search', '20', true), set_config('enable_sort', 'off', true)")
"""Of 3,000 rows the planner rather sorts all than walk the graph for 400; of 20,000 it does not. What must not walk it
is tempted all the more."""


async def test_candidates_are_measured_by_their_ids(database: Database, store: LargeScope) -> None:
    """In a middling scope the planner would rather read the whole btree of the scope and look for the ids in there."""
    small, ids, idf = store.asking("small"), store.ids[15::16][:60], TermIdf({1: 1.0}, {})
    async with database.snapshot(store.workspace) as session:
        plan = await _plan(session, *features.statement(small, ids, idf))
        found = await features.read(session, small, [*ids, store.ids[0]], idf)
    assert re.search(r"Index Scan using pk_memory(_\d+)? on", plan), plan
    assert "ix_memory_user" not in plan
    assert sorted(found.ids) == sorted(ids), "another user's row is none of this scope"


async def test_the_large_path_uses_the_graph_for_one_arm_only(database: Database, store: LargeScope) -> None:
    async with database.snapshot(store.workspace) as session:
        statement, values = await _approximate(session, store.asking("big", tags=("t3",), arm_limit=10))
        await session.execute(FEWER)
        plan = await _plan(session, statement, values)
        graphs = await _graphs(session)
    _no_scan(plan)
    parts = _parts(plan)
    assert any(graph in parts["approximate"] for graph in graphs), parts["approximate"]
    for name, part in parts.items():
        if name != "approximate":
            assert not any(graph in part for graph in graphs), part
    assert "ix_memory_user" in parts["fallback"]
    assert re.search(r"Index Scan using memory_vector_p\d+_pkey", parts["fallback"]), "vectors of what it lets through"
    assert "pk_memory" in parts[""], "ids of the functions are joined back"


async def _approximate(
    session: Session, plan: SearchPlan, vector_path: ApproximatePath = "hnsw"
) -> tuple[TextClause, dict[str, Any]]:
    statistics = await approximate.read_frequencies(session, plan.terms)
    return approximate.statement(plan, vector_path), approximate.values(plan, vector_path, statistics)


async def _speakers(session: Session, plan: SearchPlan) -> list[str]:
    return list((await candidates.summary(session, plan.scope, NOWHERE, count_to=ROWS)).speakers)


SHOWN = visibility.conditions(
    "m", Query(Scope(UUID(int=0), user_id="small"), CleanText("?"), 10), datetime(2026, 11, 1, tzinfo=UTC)
)
"""What every search asks of a row."""


@pytest.mark.parametrize("owner", ["user_id", "agent_id"])
async def test_words_are_read_from_the_scopes_btree_alone(
    database: Database, store: LargeScope, owner_url: str, owner: str
) -> None:
    """Where nothing is asked of the rows that the index does not hold; the time asked for is there, too."""
    await _as_owner(owner_url, "VACUUM memory")  # an index alone tells what is visible after that
    ids: dict[str, Any] = {owner: "small"}
    scope = Scope(store.workspace, **ids)
    plan = replace(
        store.asking("small", asked_at=datetime(2026, 2, 1, tzinfo=UTC)),
        scope=scopes.readable("m", scope),
        vector_scope=scopes.readable("v", scope),
        conditions=SHOWN,
    )
    statement, values = exact.statement(plan), exact.values(plan)
    async with database.snapshot(store.workspace) as session:
        await session.execute(text("SELECT set_config('enable_bitmapscan', 'off', true)"))
        scan = _parts(await _plan(session, statement, values))["scan"]
    name = owner.removesuffix("_id")
    assert f"Index Only Scan using ix_memory_{name}_bm25" in scan, scan
    assert f"Index Scan using ix_memory_{name}_many_terms" in scan, scan


LONG_ROW = """
    INSERT INTO memory (workspace_id, id, user_id, agent_id, run_id, channel, content, hash, terms, bm25, context_terms,
        context_bm25, type, type_confidence, classification_source, importance, importance_level, "timestamp",
        embedding_status, created_at, updated_at)
    SELECT $1, $2, $3, $3, $3, $4, 'text', 'x', own.terms, own.weights, near.terms, near.weights, 'Context', 1,
        'default', 0.5, 5, now(), 'queued', now(), now()
    FROM words($5) own, words($6) near
    ON CONFLICT DO NOTHING
"""
WORDS = """
    CREATE FUNCTION pg_temp.words(most integer, OUT terms integer[], OUT weights sparsevec) LANGUAGE sql AS $$
        SELECT coalesce(array_agg(n), '{}'),
               ('{' || string_agg(n + 1 || ':1', ',' ORDER BY n) || '}/1000000000')::sparsevec
        FROM generate_series(1, most) n $$
"""


async def test_rows_with_many_words_are_counted_and_found(database: Database) -> None:
    """And the longest ids and words that fit into the index do fit."""
    tenant = await new_tenant(database)
    name = "".join(chr(0x10000 + number) for number in np.random.default_rng(5).choice(40_000, 128, replace=False))
    channel = name[:100]
    sizes = [(120, 0), (60, 60), (0, 120), (121, 0), (100, 2_000), (9_000, 0)]
    ids = [UUID(int=(9 << 124) + number) for number in range(len(sizes))]
    scope = Scope(tenant.workspace_id, user_id=name, channel=channel)
    terms = [1, 61, 120, 121, 2_000, *range(5_000, 5_030), 20_000]
    matching, vectors = scopes.readable("m", scope), scopes.readable("v", scope)
    plan = SearchPlan(matching, vectors, SHOWN, 1, EXACT_ROWS, terms=terms, arm_limit=ARM, limit=1)
    async with database.begin(tenant.workspace_id) as session:
        raw = await driver(session)
        await raw.execute(WORDS)
        for one, (own, near) in zip(ids, sizes, strict=True):
            row = LONG_ROW.replace("words(", "pg_temp.words(")
            await raw.execute(row, tenant.workspace_id, one, name, channel, own, near)
        await raw.execute("DROP FUNCTION pg_temp.words")  # the connection outlives the test
        found = await exact.find(session, plan)
    assert found is not None
    assert found.text_count == len(sizes)
    for term in terms:
        assert found.text_df.get(term, 0) == sum(own >= term for own, _ in sizes)
        assert found.context_df.get(term, 0) == sum((near or own) >= term for own, near in sizes)
    assert set(found.arms["text_lexical"]) == {ids[0], ids[1], *ids[3:]}
    assert set(found.arms["context_lexical"]) == set(ids)


async def test_binary_quantisations_are_read_from_the_scopes_btree_alone(
    database: Database, store: LargeScope, owner_url: str
) -> None:
    await _as_owner(owner_url, "VACUUM memory_vector")  # an index alone tells what is visible after that
    async with database.snapshot(store.workspace) as session:
        statement, values = await _approximate(session, store.asking("big", arm_limit=10), "binary")
        plan = await _plan(session, statement, values)
        graphs = await _graphs(session)
    _no_scan(plan)
    assert not any(graph in plan for graph in graphs), plan
    assert re.search(r"Index Only Scan using memory_vector_p\d+_workspace_id_user_id_kind", plan), plan
    assert "Index Scan using pk_memory" in plan, "conditions are asked row by row"


NAMED = """
    UPDATE memory SET speaker = CASE WHEN n % 3 = 0 THEN 'Zoë' WHEN n % 3 = 1 THEN 'anna' ELSE 'Bob ' || n END,
        channel = CASE WHEN n = 32 THEN 'side' ELSE '_global' END
    FROM (SELECT (metadata->>'n')::int AS n, id FROM memory WHERE workspace_id = $1) numbered
    WHERE memory.workspace_id = $1 AND memory.id = numbered.id AND n % 16 = 0 AND n <= 128
"""


async def test_speakers_are_read_name_by_name(database: Database, store: LargeScope) -> None:
    """Each step is a look into the index, however many rows without a speaker there are."""
    tenant = await new_tenant(database)
    here = replace(store, workspace=tenant.workspace_id)
    side = scopes.readable("m", Scope(here.workspace, user_id="small", channel="side"))
    async with database.begin(here.workspace) as session:
        raw = await driver(session)
        await raw.execute(MEMORIES, here.workspace, store.ids[:160])
        await raw.execute(NAMED, here.workspace)
        assert await _speakers(session, here.plan("big")) == []
        assert sorted(await _speakers(session, here.plan("small"))) == ["Bob 128", "Bob 80", "Zoë", "anna"]
        wider = await _speakers(session, replace(here.plan("small"), scope=side))
        assert sorted(wider) == ["Bob 128", "Bob 32", "Bob 80", "Zoë", "anna"]
    scope = store.plan("big").scope
    values = {**scope.values, "most": ROWS, "speakers": 200}
    async with database.snapshot(store.workspace) as session:
        plan = await _plan(session, candidates.SUMMARY.fill(scope=scope.sql, turns=NOWHERE.sql), values)
    assert plan.count("ix_memory_user_speaker") == 2, plan
    assert "Sort" not in plan, plan


@pytest.mark.parametrize("share", [1, 2, 4])
async def test_binary_quantisation_finds_the_nearest(database: Database, store: LargeScope, share: int) -> None:
    big = [at for at in range(ROWS) if (at + 1) % 16 and (at + 1) % 150 != 7]
    big_plan = store.plan("big", f"(m.metadata->>'n')::int % {share} = 0")
    near = 0
    async with database.snapshot(store.workspace) as session:
        for question in big[:20]:
            seen = [at for at in big if (at + 1) % share == 0]
            asking = replace(big_plan, vector=store.vectors[question])
            found = await approximate.find(session, asking, "binary")
            assert found.path == "binary"
            cosines = store.vectors[seen] @ store.vectors[question]
            wanted = [store.ids[seen[at]] for at in np.argsort(-cosines)[:10]]
            near += len({*wanted} & {*found.arms["text_vector"][:10]})
    assert near >= 198


async def test_deduplications_arms_too(database: Database, store: LargeScope) -> None:
    scope = scopes.readable("v", Scope(store.workspace, user_id="big"))
    statement, values = near_memories.nearest_statement(
        scope, Condition("true"), store.vectors[0], generation=1, limit=10
    )
    values["exact_rows"] = EXACT_ROWS
    async with database.snapshot(store.workspace) as session:
        await session.execute(FEWER)
        parts = _parts(await _plan(session, statement, values))
        graphs = await _graphs(session)
    _no_scan("\n".join(parts.values()))
    # the arm that is read once is no CTE in the plan: it stands where it is used
    inside = {name for name, part in parts.items() if any(graph in part for graph in graphs)}
    assert inside == {"approximate"}


READS = text("SELECT pg_stat_get_xact_numscans(to_regclass(:name))")


@pytest.mark.parametrize(
    ("function", "index"),
    [
        (
            "lexical_ids('big', NULL, NULL, NULL, false, '{1049}', '{}', '{1050:1}/1000000000', 100, 10, 1)",
            "ix_memory_terms",
        ),
        (
            "lexical_ids(NULL, NULL, NULL, NULL, false, '{1049}', '{}', '{1050:1}/1000000000', 100, 10, 1)",
            "ix_memory_terms",
        ),
        ("tag_ids('big', NULL, NULL, '{_global}', '{t3}', 100, 10)", "ix_memory_filter_keys"),
    ],
)
async def test_the_functions_walk_their_gin_index(
    database: Database, store: LargeScope, owner_url: str, function: str, index: str
) -> None:
    async with database.read(store.workspace) as session:
        before = [int(await session.scalar(READS, {"name": name}) or 0) for name in (index, "memory")]
        found = (await session.execute(text(f"SELECT * FROM {function}"))).all()
        after = [int(await session.scalar(READS, {"name": name}) or 0) for name in (index, "memory")]
    assert found
    assert after[0] == before[0] + 1, "the index was not used"
    assert after[1] == before[1], "the table was scanned"


def _narrowed(store: LargeScope, narrow: Narrow, **more: Any) -> SearchPlan:
    """The big user\'s rows that the conditions leave, with the filter keys and column ranges they need."""
    where = store.asking("big", **more)
    rows = visibility.filter_rows("m", narrow, Window(), where.conditions)
    return replace(
        where,
        conditions=rows,
        filter_keys=indexed_conditions.find_keys(narrow),
        column_ranges=indexed_conditions.find_column_ranges(narrow, Window()),
    )


def _n(operator: str, value: Any) -> dict[str, Any]:
    return {"field": "n", "operator": operator, "value": value}


N = _n("in", [7, 48, 1001, 2999, "2", 99_999])
FEW = [
    Narrow(tags=("t3",)),
    Narrow(filters=filters.read(N)),
    Narrow(tags=("t1", "t7", "t48"), filters=filters.read({"AND": [N, {"NOT": {**N, "value": [48]}}]})),
    Narrow(filters=filters.read({**N, "operator": "eq", "value": 99_999})),
    Narrow(filters=filters.read(_n("gt", 2_950))),
    Narrow(
        filters=filters.read(
            {"OR": [_n("lt", 7), _n("gte", 2_980.5), {"field": "tag", "operator": "eq", "value": "t9"}]}
        )
    ),
    Narrow(tags=("t10", "t11"), filters=filters.read({"AND": [_n("gte", 1_000), _n("lte", 1_950)]})),
]
SEVENTEEN = tuple(f"t{number}" for number in range(17))  # of every hundred rows
EARLY = {"field": "timestamp", "operator": "lt", "value": "2026-01-05"}
TOGETHER = [
    Narrow(tags=SEVENTEEN, filters=filters.read(_n("lt", 502))),
    Narrow(tags=SEVENTEEN, filters=filters.read({**EARLY, "value": "2026-01-21T22:00:00Z"})),
]
"""Neither condition alone leaves EXACT_ROWS of the workspace, both together do."""

BOUNDED = [
    Narrow(filters=filters.read(EARLY)),
    Narrow(filters=filters.read({"AND": [{**EARLY, "operator": "gt", "value": "2026-05-01"}, _n("contains", "x")]})),
    Narrow(filters=filters.read({"AND": [{"field": "importance", "operator": "gt", "value": 0.5}, EARLY]})),
    Narrow(
        filters=filters.read(
            {"field": "id", "operator": "in", "value": [str(UUID(int=(7 << 124) + n)) for n in (1, 2)]}
        )
    ),
]


@pytest.mark.parametrize("narrow", [*FEW, *TOGETHER, *BOUNDED])
@pytest.mark.parametrize("embedded", [True, False])
async def test_conditions_that_leave_few_rows_make_a_small_scope(
    database: Database, store: LargeScope, narrow: Narrow, embedded: bool
) -> None:
    """Every row of them, in exact order, those without a vector last."""
    where = _narrowed(store, narrow) if embedded else _narrowed(store, narrow, vector=None)
    async with database.snapshot(store.workspace) as session:
        there = await _count(session, where)
        found = await candidates.find(session, replace(where, limit=there), ROWS, binary_rows=0)
        scanned = replace(where, filter_keys=NO_FILTER_KEYS, column_ranges=(), limit=max(there, 1))
        before = await approximate.find(session, scanned, "hnsw")
    assert found.text_count == there < ARM
    assert {each for arm in found.arms.values() for each in arm} == set().union(*map(set, before.arms.values()))
    assert found.path == ("exact" if embedded else "none")
    assert before.path != "exact"
    if embedded:
        nearest = list(found.arms.get("text_vector", ()))
        assert nearest == list(before.arms.get("text_vector", ()))[: len(nearest)]


@pytest.mark.parametrize("known", [True, False])
async def test_their_plan_goes_by_ids_and_touches_neither_graph_nor_scope(
    database: Database, store: LargeScope, *, known: bool
) -> None:
    """Nor where ANALYZE has not seen the workspace, when a scan of the scope looks free to the planner. Postgres 16
    then asks the ids of each row of pk_memory_vector instead of looking them up."""
    here = store if known else replace(store, workspace=UUID(int=9))
    plan = search_plan.restrict_to_few(_narrowed(here, FEW[1], tags=("t3",)))
    statement, values = exact.statement(plan), exact.values(plan)
    async with database.snapshot(here.workspace) as session:
        before = int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0)
        parts = _parts(await _plan(session, statement, values))
        graphs = await _graphs(session)
        always = await session.scalar(text("SELECT current_setting('server_version_num')::integer >= 170000"))
        assert int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0) == before, (
            "looked up while planned"
        )
    whole = "\n".join(parts.values())
    _no_scan(whole)
    assert not any(name in whole for name in [*graphs, "_user_id_", "ix_memory_user"]), whole
    if known:  # of a workspace that is taken for one row any index will do
        assert re.search(r"pk_memory.*\n *Index Cond: .*\(id = ANY ", parts["scan"]), parts["scan"]
    for kind in ("text", "context"):
        signs = parts[f"{kind}_binary"]
        assert re.search(r"memory_vector_p\d+_pkey", signs), signs
        if known or always:
            assert re.search(r"_pkey.*\n *Index Cond: .*\(memory_id = ANY ", signs), signs


async def test_few_are_looked_up_by_their_marks(database: Database, store: LargeScope) -> None:
    async with database.read(store.workspace) as session:
        for narrow in FEW:
            names = ("ix_memory_filter_keys", "memory")
            before = [int(await session.scalar(READS, {"name": name}) or 0) for name in names]
            where = _narrowed(store, narrow)
            assert (
                await session.scalar(search_plan.probe(where), search_plan.index_values(where))
                == search_plan.FILTER_KEYS
            )
            after = [int(await session.scalar(READS, {"name": name}) or 0) for name in names]
            assert after == [before[0] + 1, before[1]], narrow


@pytest.mark.parametrize("reach", [250, 50, 14, 13, 5])
async def test_or_by_the_scope_and_the_marks_together(database: Database, store: LargeScope, reach: int) -> None:
    """240 rows bear one of these, and mostly that is more than are few; 14 are of the user who asks."""
    narrow = Narrow(tags=tuple(f"t{number}" for number in range(8)))
    where = replace(store.plan("small"), exact_rows=reach, filter_keys=indexed_conditions.find_keys(narrow))
    where = replace(where, conditions=visibility.filter_rows("m", narrow, Window(), where.conditions))
    async with database.snapshot(store.workspace) as session:
        before = int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0)
        found = await session.scalar(typed_text(f"SELECT {search_plan.FEW_IDS}"), search_plan.index_values(where))
        assert int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0) == before + 1
        rows = text(f"SELECT m.id FROM memory m WHERE {where.scope.sql} AND {where.conditions.sql}")
        there = {row[0] for row in await session.execute(rows, {**where.scope.values, **where.conditions.values})}
    assert len(there) == 14
    assert found is None if reach < len(there) else set(found) == there


async def test_or_by_the_btree_of_a_column(database: Database, store: LargeScope) -> None:
    async with database.read(store.workspace) as session:
        for narrow, index in zip(BOUNDED, ("timestamp", "timestamp", "importance", "pk"), strict=True):
            where = _narrowed(store, narrow)
            probe, few = search_plan.probe(where), await search_plan.restrict(session, where)
            assert few is not None
            statement, values = exact.statement(few), exact.values(few)
            plans = [
                await _plan(session, probe, search_plan.index_values(where)),
                await _plan(session, statement, values),
            ]
            for plan in plans:
                _no_scan(plan)
                assert f"{index}_memory" in plan or f"ix_memory_{index}" in plan, plan


async def test_conditions_that_leave_many_change_nothing(database: Database, store: LargeScope) -> None:
    """Known after a look at the marks of the scope's rows, and before that, where ANALYZE expects few, at all rows."""
    tens = tuple(f"t{number}" for number in range(20))
    for narrow, looks in ((Narrow(tags=tens), 2), (Narrow(tags=tuple(f"t{number}" for number in range(60))), 1)):
        where = _narrowed(store, narrow)
        async with database.snapshot(store.workspace) as session:
            before = int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0)
            assert await session.scalar(search_plan.probe(where), search_plan.index_values(where)) is None
            assert int(await session.scalar(READS, {"name": "ix_memory_filter_keys"}) or 0) == before + looks
            found = await candidates.find(session, where, ROWS, binary_rows=0)
            plain = await approximate.find(session, replace(where, filter_keys=NO_FILTER_KEYS), "hnsw")
            plan = await _plan(session, *await _approximate(session, where))
        assert found.path == plain.path == "hnsw"
        # The graph holds the rows of other tests too, and a walk with another condition may end elsewhere: in one of
        # some ten runs of everything the two differ in a few rows.
        near, plainly = (set(arms.pop("text_vector")) for arms in (dict(found.arms), dict(plain.arms)))
        assert len(near & plainly) >= 0.8 * len(plainly)
        assert {name: ids for name, ids in found.arms.items() if name != "text_vector"} == {
            name: ids for name, ids in plain.arms.items() if name != "text_vector"
        }
        assert "hashed SubPlan" in _parts(plan)["approximate"], "rows without the marks are not looked up"


PIECE = {"field": "memory", "operator": "contains", "value": "text 77"}
TEXTS = [
    Narrow(tags=tuple(f"t{number}" for number in range(60, 90)), filters=filters.read(PIECE)),
    Narrow(filters=filters.read({"AND": [_n("lt", 1_000), PIECE]})),
    Narrow(filters=filters.read({"AND": [{**EARLY, "value": "2026-02-05"}, PIECE]})),
]


@pytest.mark.parametrize("narrow", TEXTS)
@pytest.mark.parametrize("vector_path", ["hnsw", "binary"])
async def test_a_scan_is_cut_down_by_what_leaves_less_than_the_scope(
    database: Database, store: LargeScope, narrow: Narrow, vector_path: ApproximatePath
) -> None:
    """By marks that leave too many for a small scope, or by a bound that a btree serves where the planner likes it."""
    where = _narrowed(store, narrow, limit=50)
    async with database.snapshot(store.workspace) as session:
        assert await search_plan.restrict(session, where) is None
        there = await _count(session, where)
        found = await approximate.find(session, where, vector_path)
        plain = replace(where, filter_keys=NO_FILTER_KEYS, column_ranges=())
        before = await approximate.find(session, plain, vector_path)
        statement, values = await _approximate(session, where, vector_path)
        plan = await _plan(session, statement, values)
    assert 0 < there < 50
    assert found.path == before.path == "fallback"
    assert found.arms["text_vector"] == before.arms["text_vector"]
    assert len(found.arms["text_vector"]) == there
    narrowly = (
        r'"timestamp" <= ' if where.column_ranges else r"pk_memory(_\d+)? on memory.*\n *Index Cond: .*\(id = ANY "
    )
    assert re.search(narrowly, plan), plan


async def _count(session: Session, where: SearchPlan) -> int:
    sql = f"SELECT count(*) FROM memory m WHERE {where.scope.sql} AND {where.conditions.sql}"
    return int(await session.scalar(text(sql), {**where.scope.values, **where.conditions.values}) or 0)


async def test_words_rank_by_bm25(database: Database, store: LargeScope) -> None:
    """The sum of the IDFs of the words in common, since every word weighs 1 here."""
    small = list(range(16, ROWS + 1, 16))
    terms = [1, 100 + 96 % 50, 1000 + 96]
    async with database.snapshot(store.workspace) as session:
        small_plan = store.plan("small", terms=terms, arm_limit=ROWS, limit=5)
        found = await exact.find(session, small_plan)
        assert found is not None
        idf = {term: bm25.idf(found.text_count, found.text_df[term]) for term in terms}
        measured = await features.read(session, small_plan, found.arms["text_lexical"], TermIdf(idf, idf))
    held = {store.ids[n - 1]: {1, 100 + n % 50, 1000 + n} & set(terms) for n in small}
    wanted = sorted(held, key=lambda each: (-sum(idf[term] for term in held[each]), each))
    assert list(found.arms["text_lexical"]) == wanted
    scores = dict(zip(measured.ids, measured.text_lexical, strict=True))
    assert scores[wanted[0]] == pytest.approx(sum(idf.values()), abs=1e-5)
    assert scores[wanted[-1]] == pytest.approx(idf[1], abs=1e-5)


@pytest.mark.parametrize("rows", ["{shown}", "CASE WHEN {shown} THEN true END"], ids=["false", "unknown"])
async def test_hidden_rows_take_no_place_among_the_nearest(database: Database, store: LargeScope, rows: str) -> None:
    """The exact arm takes as many vectors to spare as rows are hidden."""
    shown = rows.format(shown="(m.metadata->>'n')::int % 64 = 0")
    where = store.asking("small", rows=shown, arm_limit=5, limit=5)
    async with database.snapshot(store.workspace) as session:
        found = await exact.find(session, where)
    assert found is not None
    seen = [at for at in range(ROWS) if (at + 1) % 64 == 0 and (at + 1) % 150 != 7]
    wanted = sorted(seen, key=lambda at: -float(store.vectors[at] @ store.vectors[0]))[:5]
    assert list(found.arms["text_vector"]) == [store.ids[at] for at in wanted]


async def test_the_graph_finds_the_nearest(database: Database, store: LargeScope) -> None:
    big = [at for at in range(ROWS) if (at + 1) % 16 and (at + 1) % 150 != 7]
    near = 0
    async with database.snapshot(store.workspace) as session:
        for question in big[:20]:
            found = await approximate.find(session, store.asking("big", question), "hnsw")
            cosines = store.vectors[big] @ store.vectors[question]
            wanted = {store.ids[big[at]] for at in np.argsort(-cosines)[:10]}
            near += len(wanted & set(found.arms["text_vector"][:10]))
    assert near >= 0.99 * 200


async def test_a_word_of_every_text_opens_no_candidates_beside_a_rarer_one(
    database: Database, store: LargeScope
) -> None:
    """It still scores; with no other it opens."""
    async with database.snapshot(store.workspace) as session:
        rare = await approximate.find(session, store.plan("big", terms=[1, 1049]), "hnsw")
        alone = await approximate.find(session, store.plan("big", terms=[1]), "hnsw")
    assert len(rare.arms["text_lexical"]) == 1
    assert len(alone.arms["text_lexical"]) == ARM


async def test_the_time_arm_looks_both_ways(database: Database, store: LargeScope) -> None:
    async with database.snapshot(store.workspace) as session:
        row = text('SELECT "timestamp" FROM memory WHERE workspace_id = :w AND id = :id')
        moment = await session.scalar(row, {"w": store.workspace, "id": store.ids[1499]})
        plan = store.plan("big", asked_at=moment, arm_limit=20, limit=5)
        found = await approximate.find(session, plan, "hnsw")
    places = sorted(store.ids.index(each) for each in found.arms["time"])
    assert store.ids[1499] == found.arms["time"][0]
    assert places[0] < 1499 < places[-1]
    assert places[-1] - places[0] <= 24


async def _kept_plan(database: Database, store: LargeScope) -> str:
    scope, now = Scope(store.workspace, user_id="small"), datetime.now(UTC)
    alive = visibility.not_expired_nor_in_review("m", now)
    live = visibility.not_archived("m") & alive
    here = scopes.exact("m", scope) & visibility.not_archived("m")
    statement = near_memories.compare(scopes.exact("v", scope), here, live, now, generation=1)
    async with database.read(store.workspace, generic_plans=True) as session:
        wanted, parameters = direct.compile_statement(statement, session.dialect)
        raw = await driver(session)
        await raw.execute(f"PREPARE kept AS {wanted}")
        rows = await raw.fetch(f"EXPLAIN EXECUTE kept({', '.join(['NULL'] * len(parameters))})")
        await raw.execute("DEALLOCATE kept")
    plan = "\n".join(row[0] for row in rows)
    for far in ("Seq Scan", "Hash Join", "Merge Join", "hnsw"):
        assert far not in plan, plan
    assert len(re.findall(r"_user_id_\w*idx\w* on memory_vector", plan)) == 2, plan
    return plan


async def test_the_kept_plan_of_the_look_at_neighbours_goes_by_keys(database: Database, store: LargeScope) -> None:
    """It does not depend on the values, so a big user's and a small one's are the same."""
    _finds_equal_by_key(await _kept_plan(database, store))


def _finds_equal_by_key(plan: str) -> None:
    assert plan.count("Index Scan using pk_memory on") == 2, plan
    assert re.search(r"Index Scan using (?:ix_memory_hash|uq_memory_dedup) on memory m ", plan) is not None, plan


async def test_among_many_tenants_an_equal_text_is_still_found_by_its_key(
    database: Database, store: LargeScope, owner_url: str
) -> None:
    """By the columns' own statistics a user of one of them has a single memory, and then every index of a user is as
    good as the key (st_memory_scope)."""
    tenants = [await new_tenant(database) for _ in range(100)]
    for tenant in tenants:
        async with database.begin(tenant.workspace_id) as session:
            await (await driver(session)).execute(OTHERS, tenant.workspace_id, [uuid4() for _ in range(30)])
    await _as_owner(owner_url, "ANALYZE memory")
    try:
        _finds_equal_by_key(await _kept_plan(database, store))
    finally:
        await _as_owner(owner_url, "DELETE FROM memory WHERE user_id LIKE 'tenant-%'", "ANALYZE memory")


async def test_the_look_at_neighbours_reads_binary_vectors_alone_and_few_vectors(
    database: Database, store: LargeScope, owner_url: str
) -> None:
    await _as_owner(owner_url, "VACUUM memory_vector")  # an index alone tells what is visible after that
    plan = await _kept_plan(database, store)
    assert len(re.findall(r"Index Only Scan using memory_vector_p\d+_workspace_id_user_id_kind", plan)) == 2, plan
    assert len(re.findall(r"Index Scan using memory_vector_p\d+_pkey", plan)) == 1, plan
    assert plan.count("Index Scan using pk_memory on") == 2, plan


@pytest.mark.parametrize("user", ["small", "big"])
@pytest.mark.parametrize("since", [1, 2250])
async def test_the_nearest_of_a_scope_are_the_neighbours_of_a_draft(
    database: Database, store: LargeScope, user: str, since: int
) -> None:
    """Compared with all vectors in exact order: where all are compared, where signs choose, and under a condition that
    hides rows of both."""
    mine = [at for at in range(ROWS) if ((at + 1) % 16 == 0) == (user == "small") and (at + 1) % 150 != 7]
    seen = [at for at in mine if at + 1 >= since]
    assert (len(mine) > near_memories.MAX_CLOSE) == (user == "big")
    chance = np.random.default_rng(5)
    compare = filters.read({"field": "n", "operator": "gte", "value": since})
    for question in mine[:20]:
        vector = store.vectors[question] + np.float32(0.01) * chance.standard_normal(
            store.vectors.shape[1], dtype=np.float32
        )
        draft = replace(
            Draft(
                Scope(store.workspace, user_id=user),
                "",
                CallerFields(dedup_filter=compare),
                Options(),
                datetime.now(UTC),
            ),
            vector=vector,
            embedding_status=EmbeddingStatus.STORED,
        )
        async with database.read(store.workspace, generic_plans=True) as session:
            neighbours = await near_memories.find_neighbours(session, draft, generation=1, similarity=float, limit=5)
        found = neighbours.neighbours
        cosines = store.vectors[seen] @ (vector / np.linalg.norm(vector))
        best = np.argsort(-cosines)[:5]
        assert [each.id for each in found] == [store.ids[seen[at]] for at in best]
        assert [each.similarity for each in found] == pytest.approx([cosines[at] for at in best], abs=1e-3)

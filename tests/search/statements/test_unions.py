"""Plans of a search in a union: a user's memories and what the workspace shares, or a user's and an agent's.

Every part is read by an index of its own, whichever the strategy; no statement falls back to the whole workspace.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import numpy as np
import pytest
from sqlalchemy import TextClause, text

from service.domain.query import Query, SortOrder
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.memories.statements import memories, near_memories, visibility
from service.postgres import scopes
from service.postgres.engine import Database, Session, driver
from service.postgres.scopes import Condition
from service.search.indexed_conditions import NO_FILTER_KEYS
from service.search.statements import approximate, candidates, exact, term_statistics
from service.search.statements.search_plan import NOWHERE, SearchPlan
from tests.conftest import new_tenant

ROWS, EXACT_ROWS = 1_200, 500
PART = 240  # into the graph at once, well inside the time that a statement has; a multiple of twelve
NOW = datetime(2026, 11, 1, tzinfo=UTC)

# Of twelve rows one is Ann's, one the agent's, one shared, and the others are of another user.
OWNERS = """CASE WHEN n % 12 = 0 THEN 'ann' WHEN n % 12 < 3 THEN NULL ELSE 'bob' END AS user_id,
        CASE WHEN n % 12 = 1 THEN 'guide' END AS agent_id"""
# Without ON CONFLICT, Citus would copy the rows into the table, which row-level security refuses.
MEMORIES = f"""
    INSERT INTO memory (workspace_id, id, user_id, agent_id, content, hash, terms, bm25, type, type_confidence,
        classification_source, importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
    SELECT $1, new.id, owner.user_id, owner.agent_id, 'text ' || n, n::text, ARRAY[1, 100 + n % 50],
        ('{{2:1,' || 101 + n % 50 || ':1}}/1000000000')::sparsevec, 'Context', 1, 'default', 0.5, 5,
        timestamptz '2026-01-01' + n * interval '1 hour', 'stored',
        timestamptz '2026-01-01' + n * interval '1 hour', now()
    FROM unnest($2::uuid[]) WITH ORDINALITY new (id, n), LATERAL (SELECT {OWNERS}) owner
    ON CONFLICT DO NOTHING
"""
VECTORS = f"""
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, embedding)
    SELECT $1, new.id, 1, 'text', owner.user_id, owner.agent_id, new.embedding::halfvec
    FROM unnest($2::uuid[], $3::text[]) WITH ORDINALITY new (id, embedding, n), LATERAL (SELECT {OWNERS}) owner
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Union:
    workspace: UUID
    vector: Any

    def plan(self, scope: Scope) -> SearchPlan:
        """A query of two terms and a vector."""
        return SearchPlan(
            scopes.readable("m", scope),
            scopes.readable("v", scope),
            visibility.conditions("m", Query(scope, CleanText("?"), 10), NOW),
            1,
            EXACT_ROWS,
            NO_FILTER_KEYS,
            terms=[1, 100],
            vector=self.vector,
            match=scope.match,
            with_shared=scope.include_shared,
        )

    def scope(self, name: str) -> Scope:
        return {
            "and shared": Scope(self.workspace, "ann", include_shared=True),
            "shared": Scope(self.workspace, include_shared=True),
            "or agent": Scope(self.workspace, "ann", "guide", match="any"),
            "or agent and shared": Scope(self.workspace, "ann", "guide", match="any", include_shared=True),
        }[name]


@pytest.fixture(scope="module")
async def store(database: Database, owner_url: str, settings: Settings) -> AsyncIterator[Union]:
    vectors = np.random.default_rng(3).standard_normal((ROWS, settings.embedder.dim)).astype(np.float32)
    ids = [UUID(int=(11 << 124) + number) for number in range(1, ROWS + 1)]
    tenant = await new_tenant(database)
    async with database.begin(tenant.workspace_id, writes_shared=True) as session:
        raw = await driver(session)
        await raw.execute(MEMORIES, tenant.workspace_id, ids)
        written = ["[" + ",".join(f"{value:.3f}" for value in vector) + "]" for vector in vectors]
        for begin in range(0, ROWS, PART):
            part = slice(begin, begin + PART)
            await raw.execute(VECTORS, tenant.workspace_id, ids[part], written[part])
        await term_statistics.count(session)
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    for table in ("memory", "memory_vector", "term_stat"):  # an index alone tells what is visible after VACUUM
        await connection.execute(f"VACUUM (ANALYZE) {table}")
    await connection.close()
    yield Union(tenant.workspace_id, vectors[0])
    async with database.begin(tenant.workspace_id, writes_shared=True) as session:
        await session.execute(text("DELETE FROM memory WHERE workspace_id = :w"), {"w": tenant.workspace_id})


async def explained(session: Session, statement: TextClause, values: Any) -> str:
    shown = text(f"EXPLAIN {statement.text}").bindparams(*statement._bindparams.values())
    plan = "\n".join(row[0] for row in await session.execute(shown, values))
    assert not re.search(r"Seq Scan on (public\.)?memory", plan), plan
    assert "ix_memory_created" not in plan, plan
    return plan


INDEXES = {
    "and shared": ("user", "shared"),
    "shared": ("shared",),
    "or agent": ("user", "agent"),
    "or agent and shared": ("user", "agent", "shared"),
}


@pytest.mark.parametrize("name", INDEXES)
async def test_each_part_of_a_small_scope_is_read_from_its_index_alone(
    database: Database, store: Union, name: str
) -> None:
    plan = store.plan(store.scope(name))
    async with database.snapshot(store.workspace) as session:
        await session.execute(text("SELECT set_config('enable_bitmapscan', 'off', true)"))
        shown = await explained(session, exact.statement(plan), exact.values(plan))
    for part in INDEXES[name]:
        assert f"Index Only Scan using ix_memory_{part}_bm25" in shown, shown
        assert f"ix_memory_{part}_many_terms" in shown, shown
    vectors = len(re.findall(r"Index Only Scan using memory_vector_p\d+_workspace_id\w*_kind", shown))
    assert vectors == 2 * len(INDEXES[name]), shown


@pytest.mark.parametrize("name", INDEXES)
async def test_each_part_of_a_medium_scope_is_read_from_its_index_alone(
    database: Database, store: Union, name: str
) -> None:
    plan = store.plan(store.scope(name))
    async with database.snapshot(store.workspace) as session:
        statistics = await approximate.read_frequencies(session, plan.terms)
        statement = approximate.statement(plan, "binary")
        shown = await explained(session, statement, approximate.values(plan, "binary", statistics))
    vectors = len(re.findall(r"Index Only Scan using memory_vector_p\d+_workspace_id\w*_kind", shown))
    assert vectors == 2 * len(INDEXES[name]), shown


async def test_how_large_it_is_and_who_speaks_is_asked_part_by_part(database: Database, store: Union) -> None:
    scope = scopes.readable("m", store.scope("or agent and shared"))
    async with database.snapshot(store.workspace) as session:
        found = [await candidates.summary(session, part, NOWHERE, count_to=ROWS) for part in scope.each]
        for part in scope.each:
            values = {**part.values, "most": ROWS, "speakers": 200}
            shown = await explained(session, candidates.SUMMARY.fill(scope=part.sql, turns=NOWHERE.sql), values)
            assert shown.count("_speaker") == 2, shown
    assert [each.rows for each in found] == [ROWS / 12] * 3


async def test_a_list_walks_the_indexes_of_its_parts_in_their_order(database: Database, store: Union) -> None:
    rows = scopes.readable("m", store.scope("and shared")) & visibility.not_archived("m")
    statement = memories.page_statement(rows, SortOrder())
    async with database.snapshot(store.workspace) as session:
        shown = await explained(session, statement, {**rows.values, "limit": 10})
    assert shown.count("Limit") == 3, shown
    for index in ("ix_memory_user", "ix_memory_shared"):
        assert re.search(rf"Index Scan using {index}(_\d+)? on", shown), shown


@pytest.mark.parametrize("name", INDEXES)
async def test_strategies_agree(database: Database, store: Union, name: str) -> None:
    """The nearest are the same, and the terms of all parts are counted together."""
    plan, rows = store.plan(store.scope(name)), len(INDEXES[name]) * ROWS // 12
    async with database.snapshot(store.workspace) as session:
        small = await exact.find(session, replace(plan, exact_rows=ROWS))
        medium = await approximate.find(session, plan, "binary")
        large = await approximate.find(session, plan, "hnsw")
    assert small is not None
    assert (small.text_count, small.text_df[1]) == (rows, rows)
    assert small.arms["text_vector"][:10] == medium.arms["text_vector"][:10]
    assert set(large.arms["text_vector"][:10]) == set(small.arms["text_vector"][:10])


async def test_a_shared_text_is_compared_with_shared_ones_by_their_index(database: Database, store: Union) -> None:
    """By generic plans, which are made once for all scopes of this kind."""
    shared = Scope(store.workspace)
    vectors, here, rows = scopes.exact("v", shared), scopes.exact("m", shared), Condition("NOT m.archived")
    statement = near_memories.compare(vectors, here, rows, NOW, generation=1)
    _, near = near_memories.nearest_statement(vectors, rows, store.vector, generation=1, limit=5)
    values = {**here.values, **near, "now": NOW, "hash": "0", **near_memories.close_limits(5)}
    async with database.begin(store.workspace, generic_plans=True) as session:
        shown = await explained(session, statement, values)
    assert len(re.findall(r"memory_vector_p\d+_workspace_id_kind", shown)) == 2, shown


OF_ANN, OF_GUIDE, SHARED = "user_id = 'ann'", "agent_id = 'guide'", "ix_memory_shared|user_id IS NULL"


@pytest.mark.parametrize(
    ("rule", "columns"),
    [
        ("is_in_scope({ids}, 'ann', NULL, NULL, false, false)", [OF_ANN]),
        ("is_in_scope({ids}, NULL, NULL, NULL, false, true)", [SHARED]),
        ("is_in_scope({ids}, 'ann', NULL, NULL, false, true)", [OF_ANN, SHARED]),
        ("is_in_scope({ids}, 'ann', 'guide', NULL, true, true)", [OF_ANN, OF_GUIDE, SHARED]),
        ("is_of_subject({ids}, m.channel, 'ann', NULL, NULL, NULL)", [OF_ANN]),
    ],
)
async def test_the_rule_of_the_functions_is_seen_through_by_the_planner(
    store: Union, owner_url: str, rule: str, columns: list[str]
) -> None:
    """It sees the columns and so their indexes, whichever it then uses."""
    asked = rule.format(ids="m.user_id, m.agent_id, m.run_id")
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    rows = await connection.fetch(
        f"EXPLAIN SELECT FROM memory m WHERE m.workspace_id = '{store.workspace}' AND {asked}"
    )
    await connection.close()
    shown = "\n".join(row[0] for row in rows)
    assert rule.split("(")[0] not in shown
    for each in columns:
        assert re.search(each, shown), shown

"""Counts: of a workspace, of its categories, and of the uses of memories and entities; and whether some are shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, select, text

from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import MEMORY

WORKSPACE = text("""
    SELECT (SELECT count(*) FROM memory WHERE workspace_id = :workspace AND version_of IS NULL) AS memories,
           (SELECT count(*) FROM memory WHERE workspace_id = :workspace AND archived AND version_of IS NULL)
               AS archived,
           (SELECT count(*) FROM memory WHERE workspace_id = :workspace AND embedding_status <> 'stored')
               AS pending_embeddings,
           (SELECT count(*) FROM memory_vector WHERE workspace_id = :workspace AND kind = 'text' AND generation =
               (SELECT generation FROM embedding_generation WHERE state = 'active')) AS vectors,
           (SELECT count(*) FROM conversation WHERE workspace_id = :workspace) AS conversations,
           (SELECT count(*) FROM entity WHERE workspace_id = :workspace) AS entities,
           (SELECT count(*) FROM job WHERE workspace_id = :workspace AND state = 'dead') AS dead_jobs
""")

ANY_SHARED = text("""
    SELECT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
                   AND m.user_id IS NULL AND m.agent_id IS NULL AND m.run_id IS NULL)
""")

RELEVANCE = text("""
    SELECT memory_id, relevance, salience FROM memory_stat
    WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[]))
""")

# Locked by ascending id, as everywhere. memory_stat has room in its pages and no other index, so updates stay HOT.
COUNT_USES = """
    WITH used AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[]), CAST(:at AS timestamptz[]))
            AS u (id, times, at)
    ), locked AS (
        SELECT t.{id} AS id FROM {table} t
        WHERE t.workspace_id = :workspace AND t.{id} = ANY (CAST(:ids AS uuid[]))
        ORDER BY t.{id} FOR UPDATE
    )
    UPDATE {table} t
    SET access_count = t.access_count + used.times, last_accessed = greatest(t.last_accessed, used.at)
    FROM used JOIN locked ON locked.id = used.id
    WHERE t.workspace_id = :workspace AND t.{id} = used.id
"""
COUNT_MEMORIES = text(COUNT_USES.format(table="memory_stat", id="memory_id"))
COUNT_ENTITIES = text(COUNT_USES.format(table="entity", id="id"))


@dataclass(frozen=True, slots=True)
class RankingStats:
    """Relevance and salience of a memory, both 0..1, as last stored."""

    relevance: float
    salience: float


@dataclass(frozen=True, slots=True)
class Use:
    """The number of uses since the last count, and the last use."""

    times: int
    at: datetime


async def of_workspace(session: Session) -> Row[Any]:
    """Exact counts, by the names in WORKSPACE."""
    return (await session.execute(WORKSPACE)).one()


async def for_ranking(session: Session, ids: Sequence[UUID]) -> Mapping[UUID, RankingStats]:
    """Relevance and salience of these memories. Uses pk_memory_stat."""
    rows = await direct.fetch(session, RELEVANCE, {"ids": list(ids)})
    return {row.memory_id: RankingStats(row.relevance, row.salience) for row in rows}


async def any_shared(session: Session, ids: Sequence[UUID]) -> bool:
    """Whether any of the memories with these ids is shared."""
    return bool(await session.scalar(ANY_SHARED, {"ids": list(ids)}))


async def categories(session: Session, scope: Scope, *, limit: int) -> list[tuple[str, int]]:
    """Categories of the scope's live memories with their counts, most used first."""
    category = func.unnest(MEMORY.c.categories).column_valued("category", joins_implicitly=True)
    count = func.count().label("count")
    rows = await session.execute(
        select(category, count)
        .select_from(MEMORY)
        .where(scopes.readable("memory", scope).clause, ~MEMORY.c.archived)
        .group_by(category)
        .order_by(count.desc(), category)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in rows]


async def count_uses(session: Session, memories: Mapping[UUID, Use], entities: Mapping[UUID, Use]) -> None:
    """Adds to the access counts of memories, then of entities; deleted ones are skipped."""
    for statement, uses in ((COUNT_MEMORIES, memories), (COUNT_ENTITIES, entities)):
        if uses:
            ids = sorted(uses)
            values = {"ids": ids, "counts": [uses[key].times for key in ids], "at": [uses[key].at for key in ids]}
            await direct.fetch(session, statement, {**values})

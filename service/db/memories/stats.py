"""How much does a workspace hold, and how does a memory stand?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text

from service.db import scopes
from service.db.engine import Session
from service.db.tables import Memory
from service.domain.scope import Scope

COUNT = text(
    """
    SELECT (SELECT count(*) FROM memory WHERE workspace_id = :workspace) AS memories,
           (SELECT count(*) FROM memory WHERE workspace_id = :workspace AND archived) AS archived,
           (SELECT count(*) FROM memory WHERE workspace_id = :workspace AND embedding_status <> 'stored')
               AS pending_embeddings,
           (SELECT count(*) FROM memory_vector WHERE workspace_id = :workspace AND kind = 'text') AS vectors,
           (SELECT count(*) FROM conversation WHERE workspace_id = :workspace) AS conversations,
           (SELECT count(*) FROM entity WHERE workspace_id = :workspace) AS entities
    """
)


@dataclass(frozen=True, slots=True)
class Stats:
    memories: int
    archived: int
    pending_embeddings: int
    vectors: int
    conversations: int
    entities: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What reads and jobs made of a memory; both 0..1."""

    relevance: float
    salience: float


STANDING = text("""
    SELECT memory_id, relevance, salience FROM memory_stat
    WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[]))
""")


async def standing(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, Standing]:
    """Relevance and salience of these memories, by the primary key."""
    rows = await session.execute(STANDING, {"workspace": workspace_id, "ids": list(ids)})
    return {row.memory_id: Standing(row.relevance, row.salience) for row in rows}


async def of_workspace(session: Session, workspace_id: UUID) -> Stats:
    """Exact counts."""
    return Stats(*(await session.execute(COUNT, {"workspace": workspace_id})).one())


async def categories(session: Session, scope: Scope, *, limit: int) -> list[tuple[str, int]]:
    """Categories of the scope's live memories with their counts, most used first."""
    each = func.unnest(Memory.categories).column_valued("category", joins_implicitly=True)
    count = func.count().label("count")
    rows = await session.execute(
        select(each, count)
        .select_from(Memory)
        .where(scopes.matching("memory", scope).clause, ~Memory.archived)
        .group_by(each)
        .order_by(count.desc(), each)
        .limit(limit)
    )
    return [(row[0], row[1]) for row in rows]

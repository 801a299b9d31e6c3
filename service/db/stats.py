"""How much does a workspace hold?"""

from __future__ import annotations

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

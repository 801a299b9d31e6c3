"""Which live memories of exactly this scope stand beside a text? For deduplication, before and in the lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from sqlalchemy import TextClause, select, text

from service.db import nearest, scopes, visible
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.tables import Memory
from service.domain.draft import Draft, EmbeddingStatus, Neighbour
from service.domain.scope import Scope
from service.domain.text import CleanText


async def of_draft(
    session: Session,
    draft: Draft,
    *,
    generation: int,
    similarity: Callable[[float], float],
    limit: int,
    exact_rows: int,
) -> tuple[Neighbour, ...]:
    """The row with the same hash, if any, then the nearest by vector; `similarity` 1.0 for an equal text."""
    now = draft.received_at
    equal = await with_hash(session, draft.scope, draft.hash, now=now)
    if equal is not None:
        return (equal,)
    if draft.vector is None or draft.embedding_status is not EmbeddingStatus.STORED:
        return ()
    target = nearest.Target(scopes.exactly("v", draft.scope), _live("m", now), generation)
    found = await nearest.find(session, target, draft.vector, limit=limit, exact_rows=exact_rows)
    rows = await _texts(session, draft.scope.workspace_id, [each.id for each in found])
    return tuple(Neighbour(each.id, *rows[each.id], similarity(each.cosine)) for each in found if each.id in rows)


async def with_hash(session: Session, scope: Scope, wanted: str, *, now: datetime) -> Neighbour | None:
    """The live row with this hash that takes part in deduplication. Uses ix_memory_hash."""
    here = scopes.exactly("m", scope) & _live("m", now)
    row = (await session.execute(_with_hash(here.sql), {**here.values, "hash": wanted})).one_or_none()
    return Neighbour(row.id, CleanText(row.content), row.hash, row.version, 1.0) if row else None


@lru_cache(maxsize=64)
def _with_hash(here: str) -> TextClause:
    found = "SELECT m.id, m.content, m.hash, m.version FROM memory m"
    return typed(text(f"{found} WHERE m.hash = :hash AND m.dedup_key = :hash AND {here} LIMIT 1"))


async def with_hashes(
    session: Session, scope: Scope, wanted: Sequence[str], *, now: datetime
) -> dict[str, tuple[UUID, str]]:
    """Id and text of the live rows among these hashes, for a whole conversation at once."""
    here = scopes.exactly("memory", scope) & _live("memory", now)
    rows = await session.execute(
        select(Memory.hash, Memory.id, Memory.content).where(
            here.clause, Memory.hash.in_(wanted), Memory.dedup_key == Memory.hash
        )
    )
    return {row.hash: (row.id, row.content) for row in rows}


def _live(alias: str, now: datetime) -> Condition:
    return visible.live(alias) & visible.alive(alias, now) & visible.comparable(alias)


TEXTS = typed(text("SELECT id, content, hash, version FROM memory WHERE workspace_id = :workspace AND id = ANY(:ids)"))


async def _texts(session: Session, workspace_id: UUID, ids: list[UUID]) -> dict[UUID, tuple[CleanText, str, int]]:
    if not ids:
        return {}
    rows = await session.execute(TEXTS, {"workspace": workspace_id, "ids": ids})
    return {row.id: (CleanText(row.content), row.hash, row.version) for row in rows}

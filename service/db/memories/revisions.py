"""How does a row take a new text, a new place or a new state?

Every change counts `version` up by one. Values are computed by the verb; here they meet the database, whose unique
index has the last word on two memories of a scope with one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from sqlalchemy import Column, ColumnElement, and_, case, delete, func, insert, literal, null, select, update
from sqlalchemy.exc import IntegrityError

from service.db.engine import Session
from service.db.graph import entity_relations
from service.db.memories.memories import AVERAGE_LENGTH
from service.db.tables import TERM_DIMENSIONS, MemoryStat, MemoryVector
from service.db.tables import Memory as Table
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText, content_hash
from service.errors import Conflict
from service.language import lexemes

Vector = NDArray[np.float32]
VectorKind = Literal["text", "placeholder"]


def of_text(text: CleanText, weights: Mapping[int, float] | None = None) -> dict[str, Any]:
    """The columns that follow from a text alone; `weights` of its terms, if they are known already. A row that takes no
    part in deduplication stays out of it."""
    if weights is None:
        weights = lexemes.weights(text, avgdl=AVERAGE_LENGTH)
    digest = content_hash(text)
    return {
        "content": text,
        "hash": digest,
        "dedup_key": case((Table.dedup_key.is_not(None), digest), else_=null()),
        "terms": sorted(weights),
        "bm25": SparseVector(dict(weights), TERM_DIMENSIONS) if weights else None,
        "summary": None,
        "enriched_at": None,
        "enrichment_attempts": 0,
    }


LIFETIME = frozenset({"archived", "t_invalid"})
"""What ends, or prolongs, the relations that a memory tells."""


async def change(
    session: Session, workspace_id: UUID, memory_id: UUID, values: Mapping[str, Any], *, now: datetime
) -> None:
    """Sets columns; raises Conflict when another live memory of the scope has exactly this text."""
    here = and_(Table.workspace_id == workspace_id, Table.id == memory_id)
    changed = {"updated_at": now, **values, "version": Table.version + 1}
    try:
        await session.execute(update(Table).where(here).values(changed))
    except IntegrityError as exc:
        raise _named(exc) from exc
    if values.keys() & LIFETIME:
        await entity_relations.hold_as_told(session, workspace_id, [memory_id], now=now)


async def outdate(session: Session, workspace_id: UUID, memory_id: UUID, *, now: datetime) -> None:
    """Ends the validity now, unless it ended before, and takes the row out of deduplication. One that was to become
    valid later ends a microsecond after its beginning: an interval needs a length."""
    ended = func.least(Table.t_invalid, func.greatest(now, Table.t_valid + timedelta(microseconds=1)))
    await change(session, workspace_id, memory_id, {"t_invalid": ended, "dedup_key": None}, now=now)


async def touch(session: Session, workspace_id: UUID, memory_id: UUID, values: Mapping[str, Any]) -> None:
    """Sets what stands beside the row: last access, relevance."""
    here = and_(MemoryStat.workspace_id == workspace_id, MemoryStat.memory_id == memory_id)
    await session.execute(update(MemoryStat).where(here).values(dict(values)))


async def replace_vector(
    session: Session, scope: Scope, memory_id: UUID, vector: Vector | None, *, kind: VectorKind, generation: int
) -> None:
    """The old vectors go at once: they would find the memory by a text it no longer has."""
    await session.execute(
        delete(MemoryVector).where(MemoryVector.workspace_id == scope.workspace_id, MemoryVector.memory_id == memory_id)
    )
    if vector is None:
        return
    row = {
        "workspace_id": scope.workspace_id,
        "memory_id": memory_id,
        "generation": generation,
        "kind": kind,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "run_id": scope.run_id,
        "channel": scope.channel,
        "embedding": vector,
    }
    await session.execute(insert(MemoryVector), [row])


async def copy_to_global(
    session: Session, workspace_id: UUID, memory_id: UUID, new_id: UUID, *, generation: int, now: datetime
) -> None:
    """A second row with the same text in `_global`, its vector and statistics; it is enriched anew, because entities
    belong to a channel. Raises Conflict when `_global` has a live memory with this text."""
    other = {
        "id": new_id,
        "channel": GLOBAL_CHANNEL,
        "archived": False,
        "version": 1,
        "created_at": now,
        "updated_at": now,
        "summary": None,
        "enriched_at": None,
        "enrichment_attempts": 0,
        "dedup_key": Table.__table__.c.hash,
    }
    try:
        await _copy(session, Table, and_(Table.workspace_id == workspace_id, Table.id == memory_id), other)
    except IntegrityError as exc:
        raise _named(exc) from exc
    stat = and_(MemoryStat.workspace_id == workspace_id, MemoryStat.memory_id == memory_id)
    await _copy(session, MemoryStat, stat, {"memory_id": new_id, "last_accessed": now})
    vector = and_(
        MemoryVector.workspace_id == workspace_id,
        MemoryVector.memory_id == memory_id,
        MemoryVector.generation == generation,
    )
    await _copy(session, MemoryVector, vector, {"memory_id": new_id, "channel": GLOBAL_CHANNEL, "created_at": now})


async def _copy(session: Session, table: Any, rows: Any, other: Mapping[str, Any]) -> None:
    columns = table.__table__.c
    taken = [_taken(each, other) for each in columns]
    await session.execute(insert(table).from_select([each.name for each in columns], select(*taken).where(rows)))


def _taken(column: Column[Any], other: Mapping[str, Any]) -> ColumnElement[Any]:
    if column.name not in other:
        return column
    value = other[column.name]
    return literal(value, column.type) if not isinstance(value, ColumnElement) else value


def _named(error: IntegrityError) -> Exception:
    """Our word for a broken constraint; what we have no word for stays a bug."""
    cause = getattr(error.orig, "__cause__", None)
    if isinstance(cause, asyncpg.UniqueViolationError) and cause.constraint_name == "uq_memory_dedup":
        return Conflict("Another memory of this scope has exactly this text.", field="content")
    return error

"""Changes one memory: its text, vector, state or lifetime, or copies it to `_global`.

Every change increases `version` by one. Verbs compute the values; the unique index on texts (uq_memory_dedup) prevents
two live memories of a scope from having the same text. Lock order: the scope, then the memory, then the relations
between entities that the memory is evidence of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, TableClause, and_, case, delete, func, insert, literal, null, select, update
from sqlalchemy.exc import IntegrityError

from service.domain import sizes
from service.domain.draft import Draft, EmbeddingStatus, NewMemory
from service.domain.errors import Conflict
from service.domain.memory import Memory
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.domain.text import CleanText, content_hash
from service.graph.statements import entity_relations
from service.language import lexemes, tags
from service.memories.statements import memories
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.driver_errors import violated_constraint
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, MEMORY_STAT, MEMORY_VECTOR
from service.postgres.vectors import term_columns

LIFETIME = frozenset({"archived", "t_invalid"})
"""Columns on which the validity of relations between entities depends that the memory is evidence of."""

NOT_ENRICHED = {"enriched_at": None, "enrichment_attempts": 0}
"""A changed text is enriched again."""


def text_columns(text: CleanText, term_weights: Mapping[int, float]) -> dict[str, Any]:
    """The columns derived from the text alone; it waits for its vector. A row that takes no part in deduplication stays
    out of it."""
    digest = content_hash(text)
    return {
        "content": text,
        "hash": digest,
        "dedup_key": case((MEMORY.c.dedup_key.is_not(None), digest), else_=null()),
        **term_columns(term_weights),
        "embedding_status": str(EmbeddingStatus.QUEUED),
        "summary": None,
        **NOT_ENRICHED,
    }


async def set_columns(session: Session, ids: Sequence[UUID], values: Mapping[str, Any], *, now: datetime) -> None:
    """Sets columns of memories; raises Conflict when another live memory of the scope has exactly this text."""
    changed = {"updated_at": now, **values, "version": MEMORY.c.version + 1}
    try:
        await session.execute(update(MEMORY).where(_is(session.workspace_id, *ids)).values(changed))
    except IntegrityError as exc:
        raise conflict(exc) from exc
    if values.keys() & LIFETIME:
        await entity_relations.update_validity(session, ids, now=now)


def ended(at: datetime) -> dict[str, Any]:
    """The columns of a memory whose validity ends at a moment; it is out of deduplication."""
    return {"t_invalid": end_at(at), "dedup_key": None}


def end_at(at: datetime) -> ColumnElement[Any]:
    """`t_invalid` of a memory whose validity ends at a moment, unless it ended before. One that becomes valid later
    ends a microsecond after its beginning, because an interval may not be empty."""
    utc = func.timezone("UTC", MEMORY.c.t_valid)  # a sum of timestamptz would depend on the session's time zone
    first = func.timezone("UTC", utc + timedelta(microseconds=1))
    return func.least(MEMORY.c.t_invalid, func.greatest(literal(at, MEMORY.c.t_valid.type), first))


async def expires_before(session: Session, memory_id: UUID, moment: datetime | None) -> bool:
    """Whether the memory expires before `moment` (None: ever)."""
    expires_at = await session.scalar(select(MEMORY.c.expires_at).where(_is(session.workspace_id, memory_id)))
    return expires_at is not None and (moment is None or expires_at < moment)


async def set_stat(session: Session, memory_id: UUID, values: Mapping[str, Any]) -> None:
    """Sets columns of memory_stat, such as last_accessed and relevance."""
    condition = and_(MEMORY_STAT.c.workspace_id == session.workspace_id, MEMORY_STAT.c.memory_id == memory_id)
    await session.execute(update(MEMORY_STAT).where(condition).values(dict(values)))


async def replace_text(
    session: Session, old: Memory, new: NewMemory, *, t_valid: datetime | None, generation: int, now: datetime
) -> None:
    """Gives an existing row the text, times, vectors and annotation of `new` and unites tags, categories and metadata.
    Its id, scope and created_at stay."""
    workspace_id = new.draft.scope.workspace_id
    await memories.release_expired(session, [new.hash], now=now)
    values = {
        **memories.text_values(new),
        "timestamp": new.draft.timestamp,
        "said_at": None,
        "t_valid": t_valid,
        "t_invalid": new.draft.given.t_invalid,
        "context_terms": [],  # the context had the old text; without one the memory is its own context
        "context_bm25": None,
        **unite_columns(old, new.draft),
        "expires_at": _expiry(old, new),
        "updated_at": new.draft.given.updated_at or now,
        "version": MEMORY.c.version + 1,
        **NOT_ENRICHED,
    }
    await session.execute(update(MEMORY).where(_is(workspace_id, old.id)).values(values))
    await replace_vectors(session, new.draft.scope, old.id, memories.vectors_of(new), generation=generation)


async def replace_vectors(
    session: Session, scope: Scope, memory_id: UUID, vectors: Mapping[str, NDArray[np.float32]], *, generation: int
) -> None:
    """Deletes all vectors, by which the memory would be found by a text it no longer has, and stores the new ones, by
    kind."""
    old = and_(MEMORY_VECTOR.c.workspace_id == scope.workspace_id, MEMORY_VECTOR.c.memory_id == memory_id)
    await session.execute(delete(MEMORY_VECTOR).where(old))
    rows = [
        {**scope.columns, "id": memory_id, "generation": generation, "kind": kind, "embedding": vector}
        for kind, vector in vectors.items()
    ]
    await direct.insert(session, NewRows(memories.INSERT_VECTOR, rows))


async def copy_to_global(session: Session, memory_id: UUID, new_id: UUID, *, generation: int, now: datetime) -> None:
    """Copies a memory to `_global`, with its vectors and statistics. The copy is enriched again, because entities
    belong to a channel. Raises Conflict if `_global` has a live memory with this text."""
    other = {
        "id": new_id,
        "channel": GLOBAL_CHANNEL,
        "archived": False,
        "version": 1,
        "created_at": now,
        "updated_at": now,
        "summary": None,
        "dedup_key": MEMORY.c.hash,
        **NOT_ENRICHED,
    }
    try:
        await _copy(session, MEMORY, _is(session.workspace_id, memory_id), other)
    except IntegrityError as exc:
        raise conflict(exc) from exc
    await _copy_stat(session, memory_id, {"memory_id": new_id, "last_accessed": now})
    own = and_(MEMORY_VECTOR.c.workspace_id == session.workspace_id, MEMORY_VECTOR.c.memory_id == memory_id)
    moved = {"memory_id": new_id, "channel": GLOBAL_CHANNEL, "created_at": now}
    await _copy(session, MEMORY_VECTOR, and_(own, MEMORY_VECTOR.c.generation == generation), moved)


async def copy_with_text(session: Session, memory_id: UUID, new_id: UUID, text: CleanText, *, now: datetime) -> None:
    """A copy of a memory with another text, without vectors, which a job makes."""
    other = {
        "id": new_id,
        "version": 1,
        "created_at": now,
        "updated_at": now,
        **text_columns(text, lexemes.weights(text)),
    }
    await _copy(session, MEMORY, _is(session.workspace_id, memory_id), other)
    await _copy_stat(session, memory_id, {"memory_id": new_id})


async def _copy_stat(session: Session, memory_id: UUID, other: Mapping[str, Any]) -> None:
    stat = and_(MEMORY_STAT.c.workspace_id == session.workspace_id, MEMORY_STAT.c.memory_id == memory_id)
    await _copy(session, MEMORY_STAT, stat, other)


async def _copy(session: Session, table: TableClause, rows: ColumnElement[bool], other: Mapping[str, Any]) -> None:
    """INSERT ... SELECT of all columns, `other` values in place of some."""
    columns = table.c
    values = [
        column
        if column.name not in other
        else value
        if isinstance(value := other[column.name], ColumnElement)
        else literal(value, column.type)
        for column in columns
    ]
    copied = select(*values).where(rows)
    await session.execute(insert(table).from_select([column.name for column in columns], copied))


def _is(workspace_id: UUID, *ids: UUID) -> ColumnElement[bool]:
    return and_(MEMORY.c.workspace_id == workspace_id, MEMORY.c.id.in_(ids))


def _expiry(old: Memory, new: NewMemory) -> datetime | None:
    """The expiry of an updated memory: the new statement's, or where one text joins both, the later (None: never), so
    nothing is deleted too early."""
    given = new.draft.given
    if new.draft.merged is None or given.id == old.id:
        return given.expires_at
    if old.expires_at is None or given.expires_at is None:
        return None
    return max(old.expires_at, given.expires_at)


def unite_columns(old: Memory, new: Memory | Draft) -> dict[str, Any]:
    """The tags, categories and metadata of both memories, up to the limits of a row: the oldest are dropped first."""
    both = list(dict.fromkeys((*old.tags, *new.tags)))
    kept = tags.newest(both, most=sizes.MAX_TAGS, most_levels=sizes.MAX_TAG_LEVELS)
    return {
        "tags": kept,
        "tag_prefixes": list(tags.prefixes(kept)),
        "categories": list(dict.fromkeys((*old.categories, *new.categories))),
        "metadata": sizes.unite(old.metadata, new.metadata),
    }


def conflict(error: IntegrityError) -> Exception:
    """The Conflict for a broken constraint; an unknown constraint is a bug and raised as it is."""
    cause = getattr(error.orig, "__cause__", None)
    if isinstance(cause, asyncpg.UniqueViolationError) and violated_constraint(cause) == "uq_memory_dedup":
        return Conflict("Another memory in this scope has exactly this text.", field="content")
    return error

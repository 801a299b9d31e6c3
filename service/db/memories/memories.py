"""How are memories written and read back?

Bulk writes are multi-row INSERTs: COPY is refused under row-level security (B22). Functions take a session and never
commit; rows leave as domain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from sqlalchemy import DateTime, TextClause, and_, bindparam, delete, insert, select, text, update

from service.db import direct
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.graph import entity_relations
from service.db.memories.rows import Rows
from service.db.search import visibility
from service.db.tables import (
    TERM_DIMENSIONS,
    MemoryStat,
    MemoryVector,
)
from service.db.tables import Memory as Table
from service.domain.draft import EmbeddingStatus, NewMemory
from service.domain.kinds import Importance, Kind, KindSource, MemoryType
from service.domain.memory import Memory
from service.domain.scope import Scope
from service.domain.temporal import Mention, Temporal, TemporalTag, TemporalType
from service.domain.text import CleanText
from service.language import lexemes

AVERAGE_LENGTH = 12.0
"""Lexemes in an average memory, fixed in the stored BM25 weights so that rows need no rewrite (dependencies 8)."""


AVERAGE_CONTEXT_LENGTH = 30.0
"""The same for a turn with the two turns before it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A new memory with the place its turn got in a conversation, if it is one."""

    memory: NewMemory
    conversation_id: UUID | None = None
    turn_index: int | None = None


def new_rows(placed: Sequence[Placed], *, generation: int, now: datetime) -> tuple[Rows, ...]:
    """The rows of new memories, their stats and their vectors. Written, they raise Conflict for an id that another
    scope took meanwhile (scopes do not wait for each other), or an equal live row, which the scope lock makes rare."""
    return (
        Rows(Table, [_row(each, now) for each in placed]),
        Rows(MemoryStat, [_stat(each.memory, now) for each in placed]),
        Rows(MemoryVector, [row for each in placed for row in _vectors(each.memory, generation)]),
    )


# An expired row is as good as gone, but it stands in uq_memory_dedup until upkeep comes by. Uses ix_memory_hash.
MAKE_WAY = text("""
    UPDATE memory SET dedup_key = NULL
    WHERE workspace_id = :workspace AND hash = ANY (CAST(:hashes AS text[])) AND dedup_key IS NOT NULL
      AND expires_at <= :now
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))


async def make_way(session: Session, workspace_id: UUID, hashes: Sequence[str], *, now: datetime) -> None:
    """Takes expired rows with these texts out of the unique index."""
    await direct.fetch(session, MAKE_WAY, {"workspace": workspace_id, "hashes": list(hashes), "now": now})


async def replace_text(session: Session, memory_id: UUID, new: NewMemory, *, generation: int, now: datetime) -> Memory:
    """Gives an existing row the text, vector and annotation of `new`; tags, categories and metadata are united."""
    await make_way(session, new.scope.workspace_id, [new.hash], now=now)
    old = await get(session, new.scope.workspace_id, memory_id)
    assert old is not None, "the row was confirmed under the scope lock"
    here = and_(Table.workspace_id == new.scope.workspace_id, Table.id == memory_id)
    values = {name: value for name, value in _row(Placed(new), now).items() if name in REPLACED}
    values |= {
        "tags": _union(old.tags, new.tags),
        "tag_prefixes": _union(old.tag_prefixes, new.tag_prefixes),
        "categories": _union(old.categories, new.categories),
        "extra": {**old.metadata, **new.metadata},
        "expires_at": _until(old, new),
        # the context held the old text; without one the memory is its own context
        "context_terms": [],
        "context_bm25": None,
        "version": Table.version + 1,
        "enriched_at": None,
        "enrichment_attempts": 0,
    }
    await session.execute(update(Table).where(here).values(**values))
    await session.execute(
        delete(MemoryVector).where(
            MemoryVector.workspace_id == new.scope.workspace_id, MemoryVector.memory_id == memory_id
        )
    )
    vectors = [{**row, "memory_id": memory_id} for row in _vectors(new, generation)]
    if vectors:
        await session.execute(insert(MemoryVector), vectors)
    return old


async def ends_before(session: Session, workspace_id: UUID, memory_id: UUID, moment: datetime | None) -> bool:
    """Does it expire before `moment` (None: ever)?"""
    query = select(Table.expires_at).where(Table.workspace_id == workspace_id, Table.id == memory_id)
    until = await session.scalar(query)
    return until is not None and (moment is None or until < moment)


async def archive(session: Session, workspace_id: UUID, memory_id: UUID, *, now: datetime) -> None:
    """Takes a memory out of every search; it can be restored."""
    here = and_(Table.workspace_id == workspace_id, Table.id == memory_id)
    await session.execute(update(Table).where(here).values(archived=True, version=Table.version + 1, updated_at=now))
    await entity_relations.hold_as_told(session, workspace_id, [memory_id], now=now)


REPLACED = frozenset(
    {
        "content",
        "hash",
        "dedup_key",
        "terms",
        "bm25",
        "type",
        "type_confidence",
        "classification_source",
        "fact_confidence",
        "importance",
        "importance_level",
        "temporal_type",
        "valid_until",
        "temporal_tag",
        "mentions",
        "embedding_status",
        "updated_at",
    }
)
"""What an update takes over from the new text; the id, the scope, the timestamp and created_at stay."""


async def get(
    session: Session, workspace_id: UUID, memory_id: UUID, *, alive_at: datetime | None = None
) -> Memory | None:
    """One memory with its entities, archived or not; with `alive_at` only if it has not expired by then."""
    return (await get_many(session, workspace_id, [memory_id], alive_at=alive_at)).get(memory_id)


async def get_many(
    session: Session, workspace_id: UUID, ids: Sequence[UUID], *, alive_at: datetime | None = None
) -> dict[UUID, Memory]:
    """The memories among `ids` that exist; with `alive_at` only those that have not expired by then."""
    if not ids:
        return {}
    alive = ANY if alive_at is None else visibility.alive("m", alive_at)
    values = {**alive.values, "workspace": workspace_id, "ids": list(ids)}
    return {row.id: _memory(row) for row in await direct.fetch(session, _by_ids(alive.sql), values)}


COLUMNS = ", ".join(
    f'm."{column.name}"'
    for column in Table.__table__.c
    if column.name not in {"dedup_key", "terms", "bm25", "context_terms", "context_bm25", "review_status"}
)

# pk_memory, pk_memory_stat, pk_memory_entity; `named`: the names of a memory's entities by type.
BY_IDS = f"""
SELECT {COLUMNS}, s.relevance, s.salience, s.access_count, s.last_accessed,
       (SELECT jsonb_object_agg(type, names) FROM (
            SELECT e.type, array_agg(e.name ORDER BY e.name) AS names FROM memory_entity l
            JOIN entity e ON e.workspace_id = l.workspace_id AND e.id = l.entity_id
            WHERE l.workspace_id = m.workspace_id AND l.memory_id = m.id GROUP BY e.type
        ) by_type) AS named
FROM memory m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
"""  # noqa: S608 - our own columns


ANY = Condition("true")


@lru_cache(maxsize=2)
def _by_ids(alive: str) -> TextClause:
    return typed(text(f"{BY_IDS} AND {alive}"))


def _row(placed: Placed, now: datetime) -> dict[str, Any]:
    new = placed.memory
    scope, asked, temporal, speech = new.scope, new.asked, new.temporal, new.speech
    weights = lexemes.weights(new.text, avgdl=AVERAGE_LENGTH) if new.weights is None else new.weights
    near = lexemes.weights(new.context.text, avgdl=AVERAGE_CONTEXT_LENGTH) if new.context else {}
    return {
        "workspace_id": scope.workspace_id,
        "id": new.id,
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "run_id": scope.run_id,
        "channel": scope.channel,
        "session_id": asked.session_id,
        "content": new.text,
        "hash": new.hash,
        "dedup_key": new.hash if new.takes_part_in_dedup else None,
        "terms": sorted(weights),
        "bm25": SparseVector(dict(weights), TERM_DIMENSIONS) if weights else None,
        "context_terms": sorted(near),
        "context_bm25": SparseVector(near, TERM_DIMENSIONS) if near else None,
        "type": str(new.kind.type),
        "type_confidence": new.kind.confidence,
        "classification_source": str(new.kind.source),
        "fact_confidence": new.fact_confidence,
        "importance": new.importance.value,
        "importance_level": new.importance.level,
        "tags": list(new.tags),
        "tag_prefixes": list(new.tag_prefixes),
        "categories": list(new.categories),
        "metadata": dict(new.metadata),
        "timestamp": new.timestamp,
        "t_valid": asked.t_valid,
        "t_invalid": asked.t_invalid,
        "expires_at": asked.expires_at,
        "temporal_type": str(temporal.type),
        "valid_until": temporal.valid_until,
        "temporal_tag": temporal.tag and str(temporal.tag),
        "mentions": [mention_json(mention) for mention in temporal.mentions],
        "role": speech.role if speech else None,
        "speaker": speech.speaker if speech else None,
        "conversation_id": placed.conversation_id,
        "turn_index": placed.turn_index,
        "embedding_status": str(new.embedding_status),
        "created_at": now,
        "updated_at": asked.updated_at or now,
    }


def _stat(new: NewMemory, now: datetime) -> dict[str, Any]:
    return {
        "workspace_id": new.scope.workspace_id,
        "memory_id": new.id,
        "salience": new.importance.value,
        "base_confidence": new.fact_confidence,
        "base_salience": new.importance.value,
        "last_accessed": new.asked.last_accessed or now,
    }


def _vectors(new: NewMemory, generation: int) -> list[dict[str, Any]]:
    """The rows of a memory in memory_vector: its text's, and its context's if it is a turn."""
    own = "placeholder" if new.embedding_status is EmbeddingStatus.PLACEHOLDER else "text"
    kinds = {own: new.vector, "context": new.context.vector if new.context else None}
    return [_vector(new, generation, kind, vector) for kind, vector in kinds.items() if vector is not None]


def _vector(new: NewMemory, generation: int, kind: str, vector: NDArray[np.float32]) -> dict[str, Any]:
    return {
        "workspace_id": new.scope.workspace_id,
        "memory_id": new.id,
        "generation": generation,
        "kind": kind,
        "user_id": new.scope.user_id,
        "agent_id": new.scope.agent_id,
        "run_id": new.scope.run_id,
        "channel": new.scope.channel,
        "embedding": vector,
    }


def mention_json(mention: Mention) -> dict[str, Any]:
    """The stored form of a temporal expression."""
    return {
        "text": mention.text,
        "start": mention.start,
        "end": mention.end,
        "kind": mention.kind,
        "begins_at": mention.begins_at and mention.begins_at.isoformat(),
        "ends_at": mention.ends_at and mention.ends_at.isoformat(),
    }


def _mention(stored: dict[str, Any]) -> Mention:
    begins, ends = stored["begins_at"], stored["ends_at"]
    return Mention(
        stored["text"],
        stored["start"],
        stored["end"],
        stored["kind"],
        datetime.fromisoformat(begins) if begins else None,
        datetime.fromisoformat(ends) if ends else None,
    )


def _until(old: Memory, new: NewMemory) -> datetime | None:
    """When two memories become one, the longer life counts, so nothing that was to stay goes; an id that the caller
    chose is overwritten."""
    if new.asked.id == old.id:
        return new.asked.expires_at
    if old.expires_at is None or new.asked.expires_at is None:
        return None
    return max(old.expires_at, new.asked.expires_at)


def _union(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*first, *second)))


def _memory(row: direct.Row) -> Memory:
    return Memory(
        id=row.id,
        scope=Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel),
        text=CleanText(row.content),
        hash=row.hash,
        kind=Kind(MemoryType(row.type), row.type_confidence, KindSource(row.classification_source)),
        fact_confidence=row.fact_confidence,
        importance=Importance(row.importance, row.importance_level),
        tags=tuple(row.tags),
        tag_prefixes=tuple(row.tag_prefixes),
        categories=tuple(row.categories),
        metadata=row.metadata,
        temporal=Temporal(
            TemporalType(row.temporal_type or "persistent"),
            row.valid_until,
            TemporalTag(row.temporal_tag) if row.temporal_tag else None,
            tuple(_mention(each) for each in row.mentions),
        ),
        timestamp=row.timestamp,
        t_valid=row.t_valid,
        t_invalid=row.t_invalid,
        session_id=row.session_id,
        role=row.role,
        speaker=row.speaker,
        conversation_id=row.conversation_id,
        turn_index=row.turn_index,
        summary=row.summary,
        enriched_at=row.enriched_at,
        enrichment_attempts=row.enrichment_attempts,
        embedding_status=EmbeddingStatus(row.embedding_status),
        archived=row.archived,
        version=row.version,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        relevance=row.relevance,
        salience=row.salience,
        access_count=row.access_count,
        last_accessed=row.last_accessed,
        entities={kind: tuple(names) for kind, names in (row.named or {}).items()},
    )

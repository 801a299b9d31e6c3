"""What do jobs read of a memory, and how do they add to it?

Two writers: the vector of a text, and its summary with entities. Both check under the row lock that the text is still
the one they worked on (its hash), so a text changed meanwhile never gets what was made from the old one. Neither
changes `version`: an If-Match of the moment before stays good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.db.engine import Session
from service.domain.text import CleanText


@dataclass(frozen=True, slots=True)
class Subject:
    """The part of a memory that enrichment works on; `hash` tells later whether the text is still this one."""

    id: UUID
    text: CleanText
    hash: str
    user_id: str | None
    channel: str
    timestamp: datetime


SUBJECT = text("""
    SELECT id, content, hash, user_id, channel, "timestamp" FROM memory WHERE workspace_id = :workspace AND id = :id
""")

# pk_memory
UNEMBEDDED = text("""
    SELECT id, content, hash, user_id, channel, "timestamp" FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) AND embedding_status <> 'stored'
    ORDER BY id
""")

# Rows are locked in the order of their ids, as everywhere (design, One write path).
STORE_VECTORS = text("""
    WITH made AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:hashes AS text[]), CAST(:vectors AS text[]))
            AS m (id, hash, vector)
    ), fresh AS (
        SELECT memory.workspace_id, memory.id, memory.user_id, memory.agent_id, memory.run_id, memory.channel,
               made.vector::halfvec AS vector
        FROM memory JOIN made ON memory.id = made.id AND memory.hash = made.hash
        WHERE memory.workspace_id = :workspace AND memory.embedding_status <> 'stored'
        ORDER BY memory.id FOR NO KEY UPDATE OF memory
    ), placeholders AS (
        DELETE FROM memory_vector v USING fresh
        WHERE v.workspace_id = :workspace AND v.memory_id = fresh.id AND v.kind = 'placeholder'
    ), stored AS (
        INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel,
                                   embedding)
        SELECT workspace_id, id, :generation, 'text', user_id, agent_id, run_id, channel, vector FROM fresh
        ON CONFLICT (workspace_id, memory_id, generation, kind) DO UPDATE SET embedding = excluded.embedding
    )
    UPDATE memory SET embedding_status = 'stored' FROM fresh
    WHERE memory.workspace_id = :workspace AND memory.id = fresh.id
    RETURNING memory.id
""")

LOCK = text("""
    SELECT true FROM memory WHERE workspace_id = :workspace AND id = :id AND hash = :hash FOR NO KEY UPDATE
""")

COUNT_ATTEMPT = text("""
    UPDATE memory SET enrichment_attempts = least(:attempts, 3) WHERE workspace_id = :workspace AND id = :id
""")

ENRICHED = text("""
    UPDATE memory SET summary = :summary, enriched_at = :now, enrichment_attempts = least(:attempts, 3)
    WHERE workspace_id = :workspace AND id = :id
""")


async def subject(session: Session, workspace_id: UUID, memory_id: UUID) -> Subject | None:
    """The memory to enrich, or None when it is gone."""
    row = (await session.execute(SUBJECT, {"workspace": workspace_id, "id": memory_id})).one_or_none()
    return None if row is None else Subject(row[0], CleanText(row[1]), *row[2:])


async def unembedded(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> list[Subject]:
    """Those among `ids` that have no vector of their own yet, ascending by id."""
    rows = await session.execute(UNEMBEDDED, {"workspace": workspace_id, "ids": list(ids)})
    return [Subject(row[0], CleanText(row[1]), *row[2:]) for row in rows]


async def store_vectors(
    session: Session, workspace_id: UUID, vectors: Mapping[Subject, str], *, generation: int
) -> int:
    """How many memories got their vector (as pgvector's text); placeholders go, changed or deleted texts are left."""
    rows = await session.scalars(
        STORE_VECTORS,
        {
            "workspace": workspace_id,
            "generation": generation,
            "ids": [subject.id for subject in vectors],
            "hashes": [subject.hash for subject in vectors],
            "vectors": list(vectors.values()),
        },
    )
    return len(rows.all())


async def lock_unchanged(session: Session, workspace_id: UUID, subject: Subject) -> bool:
    """Locks the memory's row; False when its text changed or it is gone."""
    values = {"workspace": workspace_id, "id": subject.id, "hash": subject.hash}
    return bool(await session.scalar(LOCK, values))


async def count_attempt(session: Session, workspace_id: UUID, memory_id: UUID, attempts: int) -> None:
    """Shows in the memory that enrichment was tried `attempts` times (3 at most, R1.03)."""
    await session.execute(COUNT_ATTEMPT, {"workspace": workspace_id, "id": memory_id, "attempts": attempts})


async def mark_enriched(
    session: Session, workspace_id: UUID, memory_id: UUID, *, summary: str | None, attempts: int, now: datetime
) -> None:
    values = {"workspace": workspace_id, "id": memory_id, "summary": summary, "attempts": attempts, "now": now}
    await session.execute(ENRICHED, values)

"""What do jobs read of a memory, and how do they add to it?

Two writers: the vector of a text, and its summary with entities. Both check under the row lock that the text is still
the one they worked on (its hash), so a text changed meanwhile never gets what was made from the old one. Neither
changes `version`: an If-Match of the moment before stays good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from sqlalchemy import DateTime, bindparam, text

from service.db import direct, nearest, scopes, visible
from service.db.direct import Row
from service.db.engine import Session
from service.db.vectors import Half
from service.domain.scope import Scope
from service.domain.text import CleanText


@dataclass(frozen=True, slots=True)
class Before:
    """The memory that happened just before another."""

    id: UUID
    timestamp: datetime


@dataclass(frozen=True, slots=True)
class Subject:
    """The part of a memory that enrichment works on; `hash` tells later whether the text is still this one.

    `is_turn`: it is what somebody said, word by word. `graph_enabled`: the workspace's own choice, if it made one.
    """

    id: UUID
    text: CleanText
    hash: str
    user_id: str | None
    channel: str
    timestamp: datetime
    agent_id: str | None = None
    run_id: str | None = None
    version: int = 1
    is_turn: bool = False
    before: Before | None = None
    graph_enabled: bool | None = None


SUBJECT = text("""
    SELECT m.id, m.content, m.hash, m.user_id, m.channel, m."timestamp", m.agent_id, m.run_id, m.version,
           m.role IS NOT NULL AS is_turn, m.created_at, m.conversation_id, m.turn_index,
           (SELECT CAST(w.settings ->> 'graph_enabled' AS boolean) FROM workspace w
            WHERE w.workspace_id = :workspace) AS graph_enabled
    FROM memory m WHERE m.workspace_id = :workspace AND m.id = :id
""")

# The memory before is among the last LATELY of its user, agent or run: by ix_memory_user, _agent or _run. Turns of one
# request may share a moment; then their places in the conversation tell which came first. A statement per owner: one
# for all three cost four times the planning.
LATELY = 20
BEFORE = f"""
    SELECT p.id, p."timestamp" FROM (
        SELECT p.id, p.user_id, p.agent_id, p.run_id, p.channel, p.archived, p."timestamp", p.conversation_id,
               p.turn_index, p.created_at
        FROM memory p
        WHERE p.workspace_id = :workspace AND p.{{owner}} = :{{owner}} AND (p.created_at, p.id) < (:created_at, :id)
        ORDER BY p.created_at DESC, p.id DESC LIMIT {LATELY}
    ) p
    WHERE p.user_id IS NOT DISTINCT FROM CAST(:user_id AS text)
      AND p.agent_id IS NOT DISTINCT FROM CAST(:agent_id AS text)
      AND p.run_id IS NOT DISTINCT FROM CAST(:run_id AS text) AND p.channel = :channel AND NOT p.archived
      AND p."timestamp" >= :timestamp - make_interval(secs => :window_s)
      AND (p."timestamp" < :timestamp OR (p."timestamp" = :timestamp
           AND p.conversation_id = CAST(:conversation_id AS uuid) AND p.turn_index < CAST(:turn_index AS integer)))
    ORDER BY p."timestamp" DESC, p.turn_index DESC NULLS LAST, p.id DESC LIMIT 1
"""  # noqa: S608 - our own parts
MOMENTS = [bindparam(name, type_=DateTime(timezone=True)) for name in ("created_at", "timestamp")]
BEFORE_OF = {
    owner: text(BEFORE.format(owner=owner)).bindparams(*MOMENTS) for owner in ("user_id", "agent_id", "run_id")
}
"""By what the scope is known by: its user, else its agent, else its run."""

OWN_VECTOR = text("""
    SELECT embedding FROM memory_vector
    WHERE workspace_id = :workspace AND memory_id = :id AND generation = :generation AND kind = 'text'
""").columns(embedding=Half())

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

# The memory and those it is to be tied to, in the order of their ids. This holds up whoever changes its text: he locks
# the row for update (service/db/snapshots.py).
LOCK = text("""
    SELECT id, hash FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))
    ORDER BY id FOR KEY SHARE
""")

COUNT_ATTEMPT = text("""
    UPDATE memory SET enrichment_attempts = least(:attempts, 3) WHERE workspace_id = :workspace AND id = :id
""")

ENRICHED = text("""
    UPDATE memory SET summary = :summary, enriched_at = :now, enrichment_attempts = least(:attempts, 3)
    WHERE workspace_id = :workspace AND id = :id
""")


async def subject(session: Session, workspace_id: UUID, memory_id: UUID, *, window_s: float) -> Subject | None:
    """The memory to enrich with the one before it, at most `window_s` seconds; None when it is gone."""
    row = await direct.first(session, SUBJECT, {"workspace": workspace_id, "id": memory_id})
    if row is None:
        return None
    return Subject(
        id=row.id,
        text=CleanText(row.content),
        hash=row.hash,
        user_id=row.user_id,
        channel=row.channel,
        timestamp=row.timestamp,
        agent_id=row.agent_id,
        run_id=row.run_id,
        version=row.version,
        is_turn=row.is_turn,
        before=await _before(session, workspace_id, row, window_s) if window_s > 0 else None,
        graph_enabled=row.graph_enabled,
    )


async def _before(session: Session, workspace_id: UUID, row: Row, window_s: float) -> Before | None:
    owner = next((name for name in BEFORE_OF if getattr(row, name) is not None), None)
    if owner is None:
        return None
    names = ("id", *BEFORE_OF, "channel", "timestamp", "created_at", "conversation_id", "turn_index")
    values = {name: getattr(row, name) for name in names}
    found = await direct.first(session, BEFORE_OF[owner], {**values, "workspace": workspace_id, "window_s": window_s})
    return Before(found.id, found.timestamp) if found else None


async def neighbours(
    session: Session,
    workspace_id: UUID,
    found: Subject,
    *,
    generation: int,
    similarity: Callable[[float], float],
    limit: int,
    exact_rows: int,
    now: datetime,
) -> list[tuple[UUID, float]]:
    """The nearest live memories of its scope and channel with their similarity; none while it has no vector."""
    values = {"workspace": workspace_id, "id": found.id, "generation": generation}
    vector = await session.scalar(OWN_VECTOR, values)
    if vector is None:
        return []
    scope = Scope(workspace_id, found.user_id, found.agent_id, found.run_id, found.channel)
    rows = visible.live("m") & visible.alive("m", now)
    target = nearest.Target(scopes.exactly("v", scope), rows, generation)
    near = await nearest.find(
        session, target, np.asarray(vector, dtype=np.float32), limit=limit + 1, exact_rows=exact_rows
    )
    return [(each.id, similarity(each.cosine)) for each in near if each.id != found.id][:limit]


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


async def lock_unchanged(
    session: Session, workspace_id: UUID, subject: Subject, ids: Sequence[UUID]
) -> frozenset[UUID]:
    """Locks these memories, the subject among them; returns those that are there: not the subject when its text
    changed."""
    rows = await direct.fetch(session, LOCK, {"workspace": workspace_id, "ids": list(ids)})
    return frozenset(row.id for row in rows if row.id != subject.id or row.hash == subject.hash)


async def count_attempt(session: Session, workspace_id: UUID, memory_id: UUID, attempts: int) -> None:
    """Shows in the memory that enrichment was tried `attempts` times (3 at most, R1.03)."""
    await direct.fetch(session, COUNT_ATTEMPT, {"workspace": workspace_id, "id": memory_id, "attempts": attempts})


async def mark_enriched(
    session: Session, workspace_id: UUID, memory_id: UUID, *, summary: str | None, attempts: int, now: datetime
) -> None:
    values = {"workspace": workspace_id, "id": memory_id, "summary": summary, "attempts": attempts, "now": now}
    await direct.fetch(session, ENRICHED, values)

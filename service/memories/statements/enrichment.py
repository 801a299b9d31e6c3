"""Reads memories for jobs, and adds what these make: vectors, and summaries with entities.

Both writes check under the row lock that the text is still the one that was read, so a changed text never gets what
was made from the old one. Neither changes `version`: an If-Match from before stays valid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text

from service.domain.scope import Scope
from service.domain.text import CleanText
from service.memories.statements import near_memories, visibility
from service.postgres import direct, scopes
from service.postgres.direct import DriverRow
from service.postgres.engine import Session
from service.postgres.vectors import Half, as_text


@dataclass(frozen=True, slots=True)
class MemoryToEnrich:
    """What jobs read from a memory. `is_turn`: the text is a message as it was said. `before`: the memory that happened
    just before it, and when. `graph`: whether relations and associations are drawn."""

    id: UUID
    scope: Scope
    text: CleanText
    hash: str
    timestamp: datetime
    version: int
    is_turn: bool
    graph: bool
    before: tuple[UUID, datetime] | None = None


_subject = direct.reader(
    MemoryToEnrich, scope=scopes.of_row, text=lambda row: CleanText(row.content), before=lambda row: None
)

INPUTS = text("""
    SELECT m.workspace_id, m.id, m.content, m.hash, m.user_id, m.channel, m."timestamp", m.agent_id, m.run_id,
           m.version, m.role IS NOT NULL AS is_turn,
           coalesce((SELECT CAST(w.settings ->> 'graph_enabled' AS boolean) FROM workspace w
                     WHERE w.workspace_id = :workspace), :graph) AS graph
    FROM memory m WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
""")

# The preceding memory is among the RECENT last ones of its user, agent or run, by ix_memory_user, _agent or _run. Turns
# of one request may have the same time; then their turn_index decides which came first. One statement per owner: a
# common one took four times as long to plan.
RECENT = 20
PRECEDING = f"""
    SELECT m.id AS memory_id, p.id, p."timestamp" FROM memory m CROSS JOIN LATERAL (
        SELECT l.id, l."timestamp" FROM (
            SELECT a.id, a.user_id, a.agent_id, a.run_id, a.channel, a.archived, a."timestamp", a.conversation_id,
                   a.turn_index, a.created_at
            FROM memory a
            WHERE a.workspace_id = :workspace AND a.{{owner}} = m.{{owner}}
              AND (a.created_at, a.id) < (m.created_at, m.id)
            ORDER BY a.created_at DESC, a.id DESC LIMIT {RECENT}
        ) l
        WHERE l.user_id IS NOT DISTINCT FROM m.user_id AND l.agent_id IS NOT DISTINCT FROM m.agent_id
          AND l.run_id IS NOT DISTINCT FROM m.run_id AND l.channel = m.channel AND NOT l.archived
          AND l."timestamp" >= m."timestamp" - make_interval(secs => :window_s)
          AND (l."timestamp" < m."timestamp" OR (l."timestamp" = m."timestamp"
               AND l.conversation_id = m.conversation_id AND l.turn_index < m.turn_index))
        ORDER BY l."timestamp" DESC, l.turn_index DESC NULLS LAST, l.id DESC LIMIT 1
    ) p
    WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
"""  # noqa: S608 - no user input
PRECEDING_BY_OWNER = {owner: text(PRECEDING.format(owner=owner)) for owner in ("user_id", "agent_id", "run_id")}
"""The statements by the first of user, agent and run that the memory has."""

TEXT_VECTOR = text("""
    SELECT embedding FROM memory_vector
    WHERE workspace_id = :workspace AND memory_id = :id AND generation = :generation AND kind = 'text'
""").columns(embedding=Half())

# pk_memory
UNEMBEDDED = text("""
    SELECT id, content FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) AND embedding_status <> 'stored'
    ORDER BY id
""")

# Rows are locked by ascending id, as everywhere.
STORE_VECTORS = text("""
    WITH made AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:contents AS text[]), CAST(:vectors AS text[]))
            AS m (id, content, vector)
    ), locked AS (
        SELECT workspace_id, id, user_id, agent_id, run_id, channel, content FROM memory
        WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) AND embedding_status <> 'stored'
        ORDER BY id FOR NO KEY UPDATE
    ), fresh AS (
        SELECT locked.*, made.vector::halfvec AS vector
        FROM locked JOIN made ON locked.id = made.id AND locked.content = made.content
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

# First all locks by ascending id, on the memories and on those they will be linked to; a change of a text waits for
# them, because it locks the row FOR UPDATE (history.lock). Then the rows whose text is still the one that was read;
# both sides of the join are in the order of the ids.
ENRICH = text("""
    WITH found AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:hashes AS text[]), CAST(:summaries AS text[]),
                             CAST(:attempts AS integer[])) AS f (id, hash, summary, attempts)
    ), locked AS MATERIALIZED (
        SELECT id, hash FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:held AS uuid[]))
        ORDER BY id FOR KEY SHARE
    ), enriched AS (
        UPDATE memory m
        SET summary = found.summary, enriched_at = :now, enrichment_attempts = least(found.attempts, 3)
        FROM locked JOIN found ON found.id = locked.id AND found.hash = locked.hash
        WHERE m.workspace_id = :workspace AND m.id = locked.id
    )
    SELECT id, hash FROM locked
""")

COUNT_ATTEMPT = text("""
    UPDATE memory SET enrichment_attempts = least(:attempts, 3) WHERE workspace_id = :workspace AND id = :id
""")


async def read_inputs(
    session: Session, ids: Sequence[UUID], *, window_s: float, graph: bool
) -> dict[UUID, MemoryToEnrich]:
    """The existing memories among `ids`, each with the one before it, at most `window_s` seconds earlier. `graph`:
    whether relations are drawn where the workspace has no setting."""
    rows = await direct.fetch(session, INPUTS, {"ids": list(ids), "graph": graph})
    before = await _before(session, rows, window_s)
    return {row.id: replace(_subject(row), before=before.get(row.id)) for row in rows}


async def _before(session: Session, rows: Sequence[DriverRow], window_s: float) -> dict[UUID, tuple[UUID, datetime]]:
    by_owner: dict[str, list[UUID]] = {}
    for row in rows:
        owner = next((name for name in PRECEDING_BY_OWNER if getattr(row, name) is not None), None)
        if owner is not None:
            by_owner.setdefault(owner, []).append(row.id)
    memories: dict[UUID, tuple[UUID, datetime]] = {}
    for owner, ids in by_owner.items():
        values = {"ids": ids, "window_s": window_s}
        for row in await direct.fetch(session, PRECEDING_BY_OWNER[owner], values):
            memories[row.memory_id] = row.id, row.timestamp
    return memories


async def find_neighbours(
    session: Session,
    memory: MemoryToEnrich,
    *,
    generation: int,
    similarity: Callable[[float], float],
    limit: int,
    now: datetime,
) -> list[tuple[UUID, float]]:
    """The nearest live memories of its scope and channel with their similarity; none while it has no vector."""
    values = {"id": memory.id, "generation": generation}
    vector = await session.scalar(TEXT_VECTOR, values)
    if vector is None:
        return []
    rows = visibility.not_archived("m") & visibility.not_expired_nor_in_review("m", now)
    own, scope = np.asarray(vector, dtype=np.float32), scopes.exact("v", memory.scope)
    near = await near_memories.find_nearest(session, scope, rows, own, generation=generation, limit=limit + 1)
    return [(each, similarity(cosine)) for each, cosine in near if each != memory.id][:limit]


async def list_unembedded(session: Session, ids: Sequence[UUID]) -> dict[UUID, CleanText]:
    """The texts of those memories among `ids` that have no vector yet, ascending by id."""
    return {row.id: CleanText(row.content) for row in await session.execute(UNEMBEDDED, {"ids": list(ids)})}


async def store_vectors(
    session: Session, made: Mapping[UUID, tuple[CleanText, NDArray[np.float32]]], *, generation: int
) -> int:
    """Stores vectors and deletes placeholders; returns the number stored. Deleted memories, and those whose text has
    changed, get none."""
    values = {
        "generation": generation,
        "ids": list(made),
        "contents": [content for content, _ in made.values()],
        "vectors": [as_text(vector) for _, vector in made.values()],
    }
    return len((await session.scalars(STORE_VECTORS, values)).all())


async def enrich(
    session: Session,
    enriched: Mapping[MemoryToEnrich, tuple[str | None, int]],
    *,
    ends: Collection[UUID],
    now: datetime,
) -> dict[UUID, str]:
    """Locks the memories and the `ends` they will be linked to, and stores the summary and the number of attempts of
    each where the text has not changed; returns the hashes of all that exist."""
    ordered = sorted(enriched, key=lambda memory: memory.id)
    values = {
        "held": list({*ends, *(memory.id for memory in enriched)}),
        "ids": [memory.id for memory in ordered],
        "hashes": [memory.hash for memory in ordered],
        "summaries": [enriched[memory][0] for memory in ordered],
        "attempts": [enriched[memory][1] for memory in ordered],
        "now": now,
    }
    return {row.id: row.hash for row in await direct.fetch(session, ENRICH, values)}


async def count_attempt(session: Session, memory_id: UUID, attempts: int) -> None:
    """Stores that enrichment was tried `attempts` times, 3 at most."""
    await direct.fetch(session, COUNT_ATTEMPT, {"id": memory_id, "attempts": attempts})

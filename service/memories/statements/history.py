"""The history of memories, also of deleted ones: every change, and what the memory was before it.

`recorded_at` is at least a microsecond after the last change of the same memory, even if the clock goes back, and the
last change is closed at that moment. So the history of a memory is a chain of half-open intervals.

`before` is the row as JSON with `sources`, `entity_ids`, `edges` (both directions), `relations` (those between entities
that it is evidence of) and `stat`. Lexical columns are left out, because they are derived from the text. The vector is
stored separately, with its generation. See docs/decisions/010-history-and-undo.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import select, text
from uuid_utils.compat import uuid7

from service.domain.decision import Action
from service.domain.scope import Scope
from service.memories.values import MemoryHistoryItem
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.tables import MEMORY_HISTORY

# Closes the open entry of each memory and returns when the next one begins, and its position in the change feed. Uses
# ix_memory_history_memory.
CLOSE = text("""
    WITH last AS (
        SELECT memory_id, max(recorded_at) AS at, max(position) AS position FROM memory_history
        WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) GROUP BY memory_id
    ), next AS (
        SELECT memory_id, greatest(clock_timestamp(), at + interval '1 microsecond') AS at,
               greatest(pg_current_xact_id()::text::bigint, position) AS position
        FROM last
    )
    UPDATE memory_history h SET recorded_to = next.at FROM next
    WHERE h.workspace_id = :workspace AND h.memory_id = ANY (CAST(:ids AS uuid[])) AND h.memory_id = next.memory_id
      AND h.recorded_to IS NULL
    RETURNING h.memory_id, h.recorded_to, next.position
""")

# An edge, a source or an entity link needs a share lock on the memory's key, so under this lock none is added or
# removed. It is a separate statement, because the snapshot of a statement that waits for a lock is taken before the
# wait.
LOCK = text("""
    SELECT id FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
""")

BEFORE = """
    to_jsonb(m) - '{terms,bm25,context_terms,context_bm25}'::text[]
        || jsonb_build_object(
            'sources', (SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.turn_id), '[]') FROM memory_source s
                        WHERE s.workspace_id = m.workspace_id AND s.memory_id = m.id),
            'entity_ids', (SELECT coalesce(jsonb_agg(e.entity_id ORDER BY e.entity_id), '[]') FROM memory_entity e
                           WHERE e.workspace_id = m.workspace_id AND e.memory_id = m.id),
            'edges', (SELECT coalesce(jsonb_agg(to_jsonb(g) ORDER BY g.source_id, g.rel_type, g.target_id), '[]')
                      FROM (SELECT * FROM memory_edge WHERE workspace_id = m.workspace_id AND source_id = m.id
                            UNION ALL
                            SELECT * FROM memory_edge WHERE workspace_id = m.workspace_id AND target_id = m.id) g),
            'relations', (SELECT coalesce(jsonb_agg(jsonb_build_object('edge', to_jsonb(r),
                                                                       'extracted_by', x.extracted_by)
                                                    ORDER BY r.id), '[]')
                          FROM entity_edge_source x JOIN entity_edge r
                              ON r.workspace_id = x.workspace_id AND r.id = x.edge_id
                          WHERE x.workspace_id = m.workspace_id AND x.memory_id = m.id),
            'stat', (SELECT to_jsonb(t) FROM memory_stat t
                     WHERE t.workspace_id = m.workspace_id AND t.memory_id = m.id))
"""
"""The memory `m` as JSON."""

# From the rows themselves: half a megabyte of vectors need not be sent to Python and back. Before an ADD is nothing.
INSERT = text(
    f"""
    INSERT INTO memory_history (workspace_id, id, memory_id, event, old_memory, new_memory, before, before_embedding,
                                before_generation, is_deleted, user_id, agent_id, run_id, recorded_at, position)
    SELECT m.workspace_id, new.id, m.id, new.event, CASE WHEN new.event <> 'ADD' THEN m.content END,
           CASE WHEN new.event <> 'DELETE' THEN coalesce(new.content, m.content) END,
           CASE WHEN new.event <> 'ADD' THEN {BEFORE} END, v.embedding, v.generation, new.event = 'DELETE',
           m.user_id, m.agent_id, m.run_id, coalesce(new.at, statement_timestamp()),
           coalesce(new.position, pg_current_xact_id()::text::bigint)
    FROM unnest(CAST(:ids AS uuid[]), CAST(:memories AS uuid[]), CAST(:events AS text[]), CAST(:contents AS text[]),
                CAST(:starts AS timestamptz[]), CAST(:positions AS bigint[]))
        AS new (id, memory_id, event, content, at, position)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = new.memory_id
    LEFT JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id AND v.kind = 'text'
        AND v.generation = :generation AND new.event <> 'ADD'
    ORDER BY m.id
    """  # noqa: S608 - no user input
)


# A function of the owner knows what is outside the wall of the transaction, deleted or not.
WAS_ELSEWHERE = text("""
    SELECT is_outside('memory', :id) OR coalesce(bool_or(
        (user_id, agent_id, run_id, before ->> 'channel') IS DISTINCT FROM (:user_id, :agent_id, :run_id, :channel)
    ), false)
    FROM memory_history WHERE workspace_id = :workspace AND memory_id = :id AND event = 'DELETE'
""")


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a memory. `content`: its new text; None: it stays."""

    memory_id: UUID
    event: Action
    content: str | None = None
    id: UUID = field(default_factory=uuid7)  # the id of the entry, so that a decision can name what it caused


RECORDED = {"timestamp": "recorded_at", "recorded_from": "recorded_at"}


async def lock(session: Session, ids: Iterable[UUID]) -> set[UUID]:
    """Locks the rows until the transaction ends, by ascending id; returns the existing ones. A transaction that changes
    several memories locks them all before the first change: in another order two could deadlock."""
    return set(await session.scalars(LOCK, {"ids": list(ids)}))


async def was_elsewhere(session: Session, memory_id: UUID, scope: Scope) -> bool:
    """Whether a memory that the transaction does not see had this id in another scope, or has it outside the wall."""
    return bool(await session.scalar(WAS_ELSEWHERE, {"id": memory_id, **scope.columns}))


async def append(session: Session, changes: Sequence[Change], *, generation: int) -> None:
    """Closes the open entries of these memories and writes the new ones. The memories are locked; an ADD has been
    written, any other change has not yet, since its entry keeps the memory as it is."""
    ids = [change.memory_id for change in changes]
    closed = await session.execute(CLOSE, {"ids": ids})
    begins = {row.memory_id: (row.recorded_to, row.position) for row in closed}
    values = {
        "ids": [change.id for change in changes],
        "memories": ids,
        "events": [str(change.event) for change in changes],
        "contents": [change.content for change in changes],
        "starts": [begins.get(each, (None, None))[0] for each in ids],
        "positions": [begins.get(each, (None, None))[1] for each in ids],
        "generation": generation,
    }
    await session.execute(INSERT, values)


async def of_memory(session: Session, memory_id: UUID, *, skip: int = 0, limit: int) -> list[MemoryHistoryItem]:
    """The changes after the first `skip`, oldest first; none if the id never existed."""
    columns = (MEMORY_HISTORY.c[RECORDED.get(name, name)].label(name) for name in MemoryHistoryItem.model_fields)
    query = (
        select(*columns)
        .where(MEMORY_HISTORY.c.workspace_id == session.workspace_id, MEMORY_HISTORY.c.memory_id == memory_id)
        .order_by(MEMORY_HISTORY.c.recorded_at, MEMORY_HISTORY.c.seq)
        .offset(skip)
        .limit(limit)
    )
    return await direct.page(session, query, None, MemoryHistoryItem.of)

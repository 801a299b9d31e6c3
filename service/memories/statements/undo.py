"""Undoes a decision: a memory becomes again what it was according to its history.

Everything is copied inside Postgres from `before` of a history entry, so no number and no time passes through Python.
Only the lexical columns are computed again from the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, Uuid, text
from sqlalchemy.exc import IntegrityError

from service.domain.decision import Action
from service.domain.scope import Scope
from service.graph.statements import entity_relations
from service.language import lexemes
from service.memories.statements import updates
from service.postgres import scopes
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, TABLES
from service.postgres.template import typed_text
from service.postgres.vectors import term_columns

DERIVED = frozenset({"terms", "bm25", "context_terms", "context_bm25"})
"""Columns derived from the text, so not in the snapshot."""

UNCHANGED = frozenset({"workspace_id", "id", "version", "updated_at"})

ENRICHMENT = frozenset({"summary", "enriched_at", "enrichment_attempts", "embedding_status"})
"""Columns that jobs filled from the text. They stay while the text is the same: the decision did not remove them."""

STORED = frozenset(column.name for column in MEMORY.c) - DERIVED


def _restore(columns: frozenset[str], more: str = "") -> TextClause:
    """Restores these columns of the row."""
    values = ", ".join(f'"{name}" = was."{name}"' for name in sorted(columns))
    return typed_text(f"""
        UPDATE memory m SET {values}, {more} version = m.version + 1, updated_at = :now
        FROM (SELECT r.* FROM memory x JOIN memory_history h ON h.workspace_id = x.workspace_id AND h.memory_id = x.id
              CROSS JOIN LATERAL jsonb_populate_record(x, h.before) r
              WHERE x.workspace_id = :workspace AND x.id = :id AND h.id = :entry) was
        WHERE m.workspace_id = :workspace AND m.id = was.id
    """)  # noqa: S608 - no user input


def _bring_back(table: str, records: str, rest: str = "") -> TextClause:
    """Inserts the rows of a table that the entry keeps. Citus must see that their workspace is the entry's own."""
    names = [column.name for column in TABLES[table].c if column.name not in {"workspace_id", *DERIVED}]
    return text(f"""
        INSERT INTO {table} (workspace_id, {", ".join(f'"{name}"' for name in names)})
        SELECT h.workspace_id, {", ".join(f'r."{name}"' for name in names)}
        FROM memory_history h CROSS JOIN LATERAL {records} r
        WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry {rest}
    """)  # noqa: S608 - no user input


# Uses ix_memory_history_memory. `undid`: the entry that was undone by this one.
HISTORY = text("""
    SELECT h.id, d.history_id AS undid
    FROM memory_history h LEFT JOIN decision d
        ON d.workspace_id = h.workspace_id AND d.memory_id = h.memory_id AND d.undo_history_id = h.id
    WHERE h.workspace_id = :workspace AND h.memory_id = :id ORDER BY h.recorded_at, h.seq
""")

RESTORE_ROW = _restore(STORED - UNCHANGED, "terms = CAST(:terms AS integer[]), bm25 = :bm25,")
RESTORE_ROW_OF_SAME_TEXT = _restore(STORED - UNCHANGED - ENRICHMENT)

RECREATE_ROW = _bring_back("memory", "jsonb_populate_record(NULL::memory, h.before)")

# The DELETE that is the last entry of a memory, and those of its past versions, which were deleted in one transaction
# with it. Uses ix_memory_history_memory and ix_memory_history_position.
DELETED = typed_text(
    """
    WITH deletion AS (
        SELECT position FROM memory_history
        WHERE workspace_id = :workspace AND memory_id = :id AND is_deleted AND recorded_to IS NULL
          AND before ->> 'version_of' IS NULL AND before ->> 'review_status' IS NULL
          AND (before ->> 'expires_at' IS NULL OR (before ->> 'expires_at')::timestamptz > now())
          AND NOT EXISTS (SELECT FROM memory WHERE workspace_id = :workspace AND id = :id)
    )
    SELECT h.workspace_id, h.id, h.memory_id, h.old_memory, h.user_id, h.agent_id, h.run_id,
           h.before ->> 'channel' AS channel, h.memory_id <> :id AS is_past
    FROM deletion d JOIN memory_history h ON h.workspace_id = :workspace AND h.position = d.position
    WHERE h.is_deleted AND h.recorded_to IS NULL AND h.before IS NOT NULL
      AND (h.memory_id = :id OR h.before ->> 'version_of' = CAST(:id AS text))
    ORDER BY is_past, h.seq
""",
    id=Uuid(),
)

# The start and the state of decay; uses continue to be counted. A deleted memory gets all of its figures back.
RESTORE_STAT = _bring_back(
    "memory_stat",
    "jsonb_populate_record(NULL::memory_stat, h.before -> 'stat')",
    """AND r.memory_id IS NOT NULL
    ON CONFLICT (workspace_id, memory_id) DO UPDATE SET
        base_relevance = excluded.base_relevance, base_salience = excluded.base_salience,
        base_confidence = excluded.base_confidence, confidence = excluded.confidence,
        confirmed_at = excluded.confirmed_at""",
)

REMOVE_VECTOR = text("""
    DELETE FROM memory_vector WHERE workspace_id = :workspace AND memory_id = :id AND kind <> 'context'
""")

RESTORE_VECTOR = text("""
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    SELECT x.workspace_id, x.id, h.before_generation, 'text', x.user_id, x.agent_id, x.run_id, x.channel,
           h.before_embedding
    FROM memory x JOIN memory_history h ON h.workspace_id = x.workspace_id AND h.memory_id = x.id
    WHERE x.workspace_id = :workspace AND x.id = :id AND h.id = :entry
      AND h.before_embedding IS NOT NULL AND h.before_generation = :generation
""")

REQUEUE = text("""
    UPDATE memory m SET embedding_status = 'queued'
    WHERE m.workspace_id = :workspace AND m.id = :id AND m.embedding_status = 'stored' AND NOT EXISTS (
        SELECT FROM memory_vector v WHERE v.workspace_id = m.workspace_id AND v.memory_id = m.id
            AND v.generation = :generation AND v.kind = 'text')
""")

REMOVE_ENTITIES = text("""
    DELETE FROM memory_entity e USING memory_history h
    WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry
      AND e.workspace_id = :workspace AND e.memory_id = :id AND NOT h.before -> 'entity_ids' ? e.entity_id::text
""")

RESTORE_ENTITIES = text("""
    INSERT INTO memory_entity (workspace_id, memory_id, entity_id)
    SELECT h.workspace_id, h.memory_id, was.id::uuid
    FROM memory_history h CROSS JOIN LATERAL jsonb_array_elements_text(h.before -> 'entity_ids') was (id)
    WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry
      AND EXISTS (SELECT FROM entity n WHERE n.workspace_id = h.workspace_id AND n.id = was.id::uuid)
    ON CONFLICT DO NOTHING
""")

# Relations between entities that the memory was evidence of: missing ones are restored if both entities exist.
RESTORE_RELATIONS = _bring_back(
    "entity_edge",
    "jsonb_populate_recordset(NULL::entity_edge, jsonb_path_query_array(h.before, '$.relations[*].edge'))",
    """AND 2 = (SELECT count(*) FROM entity o
                WHERE o.workspace_id = h.workspace_id AND o.id IN (r.source_id, r.target_id))
    ORDER BY r.source_id, r.target_id, r.rel_type ON CONFLICT DO NOTHING""",
)

REMOVE_EVIDENCE = text("""
    DELETE FROM entity_edge_source s USING memory_history h
    WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry
      AND s.workspace_id = :workspace AND s.memory_id = :id AND NOT EXISTS (
          SELECT FROM jsonb_array_elements(coalesce(h.before -> 'relations', '[]')) t
          WHERE (t -> 'edge' ->> 'id')::uuid = s.edge_id)
""")

RESTORE_EVIDENCE = text("""
    INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
    SELECT h.workspace_id, g.id, h.memory_id, t ->> 'extracted_by'
    FROM memory_history h
    CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'relations', '[]')) t
    CROSS JOIN LATERAL jsonb_populate_record(NULL::entity_edge, t -> 'edge') r
    JOIN entity_edge g ON g.workspace_id = h.workspace_id AND g.source_id = r.source_id AND g.target_id = r.target_id
        AND g.rel_type = r.rel_type
    WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry
    ORDER BY g.id
    ON CONFLICT DO NOTHING
""")

REMOVE_SOURCES = text("""
    DELETE FROM memory_source WHERE workspace_id = :workspace AND memory_id = :id
""")

RESTORE_SOURCES = _bring_back(
    "memory_source",
    "jsonb_populate_recordset(NULL::memory_source, h.before -> 'sources')",
    "AND EXISTS (SELECT FROM turn t WHERE t.workspace_id = h.workspace_id AND t.id = r.turn_id) ON CONFLICT DO NOTHING",
)

# Edges that others added since then stay; missing ones of that time are restored if the other memory exists.
RESTORE_EDGES = _bring_back(
    "memory_edge",
    "jsonb_populate_recordset(NULL::memory_edge, h.before -> 'edges')",
    """AND 2 = (SELECT count(*) FROM memory o
                WHERE o.workspace_id = h.workspace_id AND o.id IN (r.source_id, r.target_id))
    ON CONFLICT DO NOTHING""",
)

# The entry that archived a memory. Uses ix_memory_history_memory.
ARCHIVAL = text("""
    SELECT id, event, (before ->> 't_invalid')::timestamptz AS t_invalid FROM memory_history
    WHERE workspace_id = :workspace AND memory_id = :id AND NOT (before ->> 'archived')::boolean
    ORDER BY recorded_at DESC, seq DESC LIMIT 1
""")

STATUS = text("SELECT embedding_status, enriched_at FROM memory WHERE workspace_id = :workspace AND id = :id")


@dataclass(frozen=True, slots=True)
class DeletedMemory:
    """A deleted memory: the entry of its history that keeps it, and what it said. `is_past`: it was a past version."""

    entry: UUID
    memory_id: UUID
    text: str
    scope: Scope
    is_past: bool = False


async def is_current(session: Session, memory_id: UUID, entry: UUID) -> bool:
    """Whether the memory is as this history entry left it, except for later changes that were undone."""
    rows = (await session.execute(HISTORY, {"id": memory_id})).all()
    place = {row.id: number for number, row in enumerate(rows)}
    last = len(rows) - 1
    while last >= 0 and rows[last].id != entry:
        undid = rows[last].undid
        if undid not in place:
            return False
        last = place[undid] - 1
    return last >= 0


async def restore(
    session: Session, memory_id: UUID, entry: UUID, text_then: str | None, *, generation: int, now: datetime
) -> None:
    """Makes the memory what `before` of the entry says; `text_then` is its text, None if the text did not change.

    A vector of another generation than the one in use is not restored: a job makes a new one. Raises Conflict if
    another live memory of the scope has this text now.
    """
    values: dict[str, Any] = {"id": memory_id, "entry": entry}
    if text_then is None:
        await _restore_row(session, RESTORE_ROW_OF_SAME_TEXT, {**values, "now": now})
    else:
        weights = lexemes.weights(text_then)
        await _restore_row(session, RESTORE_ROW, {**values, "now": now, **term_columns(weights)})
        of_memory = {"id": memory_id}
        await session.execute(REMOVE_VECTOR, of_memory)
        await session.execute(RESTORE_VECTOR, {**values, "generation": generation})
        await session.execute(REQUEUE, {**of_memory, "generation": generation})
        for statement in (REMOVE_ENTITIES, RESTORE_ENTITIES, RESTORE_RELATIONS, REMOVE_EVIDENCE, RESTORE_EVIDENCE):
            await session.execute(statement, values)
    for statement in (RESTORE_STAT, REMOVE_SOURCES, RESTORE_SOURCES, RESTORE_EDGES):
        await session.execute(statement, values)
    await entity_relations.update_validity(session, [memory_id], now=now)


async def _restore_row(session: Session, statement: TextClause, values: Mapping[str, Any]) -> None:
    try:
        await session.execute(statement, values)
    except IntegrityError as exc:
        raise updates.conflict(exc) from exc


async def find_deleted(session: Session, memory_id: UUID) -> list[DeletedMemory]:
    """A deleted memory, then its past versions; none if it exists, was purged, has expired, or waited for review."""
    rows = await session.execute(DELETED, {"id": memory_id})
    return [DeletedMemory(row.id, row.memory_id, row.old_memory, scopes.of_row(row), row.is_past) for row in rows]


async def recreate(session: Session, memory_id: UUID, entry: UUID) -> None:
    """Inserts the row of a deleted memory as this DELETE of its history kept it; `restore` restores the rest."""
    await _restore_row(session, RECREATE_ROW, {"id": memory_id, "entry": entry})


async def find_retirement(session: Session, memory_id: UUID) -> tuple[UUID, datetime | None] | None:
    """The entry that archived a memory because it was no longer true, and the end that the memory had before."""
    row = (await session.execute(ARCHIVAL, {"id": memory_id})).one_or_none()
    return (row.id, row.t_invalid) if row and row.event == Action.DELETE else None


async def lacks(session: Session, memory_id: UUID) -> tuple[bool, bool]:
    """Whether the memory lacks its vector, and its enrichment."""
    row = (await session.execute(STATUS, {"id": memory_id})).one()
    return row.embedding_status != "stored", row.enriched_at is None

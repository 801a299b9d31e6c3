"""How does a memory become again what history says it was?

Everything is copied inside Postgres from the entry's `before`, so no number and no time passes through Python. Only
the lexical columns are made anew from the text: they are not in the snapshot.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector import SparseVector
from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import bindparam, text

from service.db.engine import Session
from service.db.graph import entity_relations
from service.db.memories.memories import AVERAGE_LENGTH
from service.db.tables import TERM_DIMENSIONS, MemoryRow
from service.language import lexemes

MADE = frozenset({"terms", "bm25", "context_terms", "context_bm25"})
OWN = frozenset({"workspace_id", "id", "version", "updated_at"})
ENRICHED = frozenset({"summary", "enriched_at", "enrichment_attempts", "embedding_status"})
"""What jobs found out about a text. It stays while the text is the same: the decision did not take it away."""

# Locks the verdict and its siblings: the second of two requests finds them undone.
LOCK = text("""
    SELECT id FROM decision WHERE workspace_id = :workspace AND (id = :id OR ruling_id = :ruling) ORDER BY id FOR UPDATE
""")

CHAIN = text("""
    SELECT h.id, d.history_id AS undid
    FROM memory_history h LEFT JOIN decision d
        ON d.workspace_id = h.workspace_id AND d.memory_id = h.memory_id AND d.undo_history_id = h.id
    WHERE h.workspace_id = :workspace AND h.memory_id = :id ORDER BY h.recorded_at, h.seq
""")

ENTRY = """
    FROM memory x JOIN memory_history h ON h.workspace_id = x.workspace_id AND h.memory_id = x.id AND h.id = :entry
    {more} WHERE x.workspace_id = :workspace AND x.id = :id
"""


def _row(columns: frozenset[str], *, text_too: bool) -> str:
    sets = ", ".join(f'"{name}" = b."{name}"' for name in sorted(columns))
    lexical = ", terms = CAST(:terms AS integer[]), bm25 = :bm25" if text_too else ""
    entry = ENTRY.format(more="CROSS JOIN LATERAL jsonb_populate_record(x, h.before) r")
    return (
        f"UPDATE memory m SET {sets}{lexical}, version = m.version + 1, updated_at = :now "  # noqa: S608 - own names
        f"FROM (SELECT r.* {entry}) b WHERE m.workspace_id = b.workspace_id AND m.id = b.id"
    )


ALL = frozenset(column.name for column in MemoryRow.__table__.c) - MADE - OWN
WHOLE = text(_row(ALL, text_too=True)).bindparams(bindparam("bm25", type_=SPARSEVEC(TERM_DIMENSIONS)))
SAME_TEXT = text(_row(ALL - ENRICHED, text_too=False))

NO_VECTOR = text("""
    DELETE FROM memory_vector WHERE workspace_id = :workspace AND memory_id = :id AND kind <> 'context'
""")
VECTOR = text(
    """
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    SELECT x.workspace_id, x.id, h.before_generation, 'text', x.user_id, x.agent_id, x.run_id, x.channel,
           h.before_embedding
    """
    + ENTRY.format(more="")
    + " AND h.before_embedding IS NOT NULL AND h.before_generation = :generation"
)

NO_SOURCES = text(
    "DELETE FROM memory_source s USING (SELECT h.before "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="")
    + """) b WHERE s.workspace_id = :workspace AND s.memory_id = :id AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(b.before -> 'sources') was WHERE (was ->> 'turn_id')::uuid = s.turn_id)"""
)
SOURCES = text(
    "INSERT INTO memory_source SELECT r.* "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="CROSS JOIN LATERAL jsonb_populate_recordset(NULL::memory_source, h.before -> 'sources') r")
    + " AND EXISTS (SELECT FROM turn t WHERE t.workspace_id = x.workspace_id AND t.id = r.turn_id)"
    + " ON CONFLICT DO NOTHING"
)

NO_ENTITIES = text(
    "DELETE FROM memory_entity e USING (SELECT h.before "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="")
    + """) b WHERE e.workspace_id = :workspace AND e.memory_id = :id
        AND NOT b.before -> 'entity_ids' @> to_jsonb(e.entity_id)"""
)
ENTITIES = text(
    "INSERT INTO memory_entity (workspace_id, memory_id, entity_id) SELECT x.workspace_id, x.id, was.id::uuid "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="CROSS JOIN LATERAL jsonb_array_elements_text(h.before -> 'entity_ids') was (id)")
    + " AND EXISTS (SELECT FROM entity n WHERE n.workspace_id = x.workspace_id AND n.id = was.id::uuid)"
    + " ON CONFLICT DO NOTHING"
)

# A memory that is gone, from the entry that tells of it: the rest is made by the statements above.
COLUMNS = ", ".join(f'"{name}"' for name in sorted(ALL | OWN))
GONE = text(
    f"INSERT INTO memory ({COLUMNS}) SELECT {COLUMNS} FROM (SELECT r.* "  # noqa: S608 - own names
    "FROM memory_history h CROSS JOIN LATERAL jsonb_populate_record(NULL::memory, h.before) r "
    "WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry) b"
)
STAT = text("""
    INSERT INTO memory_stat SELECT r.*
    FROM memory_history h CROSS JOIN LATERAL jsonb_populate_record(NULL::memory_stat, h.before -> 'stat') r
    WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.id = :entry
""")

# What the text of then told of its entities: the relations, where they went since, and that this memory tells them.
NO_TOLD = text(
    "DELETE FROM entity_edge_source s USING (SELECT h.before "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="")
    + """) b WHERE s.workspace_id = :workspace AND s.memory_id = :id AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(coalesce(b.before -> 'told', '[]')) t
        WHERE (t -> 'edge' ->> 'id')::uuid = s.edge_id)"""
)
EACH_TOLD = """
    CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'told', '[]')) t
    CROSS JOIN LATERAL jsonb_populate_record(NULL::entity_edge, t -> 'edge') r
"""
RELATIONS = text(
    "INSERT INTO entity_edge SELECT r.* "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more=EACH_TOLD)
    + """ AND 2 = (SELECT count(*) FROM entity o WHERE o.workspace_id = x.workspace_id
                   AND o.id IN (r.source_id, r.target_id))
        ORDER BY r.source_id, r.target_id, r.rel_type ON CONFLICT DO NOTHING"""
)
TOLD = text(
    "INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by) "
    "SELECT x.workspace_id, g.id, x.id, t ->> 'extracted_by' "
    + ENTRY.format(
        more=EACH_TOLD + "JOIN entity_edge g ON g.workspace_id = x.workspace_id AND g.source_id = r.source_id "
        "AND g.target_id = r.target_id AND g.rel_type = r.rel_type"
    )
    + " ORDER BY g.id ON CONFLICT DO NOTHING"
)

# Edges that others drew since then stay; those of then that are missing come back, if their other end is there.
EDGES = text(
    "INSERT INTO memory_edge SELECT r.* "  # noqa: S608 - ENTRY is ours
    + ENTRY.format(more="CROSS JOIN LATERAL jsonb_populate_recordset(NULL::memory_edge, h.before -> 'edges') r")
    + """ AND 2 = (SELECT count(*) FROM memory o WHERE o.workspace_id = x.workspace_id
                   AND o.id IN (r.source_id, r.target_id)) ON CONFLICT DO NOTHING"""
)

MARK = text("""
    UPDATE decision SET state = 'undone', undone_at = :now, undo_history_id = :entry
    WHERE workspace_id = :workspace AND id = :id
""")

STATUS = text("SELECT embedding_status, enriched_at FROM memory WHERE workspace_id = :workspace AND id = :id")
REQUEUE = text("""
    UPDATE memory m SET embedding_status = 'queued'
    WHERE m.workspace_id = :workspace AND m.id = :id AND m.embedding_status = 'stored' AND NOT EXISTS (
        SELECT FROM memory_vector v WHERE v.workspace_id = m.workspace_id AND v.memory_id = m.id
            AND v.generation = :generation AND v.kind = 'text')
""")


async def lock(session: Session, workspace_id: UUID, decision_id: UUID, ruling_id: UUID | None) -> None:
    await session.execute(LOCK, {"workspace": workspace_id, "id": decision_id, "ruling": ruling_id})


async def stands(session: Session, workspace_id: UUID, memory_id: UUID, entry: UUID) -> bool:
    """Is the memory as this entry of its history left it? Later changes count as away once they are undone."""
    rows = (await session.execute(CHAIN, {"workspace": workspace_id, "id": memory_id})).all()
    place = {row.id: number for number, row in enumerate(rows)}
    last = len(rows) - 1
    while last >= 0 and rows[last].id != entry:
        undid = rows[last].undid
        if undid not in place:
            return False
        last = place[undid] - 1
    return last >= 0


async def restore(
    session: Session,
    workspace_id: UUID,
    memory_id: UUID,
    entry: UUID,
    was: str | None,
    *,
    generation: int,
    now: datetime,
) -> None:
    """Makes the memory what `before` of the entry says; `was` is its text then, None when the text did not change.

    A vector of another generation than the one in use does not come back: a job makes it anew.
    """
    values: dict[str, Any] = {"workspace": workspace_id, "id": memory_id, "entry": entry}
    if was is None:
        await session.execute(SAME_TEXT, {**values, "now": now})
    else:
        weights = lexemes.weights(was, avgdl=AVERAGE_LENGTH)
        bm25 = SparseVector(weights, TERM_DIMENSIONS) if weights else None
        await session.execute(WHOLE, {**values, "now": now, "terms": sorted(weights), "bm25": bm25})
        here = {"workspace": workspace_id, "id": memory_id}
        await session.execute(NO_VECTOR, here)
        await session.execute(VECTOR, {**values, "generation": generation})
        await session.execute(REQUEUE, {**here, "generation": generation})
        await session.execute(NO_ENTITIES, values)
        await session.execute(ENTITIES, values)
        for of_relations in (RELATIONS, NO_TOLD, TOLD):
            await session.execute(of_relations, values)
    for statement in (NO_SOURCES, SOURCES, EDGES):
        await session.execute(statement, values)
    await entity_relations.update_validity(session, workspace_id, [memory_id], now=now)


async def bring_back(session: Session, workspace_id: UUID, memory_id: UUID, entry: UUID) -> None:
    """The row of a memory that is gone, as this DELETE of its history kept it; `restore` gives it all the rest."""
    values = {"workspace": workspace_id, "id": memory_id, "entry": entry}
    await session.execute(GONE, values)
    await session.execute(STAT, values)


async def waits_for(session: Session, workspace_id: UUID, memory_id: UUID) -> tuple[bool, bool]:
    """Whether the memory lacks its vector, and its enrichment."""
    row = (await session.execute(STATUS, {"workspace": workspace_id, "id": memory_id})).one()
    return row.embedding_status != "stored", row.enriched_at is None


async def mark(session: Session, workspace_id: UUID, decision_id: UUID, entry: UUID | None, *, now: datetime) -> None:
    values = {"workspace": workspace_id, "id": decision_id, "entry": entry, "now": now}
    await session.execute(MARK, values)

"""Past versions of memories: their earlier texts, with the time in which these were valid.

A past version is a row of `memory` with `version_of`: archived and out of deduplication, so only reads that name a time
find it. It is deleted with its memory. Under the policy that keeps superseded memories, these are memories of their
own, connected by SUPERSEDES; a line has both kinds. See docs/decisions/010-history-and-undo.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Boolean, DateTime, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY

from service.domain.version import Version
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, MEMORY_STAT
from service.postgres.template import typed_text

MAX_SAID_AT = 100
"""The number of times that are kept for one value."""

# ix_memory_version_of, pk_memory_edge. A superseded memory has an end; an edge that a caller added does not set one.
LINE = typed_text(
    """
    WITH RECURSIVE line AS (
        SELECT CAST(:id AS uuid) AS id
        UNION
        SELECT earlier.id FROM line CROSS JOIN LATERAL (
            SELECT v.id FROM memory v WHERE v.workspace_id = :workspace AND v.version_of = line.id
            UNION ALL
            SELECT s.id FROM memory_edge g JOIN memory s ON s.workspace_id = g.workspace_id AND s.id = g.target_id
            WHERE g.workspace_id = :workspace AND g.source_id = line.id AND g.rel_type = 'SUPERSEDES'
              AND s.t_invalid IS NOT NULL
        ) earlier
    )
    SELECT m.id, CASE WHEN :texts THEN m.content ELSE '' END AS content, m.hash,
           coalesce(m.said_at, ARRAY[m."timestamp"]) AS said_at, m.t_valid, m.t_invalid,
           m.id <> :id AS is_past
    FROM line JOIN memory m ON m.workspace_id = :workspace AND m.id = line.id
""",
    id=Uuid(),
    texts=Boolean(),
)

OTHERS = {
    "id": ":new_id",
    "version_of": ":version_of",
    "archived": "true",
    "dedup_key": "NULL",
    "turn_index": "NULL",
    "context_terms": "'{}'",
    "context_bm25": "NULL",
    "version": "1",
    "updated_at": ":now",
    "t_invalid": "least(m.t_invalid, :until)",
    "timestamp": 'coalesce(:last_said_at, m."timestamp")',
    "said_at": "CASE WHEN :last_said_at IS NULL THEN m.said_at ELSE :said_at END",
}
NAMES = [column.name for column in MEMORY.c]
COLUMNS = ", ".join(f'"{name}"' for name in NAMES)
VALUES = ", ".join(OTHERS.get(name, f'm."{name}"') for name in NAMES)
STAT = ", ".join(f'"{column.name}"' for column in MEMORY_STAT.c if column.name != "memory_id")
STAT_VALUES = ", ".join(f's."{column.name}"' for column in MEMORY_STAT.c if column.name != "memory_id")

# A value that would have ended before it began was never valid.
WAS_VALID = (
    """m.workspace_id = :workspace AND m.id = :id AND coalesce(m.t_valid, m.said_at[1], m."timestamp") < :until"""
)

# The parts read the memory itself, not each other, so that Citus can run each of them on the node of the workspace.
KEEP = text(f"""
    WITH kept AS (
        INSERT INTO memory AS new ({COLUMNS}) SELECT {VALUES} FROM memory m WHERE {WAS_VALID} RETURNING new.id
    ), stat AS (
        INSERT INTO memory_stat (memory_id, {STAT}) SELECT :new_id, {STAT_VALUES} FROM memory m
        JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id WHERE {WAS_VALID}
    ), vector AS (
        INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel,
                                   embedding)
        SELECT v.workspace_id, :new_id, v.generation, v.kind, v.user_id, v.agent_id, v.run_id, v.channel, v.embedding
        FROM memory m JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id
            AND v.kind <> 'context' WHERE {WAS_VALID}
    ), source AS (
        INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
        SELECT s.workspace_id, :new_id, s.turn_id, s.start, s."end" FROM memory m
        JOIN memory_source s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id WHERE {WAS_VALID}
    ), added AS (
        INSERT INTO memory_history (
            workspace_id, recorded_at, id, memory_id, event, new_memory, user_id, agent_id, run_id)
        SELECT m.workspace_id, statement_timestamp(), :history_id, :new_id, 'ADD', m.content, m.user_id, m.agent_id,
               m.run_id
        FROM memory m WHERE {WAS_VALID}
    )
    SELECT id FROM kept
""").bindparams(  # noqa: S608 - no user input
    *(bindparam(name, type_=Uuid()) for name in ("workspace", "id", "new_id", "version_of", "history_id")),
    *(bindparam(name, type_=DateTime(timezone=True)) for name in ("now", "until", "last_said_at")),
    bindparam("said_at", type_=ARRAY(DateTime(timezone=True))),
)

# No history: the text of the memory does not change. Its decay starts again with its last confirmation.
RESTATE = typed_text(
    """
    WITH confirmed AS (
        UPDATE memory_stat SET confirmed_at = greatest(confirmed_at, :at)
        WHERE workspace_id = :workspace AND memory_id = :id
    )
    UPDATE memory SET "timestamp" = greatest("timestamp", :at), said_at = (
        SELECT array_agg(DISTINCT moment ORDER BY moment)
        FROM unnest(coalesce(said_at, ARRAY["timestamp"]) || CAST(:at AS timestamptz)) moment)
    WHERE workspace_id = :workspace AND id = :id AND NOT :at = ANY (coalesce(said_at, ARRAY["timestamp"]))
      AND coalesce(cardinality(said_at), 1) < :most
""",
    at=DateTime(timezone=True),
)

# The row was added with everything that belongs to a memory; from now on only reads that name a time find it.
HIDE = typed_text(
    """
    UPDATE memory SET archived = true, version_of = :version_of WHERE workspace_id = :workspace AND id = :id
""",
    version_of=Uuid(),
)

OF_MEMORIES = text("""
    SELECT id FROM memory WHERE workspace_id = :workspace AND version_of = ANY (CAST(:ids AS uuid[])) ORDER BY id
""")

EVER = text("""
    SELECT id FROM memory WHERE workspace_id = :workspace AND version_of = ANY (CAST(:ids AS uuid[]))
    UNION
    SELECT memory_id FROM memory_history
    WHERE workspace_id = :workspace AND before ->> 'version_of' = ANY (CAST(CAST(:ids AS uuid[]) AS text[]))
""")


async def read_line(session: Session, memory_id: UUID, *, texts: bool = True) -> list[Version]:
    """The memory and its earlier versions, ordered by the beginning of their validity. `texts`: with their texts."""
    rows = await direct.fetch(session, LINE, {"id": memory_id, "texts": texts})
    versions = (
        Version(
            row.id, row.content, row.hash, _until(row.said_at, row.t_invalid), row.t_valid, row.t_invalid, row.is_past
        )
        for row in rows
    )
    return sorted(versions, key=lambda each: (each.start, each.said_at, each.hash))


def _until(said_at: Sequence[datetime], end: datetime | None) -> tuple[datetime, ...]:
    """The times up to the end of a value; only the first if all are after its end."""
    return tuple(moment for moment in said_at if end is None or moment < end) or (said_at[0],)


async def keep(
    session: Session,
    memory_id: UUID,
    new_id: UUID,
    *,
    version_of: UUID,
    history_id: UUID,
    until: datetime,
    said_at: Sequence[datetime] = (),
    now: datetime,
) -> bool:
    """Keeps the present text of a memory as a past version of `version_of`, which was valid until `until`; False if it
    never was valid. `said_at`: those times of the memory that belong to the version; all if empty."""
    values = {
        "id": memory_id,
        "new_id": new_id,
        "version_of": version_of,
        "until": until,
        "history_id": history_id,
        "now": now,
        "last_said_at": said_at[-1] if said_at else None,
        "said_at": list(said_at) if len(said_at) > 1 else None,
    }
    return bool(await direct.fetch(session, KEEP, values))


async def note_repetition(session: Session, memory_id: UUID, at: datetime) -> None:
    """Notes that the memory was said at this time, too; `timestamp` is the last time."""
    values = {"id": memory_id, "at": at, "most": MAX_SAID_AT}
    await direct.fetch(session, RESTATE, values)


async def hide(session: Session, memory_id: UUID, *, version_of: UUID) -> None:
    """Makes a memory that was just added, outside of deduplication, a past version."""
    values = {"id": memory_id, "version_of": version_of}
    await direct.fetch(session, HIDE, values)


async def of_memories(session: Session, ids: Sequence[UUID]) -> list[UUID]:
    """The past versions of these memories. Uses ix_memory_version_of."""
    return list(await session.scalars(OF_MEMORIES, {"ids": list(ids)}))


async def ever_of(session: Session, memory_ids: Sequence[UUID]) -> list[UUID]:
    """The past versions of existing or deleted memories. Reads the history of the whole workspace."""
    return list(await session.scalars(EVER, {"ids": list(memory_ids)}))

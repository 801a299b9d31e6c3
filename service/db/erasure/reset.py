"""How does a workspace begin anew? Everything it remembers goes; keys, settings and the audit log stay (C25)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, Uuid, bindparam, func, select, text

from service.db.cognition import invocations
from service.db.engine import Session
from service.db.erasure import episodes
from service.db.tables import Memory

NOW = text("SELECT clock_timestamp()")

NEXT = text("""
    SELECT id FROM memory
    WHERE workspace_id = :workspace AND created_at <= :upto AND (CAST(:after AS uuid) IS NULL OR id > :after)
    ORDER BY id LIMIT :batch FOR UPDATE
""")
REMOVE = text("DELETE FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))")

HISTORY = text("SELECT erase_history(:until, :batch)")

REST = (
    "conversation",
    "entity",
    "decision",
    "review",
    "embedding_cache",
    "llm_cache",
    "working_item",
    "user_profile",
    "goal",
    "term_stat",
    "strategy",
    "tool",
)
"""Tables with words of the workspace's users, each with `created_at`. Turns go with their conversation."""

PART = """
    DELETE FROM {table} WHERE workspace_id = :workspace AND ctid = ANY (ARRAY(
        SELECT ctid FROM {table} WHERE workspace_id = :workspace AND created_at <= :until LIMIT :batch FOR UPDATE))
"""

PARTS: Mapping[str, TextClause] = {table: text(PART.format(table=table)) for table in REST}

# Stored answers hold texts too; the one of the reset itself is being written.
ANSWERS = text("""
    DELETE FROM idempotency WHERE workspace_id = :workspace AND created_at <= :until AND key <> :own
      AND status IS NOT NULL AND status <> 410
""")

# What was accepted before and is not stored yet goes with the rest; a job that has it in its hands already finds it
# answered and stores nothing.
ACCEPTED = text("""
    WITH gone AS (
        DELETE FROM operation WHERE workspace_id = :workspace AND kind = 'record' RETURNING id
    )
    INSERT INTO idempotency (workspace_id, key, fingerprint, status, body, expires_at)
    SELECT :workspace, 'operation:' || id, id::text, 410, '{"results": [], "warnings": ["reset"]}',
           now() + interval '1 day'
    FROM gone ON CONFLICT DO NOTHING
""").bindparams(bindparam("workspace", type_=Uuid()))

# Their payloads name what memories say; every other job is about the workspace, not about what was told to it.
JOBS = text("""
    DELETE FROM job WHERE workspace_id = :workspace AND id = ANY (ARRAY(
        SELECT id FROM job WHERE workspace_id = :workspace AND created_at <= :until
          AND (memory_id IS NOT NULL OR kind IN ('ingest', 'consolidate')) ORDER BY id LIMIT :batch FOR UPDATE))
""")


async def measure(session: Session, workspace_id: UUID) -> tuple[int, datetime | None, datetime]:
    """How many memories there are, when the newest was made, and what the server's clock says."""
    query = select(func.count(), func.max(Memory.created_at)).where(Memory.workspace_id == workspace_id)
    row = (await session.execute(query)).one()
    now = await session.scalar(NOW)
    assert now is not None, "the clock always answers"
    return row[0], row[1], now


async def call_off(session: Session, workspace_id: UUID) -> None:
    """Drops the requests that were accepted and are not stored yet."""
    await session.execute(ACCEPTED, {"workspace": workspace_id})


async def memories(
    session: Session, workspace_id: UUID, upto: datetime, *, after: UUID | None, batch: int
) -> list[UUID]:
    """The ids of at most `batch` memories behind `after` that went. Their history is not written: it goes as well."""
    values = {"workspace": workspace_id, "upto": upto, "after": after, "batch": batch}
    ids = list(await session.scalars(NEXT, values))
    if ids:
        await session.execute(REMOVE, {"workspace": workspace_id, "ids": ids})
    return ids


async def everything_else(
    session: Session, workspace_id: UUID, until: datetime, *, batch: int, own_key: str = ""
) -> int:
    """How many rows of history, conversations, entities, decisions, jobs and caches went, at most `batch` of each."""
    values = {"workspace": workspace_id, "until": until, "batch": batch}
    gone = int(await session.scalar(HISTORY, {"until": until, "batch": batch}) or 0)
    gone += await episodes.erase_log(session, until, batch=batch)
    gone += await invocations.erase_all(session, workspace_id, until, batch=batch)
    for statement in (JOBS, *PARTS.values()):
        gone += (await session.execute(statement, values)).rowcount
    await session.execute(ANSWERS, {"workspace": workspace_id, "until": until, "own": own_key})
    return gone

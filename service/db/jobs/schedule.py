"""When is a recurring job due, and what became of its runs?

One row per name for all workspaces. The worker that locks the row starts the run: it inserts the job and its job_run
row, under the same id, in the nil workspace. From there on the queue retries, fences and buries it like any job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select, text
from uuid_utils.compat import uuid7

from service.db.engine import Session
from service.db.tables import JobRun
from service.domain.job import MAX_ATTEMPTS, JobName
from service.domain.scope import NIL_WORKSPACE

REGISTER = text("""
    INSERT INTO schedule AS s (name, interval_s)
    SELECT * FROM unnest(CAST(:names AS text[]), CAST(:intervals_s AS float8[]))
    ON CONFLICT (name) DO UPDATE SET interval_s = excluded.interval_s,
        next_run = least(s.next_run, coalesce(s.last_run, now()) + make_interval(secs => excluded.interval_s))
    WHERE s.interval_s <> excluded.interval_s
""")

# Several workers of one deployment start together: one run serves them all.
HASTEN = text("""
    UPDATE schedule SET next_run = now()
    WHERE name = ANY (CAST(:names AS text[])) AND next_run > now()
      AND (last_run IS NULL OR last_run < now() - interval '1 minute')
""")

# The row lock makes one leader; a waiting or running job of the same name stands for this run too.
START_DUE = text("""
    WITH due AS (
        SELECT s.name FROM schedule s WHERE s.name = ANY (CAST(:names AS text[])) AND s.next_run <= now()
        ORDER BY s.name FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE schedule s SET last_run = now(), next_run = now() + make_interval(secs => s.interval_s)
        FROM due WHERE s.name = due.name RETURNING s.name
    ), run AS (
        INSERT INTO job_run (workspace_id, id, name, reason)
        SELECT :workspace, new.id, new.name, 'schedule'
        FROM moved JOIN unnest(CAST(:names AS text[]), CAST(:ids AS uuid[])) AS new (name, id) USING (name)
        WHERE NOT EXISTS (
            SELECT FROM job WHERE job.workspace_id = :workspace AND job.kind = new.name
              AND job.state IN ('ready', 'running') AND job.memory_id IS NULL)
        RETURNING workspace_id, id, name
    )
    INSERT INTO job (workspace_id, id, kind, max_attempts) SELECT workspace_id, id, name, :max_attempts FROM run
    RETURNING kind
""")

WAITING = text("""
    SELECT id FROM job_run WHERE workspace_id = :workspace AND name = :name AND state = 'queued'
    ORDER BY created_at LIMIT 1
""")

REQUEST = text("""
    WITH run AS (
        INSERT INTO job_run (workspace_id, id, name, reason) VALUES (:workspace, :id, :name, 'request')
        RETURNING workspace_id, id, name
    )
    INSERT INTO job (workspace_id, id, kind, max_attempts) SELECT workspace_id, id, name, :max_attempts FROM run
""")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a recurring or requested job; `counts` tells what it did."""

    id: UUID
    name: str
    reason: str
    state: str
    attempts: int
    counts: Mapping[str, Any] | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


async def register(session: Session, intervals_s: Mapping[str, float]) -> None:
    """Makes the rows of recurring jobs that are new (due at once) and takes over changed intervals."""
    await session.execute(REGISTER, {"names": list(intervals_s), "intervals_s": list(intervals_s.values())})


async def hasten(session: Session, names: Sequence[str]) -> None:
    """Makes `names` due now, except what ran within the last minute."""
    await session.execute(HASTEN, {"names": list(names)})


async def start_due(session: Session, names: Sequence[str]) -> list[str]:
    """The names among `names` that were due; their runs are queued. In a transaction of the nil workspace."""
    found = await session.scalars(
        START_DUE,
        {
            "names": list(names),
            "ids": [uuid7() for _ in names],
            "workspace": NIL_WORKSPACE,
            "max_attempts": MAX_ATTEMPTS,
        },
    )
    return list(found)


async def request(session: Session, workspace_id: UUID, name: JobName) -> UUID:
    """The id of a run of `name` that will begin soon: one that is already queued, or a new one."""
    waiting: UUID | None = await session.scalar(WAITING, {"workspace": workspace_id, "name": name})
    if waiting is not None:
        return waiting
    run = uuid7()
    values = {"workspace": workspace_id, "id": run, "name": name, "max_attempts": MAX_ATTEMPTS}
    await session.execute(REQUEST, values)
    return run


async def runs(session: Session, workspace_id: UUID, *, limit: int) -> list[Run]:
    """The newest runs of a workspace (the nil workspace's are the system's), newest first. Walks pk_job_run."""
    table = JobRun
    rows = await session.execute(
        select(
            table.id,
            table.name,
            table.reason,
            table.state,
            table.attempts,
            table.counts,
            table.error,
            table.created_at,
            table.started_at,
            table.finished_at,
        )
        .where(table.workspace_id == workspace_id)
        .order_by(table.id.desc())
        .limit(limit)
    )
    return [Run(*row) for row in rows]

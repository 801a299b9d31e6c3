"""Recurring jobs and their runs.

`schedule` has one row per job name for all workspaces. The worker that locks the row starts the run: it inserts the job
and its job_run row, under the same id, in the nil workspace. From there on the queue handles it like any job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import text
from uuid_utils.compat import uuid7

from service.domain.job import LONG_MAX_ATTEMPTS, MAX_ATTEMPTS, NOTHING, JobName, Payload, RunReason
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Session

REGISTER = text("""
    INSERT INTO schedule AS s (name, interval_s)
    SELECT * FROM unnest(CAST(:names AS text[]), CAST(:intervals_s AS float8[]))
    ON CONFLICT (name) DO UPDATE SET interval_s = excluded.interval_s,
        next_run = least(s.next_run, coalesce(s.last_run, now()) + make_interval(secs => excluded.interval_s))
    WHERE s.interval_s <> excluded.interval_s
""")

# Several workers of one deployment start together: one run serves them all.
MAKE_DUE = text("""
    UPDATE schedule SET next_run = now()
    WHERE name = ANY (CAST(:names AS text[])) AND next_run > now()
      AND (last_run IS NULL OR last_run < now() - interval '1 minute')
""")

# The row lock makes one leader; a waiting or running job of the same name counts as this run.
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
    SELECT r.id FROM job_run r JOIN job j ON j.workspace_id = r.workspace_id AND j.id = r.id
    WHERE r.workspace_id = :workspace AND r.name = :name AND r.state = 'queued' AND j.state = 'ready'
      AND j.payload = CAST(:payload AS jsonb)
    ORDER BY r.created_at LIMIT 1
""")

REQUEST = text("""
    WITH run AS (
        INSERT INTO job_run (workspace_id, id, name, reason) VALUES (:workspace, :id, :name, :reason)
    )
    INSERT INTO job (workspace_id, id, kind, max_attempts, payload)
    VALUES (:workspace, :id, :name, :max_attempts, CAST(:payload AS jsonb))
""")

# SECURITY DEFINER, for loxodon_worker: no workspace is known here.
FIND_DUE_WORKSPACES = text("SELECT workspace_id FROM find_due_workspaces(:name, :interval_min)")


async def register(session: Session, intervals_s: Mapping[str, float]) -> None:
    """Creates the rows of new recurring jobs (due at once) and updates changed intervals."""
    await session.execute(REGISTER, {"names": list(intervals_s), "intervals_s": list(intervals_s.values())})


async def make_due(session: Session, names: Sequence[str]) -> None:
    """Makes `names` due now, except what ran within the last minute."""
    await session.execute(MAKE_DUE, {"names": list(names)})


async def start_due(session: Session, names: Sequence[str]) -> list[str]:
    """Queues runs of the due jobs among `names`; returns their names. In a transaction of the nil workspace."""
    rows = await session.scalars(
        START_DUE,
        {
            "names": list(names),
            "ids": [uuid7() for _ in names],
            "workspace": NIL_WORKSPACE,
            "max_attempts": MAX_ATTEMPTS,
        },
    )
    return list(rows)


async def request(
    session: Session, name: JobName, payload: Payload = NOTHING, *, reason: RunReason = "request"
) -> UUID:
    """Requests a run of `name`; returns its id, or that of one already queued with this payload."""
    values = {"name": name, "payload": json.dumps(dict(payload))}
    waiting: UUID | None = await session.scalar(WAITING, values)
    if waiting is not None:
        return waiting
    run = uuid7()
    max_attempts = LONG_MAX_ATTEMPTS if name == "reembed" else MAX_ATTEMPTS
    await session.execute(REQUEST, {**values, "id": run, "max_attempts": max_attempts, "reason": reason})
    return run


async def list_due_workspaces(session: Session, name: JobName, interval_min: float) -> list[UUID]:
    """Workspaces in which a job of each workspace is due; `interval_min` if they have no own interval. 0 switches it
    off."""
    return list(await session.scalars(FIND_DUE_WORKSPACES, {"name": name, "interval_min": interval_min}))

"""Inspecting jobs: lists, counts and runs; and controlling them: retry, cancel.

A caller sees the jobs of the workspace of the transaction; those of the service are in the nil workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from service.domain.job import MAX_ATTEMPTS, JobName, JobRecord, JobState
from service.postgres import direct
from service.postgres.engine import Session

# States as shown to people: `queued` was not tried yet, `failed` waits for another attempt.
STATE = """
    CASE WHEN j.state <> 'ready' THEN j.state
         WHEN j.attempts = 0 OR j.last_error IS NULL THEN 'queued' ELSE 'failed' END
"""

COLUMNS = f"""
    j.id, j.kind AS name, {STATE} AS state, j.last_error AS reason, j.memory_id, j.payload ->> 'conversation_id' AS
    conversation_id, j.payload ->> 'operation_id' AS operation_id, j.attempts, j.max_attempts, j.created_at,
    j.run_after AS due_at, j.started_at, j.finished_at, coalesce(j.progress, o.progress) AS progress,
    extract(epoch FROM now() - j.created_at) AS age_s, extract(epoch FROM now() - j.started_at) AS begun_s
"""

FROM = """
    FROM job j LEFT JOIN operation o
        ON o.workspace_id = j.workspace_id AND o.id = CAST(j.payload ->> 'operation_id' AS uuid)
"""

PAGE = f"""
    SELECT {COLUMNS} {FROM}
    WHERE j.workspace_id = :workspace AND {{which}} AND {STATE} = ANY (CAST(:states AS text[]))
      AND (CAST(:name AS text) IS NULL OR j.kind = :name) AND (CAST(:before AS uuid) IS NULL OR j.id < :before)
    ORDER BY j.id DESC LIMIT :limit
"""
# ix_job_ready, ix_job_running and ix_job_dead have the open ones, however many are done; all: pk_job backwards
OPEN = text(PAGE.format(which="(j.state = 'ready' OR j.state = 'running' OR j.state = 'dead')"))
ALL = text(PAGE.format(which="true"))

ONE = text(f"SELECT {COLUMNS} {FROM} WHERE j.workspace_id = :workspace AND j.id = :id")

COUNTS = text(f"""
    SELECT {STATE} AS state, count(*) AS jobs, min(j.created_at) AS oldest FROM job j
    WHERE j.workspace_id = :workspace AND (j.state = 'ready' OR j.state = 'running' OR j.state = 'dead')
      AND j.kind = :name
    GROUP BY 1
""")  # noqa: S608 - no user input


RUNS = text("""
    SELECT id, kind AS name, reason, attempts, counts, created_at, started_at, finished_at,
           CASE state WHEN 'ready' THEN 'queued' WHEN 'dead' THEN 'failed' ELSE state END AS state,
           CASE WHEN state <> 'running' THEN last_error END AS error
    FROM job WHERE workspace_id = :workspace AND kind = :name AND reason IS NOT NULL
    ORDER BY created_at DESC LIMIT :limit
""")

INTERVAL = text("SELECT interval_s, next_run FROM schedule WHERE name = :name")

# Attempts stay counted: the attempt is part of the fence, so that a late end of an old one changes nothing.
RETRY = f"""
    UPDATE job j SET state = 'ready', run_after = now(), finished_at = NULL, last_error = NULL, worker = NULL,
        max_attempts = greatest(j.max_attempts, j.attempts + CAST(:more AS integer))
    WHERE j.workspace_id = :workspace AND j.state IN ('ready', 'dead', 'cancelled') AND j.id IN (
        SELECT j.id {FROM} WHERE j.workspace_id = :workspace AND o.finished_at IS NULL AND {{which}})
    RETURNING j.id
"""  # noqa: S608 - no user input
RETRY_ONE = text(RETRY.format(which="j.id = :id"))
SOME = f"""
    (j.state = 'ready' OR j.state = 'dead' OR j.state = 'cancelled') AND {STATE} = ANY (CAST(:states AS text[]))
    AND (CAST(:name AS text) IS NULL OR j.kind = :name) LIMIT :limit
"""
RETRY_SOME = text(RETRY.format(which=SOME))

# A worker that runs it loses its lease, so its ending no longer counts.
CANCEL = text("""
    WITH ended AS (
        UPDATE job j SET state = 'cancelled', finished_at = now(), worker = NULL, lease_until = NULL,
            last_error = 'cancelled by a request'
        WHERE j.workspace_id = :workspace AND j.id = :id AND j.state IN ('ready', 'running', 'dead')
        RETURNING j.workspace_id, j.id, CAST(j.payload ->> 'operation_id' AS uuid) AS operation_id
    ), operation_ended AS (
        UPDATE operation o SET state = 'failed', request = '{}', finished_at = now(),
            error = '{"code": "cancelled", "detail": "Its job was cancelled."}'
        FROM ended WHERE o.workspace_id = ended.workspace_id AND o.id = ended.operation_id AND o.finished_at IS NULL
    )
    SELECT id FROM ended
""")


async def page(
    session: Session, states: Sequence[JobState], *, name: JobName | None, before: UUID | None, limit: int
) -> list[JobRecord]:
    """Jobs in one of `states`, newest first, made before the job `before`."""
    statement = ALL if {"done", "cancelled"} & set(states) else OPEN
    values = {"states": list(states), "name": name, "before": before, "limit": limit}
    return await direct.page(session, statement, values, lambda row: JobRecord(*row))


async def get(session: Session, job_id: UUID) -> JobRecord | None:
    row = (await session.execute(ONE, {"id": job_id})).one_or_none()
    return JobRecord(*row) if row else None


async def counts(session: Session, name: JobName) -> Sequence[Row[Any]]:
    """The number of unfinished and dead jobs of a name in each state, and when the oldest was created."""
    return (await session.execute(COUNTS, {"name": name})).all()


async def runs(session: Session, name: JobName, *, limit: int) -> Sequence[Row[Any]]:
    """The newest runs of a name, newest first. Uses ix_job_run."""
    return (await session.execute(RUNS, {"name": name, "limit": limit})).all()


async def interval(session: Session, name: JobName) -> tuple[float, datetime] | None:
    """Seconds between the runs of a recurring job, and when the next is due; None for others, or before a worker has
    registered it."""
    row = (await session.execute(INTERVAL, {"name": name})).one_or_none()
    return (row.interval_s, row.next_run) if row else None


async def retry(session: Session, job_id: UUID) -> bool:
    """Makes a job due now, with attempts left; False if it is running or done, or its operation is finished."""
    values = {"id": job_id, "more": MAX_ATTEMPTS}
    return await session.scalar(RETRY_ONE, values) is not None


async def retry_some(session: Session, states: Sequence[JobState], *, name: JobName | None, limit: int) -> list[UUID]:
    """Retries at most `limit` jobs in one of `states`; returns their ids."""
    values = {"states": list(states), "name": name, "limit": limit, "more": MAX_ATTEMPTS}
    return list(await session.scalars(RETRY_SOME, values))


async def cancel(session: Session, job_id: UUID) -> bool:
    """Cancels a job and fails its operation; False if the job is finished."""
    return await session.scalar(CANCEL, {"id": job_id}) is not None

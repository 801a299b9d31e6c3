"""How does work wait in Postgres, and who does it next?

A job is inserted by the transaction that causes it. A worker claims batches, one lane (a kind of work in a workspace)
after the other, and holds each job by a lease; whoever finishes a job names the worker and the attempt that claimed
it, so a late finish of a lost lease changes nothing. All times are the server's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.db import direct
from service.db.direct import NewRows
from service.db.engine import Session
from service.domain.job import Ending, Job, NewJob
from service.domain.scope import NIL_WORKSPACE

Lane = tuple[UUID, str]
"""A kind of work in a workspace."""

FIRST_LANE: Lane = (NIL_WORKSPACE, "")

INSERT = text("""
    INSERT INTO job (workspace_id, id, kind, memory_id, payload, max_attempts, priority)
    VALUES (:workspace_id, :id, :kind, :memory_id, :payload, :max_attempts, :priority)
""").bindparams(bindparam("payload", type_=JSONB()))

# COPY is refused under row-level security, so many jobs travel as arrays.
ENQUEUE = text("""
    INSERT INTO job (workspace_id, id, kind, memory_id, payload, run_after, max_attempts, priority)
    SELECT :workspace, new.id, new.kind, new.memory_id, new.payload::jsonb, coalesce(new.run_after, now()),
           new.max_attempts, new.priority
    FROM unnest(CAST(:ids AS uuid[]), CAST(:kinds AS text[]), CAST(:memory_ids AS uuid[]), CAST(:payloads AS text[]),
                CAST(:run_afters AS timestamptz[]), CAST(:max_attempts AS integer[]), CAST(:priorities AS smallint[]))
         AS new (id, kind, memory_id, payload, run_after, max_attempts, priority)
""")

# ix_job_ready for the lanes and within a lane, ix_job_running for leases that ran out
CLAIM = text(
    "SELECT * FROM claim_jobs(:worker, CAST(:kinds AS text[]), :limit, :lease_s, :after_workspace, :after_kind)"
)

EXTEND = text("""
    UPDATE job SET lease_until = now() + make_interval(secs => :lease_s)
    FROM unnest(CAST(:workspaces AS uuid[]), CAST(:ids AS uuid[]), CAST(:attempts AS integer[]))
         AS held (workspace_id, id, attempts)
    WHERE job.workspace_id = held.workspace_id AND job.id = held.id AND job.state = 'running'
      AND job.worker = :worker AND job.attempts = held.attempts
    RETURNING job.id, job.attempts
""")

SETTLE = text("""
    WITH ending AS (
        SELECT * FROM unnest(CAST(:workspaces AS uuid[]), CAST(:ids AS uuid[]), CAST(:attempts AS integer[]),
                             CAST(:workers AS text[]), CAST(:states AS text[]), CAST(:delays_s AS float8[]),
                             CAST(:errors AS text[]), CAST(:counts AS text[]), CAST(:taken_back AS integer[]))
             AS e (workspace_id, id, attempts, worker, state, delay_s, error, counts, taken_back)
    ), settled AS (
        UPDATE job SET state = e.state, worker = CASE e.state WHEN 'ready' THEN NULL ELSE e.worker END,
            lease_until = NULL, last_error = e.error, attempts = job.attempts - e.taken_back,
            run_after = CASE e.state WHEN 'ready' THEN now() + make_interval(secs => e.delay_s) ELSE run_after END,
            finished_at = CASE e.state WHEN 'ready' THEN NULL ELSE now() END
        FROM ending e
        WHERE job.workspace_id = e.workspace_id AND job.id = e.id AND job.state = 'running'
          AND job.worker = e.worker AND job.attempts = e.attempts
        RETURNING job.workspace_id, job.id, e.state, e.error, e.counts
    ), told AS (
        UPDATE job_run SET error = s.error, counts = s.counts::jsonb,
            state = CASE s.state WHEN 'done' THEN 'done' WHEN 'dead' THEN 'failed' ELSE 'queued' END,
            finished_at = CASE s.state WHEN 'ready' THEN NULL ELSE now() END
        FROM settled s WHERE job_run.workspace_id = s.workspace_id AND job_run.id = s.id
    )
    SELECT id FROM settled
""")

UNEMBEDDED = text("SELECT * FROM find_unembedded(make_interval(secs => :quiet_s), :limit)")


def new_rows(workspace_id: UUID, jobs: Sequence[NewJob]) -> NewRows:
    """The rows of jobs that are due at once, to be written with what causes them."""
    assert all(job.run_after is None for job in jobs), "a job for later is enqueued"
    rows = [
        {
            "workspace_id": workspace_id,
            "id": uuid7(),
            "kind": job.kind,
            "memory_id": job.memory_id,
            "payload": dict(job.payload),
            "max_attempts": job.max_attempts,
            "priority": job.priority,
        }
        for job in jobs
    ]
    return NewRows(INSERT, rows)


async def enqueue(session: Session, workspace_id: UUID, jobs: Sequence[NewJob]) -> None:
    """Adds jobs in one statement; they exist when the caller's transaction commits. Wake the workers after that."""
    if not jobs:
        return
    await direct.fetch(
        session,
        ENQUEUE,
        {
            "workspace": workspace_id,
            "ids": [uuid7() for _ in jobs],
            "kinds": [job.kind for job in jobs],
            "memory_ids": [job.memory_id for job in jobs],
            "payloads": [json.dumps(dict(job.payload)) for job in jobs],
            "run_afters": [job.run_after for job in jobs],
            "max_attempts": [job.max_attempts for job in jobs],
            "priorities": [job.priority for job in jobs],
        },
    )


async def claim(
    session: Session, worker: str, kinds: Sequence[str], limit: int, lease_s: float, *, after: Lane = FIRST_LANE
) -> list[Job]:
    """At most `limit` due jobs, lane by lane; the last one's lane is the next call's `after`: each has its turn.

    Also frees jobs whose lease ran out: to be claimed again, or dead after their last attempt. As loxodon_worker only.
    """
    rows = await direct.fetch(
        session,
        CLAIM,
        {
            "worker": worker,
            "kinds": list(kinds),
            "limit": limit,
            "lease_s": lease_s,
            "after_workspace": after[0],
            "after_kind": after[1],
        },
    )
    return [
        Job(
            workspace_id=row.workspace_id,
            id=row.id,
            kind=row.kind,
            memory_id=row.memory_id,
            payload=row.payload,
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            worker=worker,
            waited_s=max(0.0, row.waited_s),
        )
        for row in rows
    ]


async def extend(session: Session, worker: str, jobs: Sequence[Job], lease_s: float) -> set[tuple[UUID, int]]:
    """Id and attempt of the `jobs` that `worker` still holds, now for `lease_s` more seconds; the rest it has lost."""
    rows = await session.execute(
        EXTEND,
        {
            "worker": worker,
            "lease_s": lease_s,
            "workspaces": [job.workspace_id for job in jobs],
            "ids": [job.id for job in jobs],
            "attempts": [job.attempts for job in jobs],
        },
    )
    return {(row.id, row.attempts) for row in rows}


async def settle(session: Session, endings: Sequence[Ending]) -> set[UUID]:
    """Writes how attempts ended, and the same into their job_run rows; returns the ids whose fence still held."""
    rows = await direct.fetch(
        session,
        SETTLE,
        {
            "workspaces": [ending.job.workspace_id for ending in endings],
            "ids": [ending.job.id for ending in endings],
            "attempts": [ending.job.attempts for ending in endings],
            "workers": [ending.job.worker for ending in endings],
            "states": [ending.state for ending in endings],
            "delays_s": [ending.delay_s for ending in endings],
            "errors": [ending.error for ending in endings],
            "counts": [None if ending.counts is None else json.dumps(dict(ending.counts)) for ending in endings],
            "taken_back": [0 if ending.counted else 1 for ending in endings],
        },
    )
    return {row.id for row in rows}


async def unembedded(session: Session, *, quiet_s: float, limit: int) -> list[tuple[UUID, UUID]]:
    """Workspace and id of memories that wait for a vector without a job that would make it, untouched for `quiet_s`."""
    rows = await session.execute(UNEMBEDDED, {"quiet_s": quiet_s, "limit": limit})
    return [(row.workspace_id, row.memory_id) for row in rows]

"""The durable queue: jobs are enqueued, claimed, extended and finished.

A job is inserted by the transaction that causes it. A worker claims batches, one lane (a kind of job in a workspace)
after the other, and holds each job by a lease. Finishing a job names the worker and the attempt that claimed it, so a
late finish after a lost lease changes nothing. All times are the server's. See docs/decisions/008-durable-queue.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import DateTime, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.domain.access import Wall
from service.domain.job import Ending, Job, NewJob
from service.domain.scope import NIL_WORKSPACE
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session

Lane = tuple[UUID, str]
"""A workspace and a kind of job."""

FIRST_LANE: Lane = (NIL_WORKSPACE, "")

INSERT = text("""
    INSERT INTO job (workspace_id, id, kind, memory_id, payload, run_after, max_attempts, priority)
    VALUES (:workspace_id, :id, :kind, :memory_id, :payload, coalesce(:run_after, now()), :max_attempts, :priority)
""").bindparams(bindparam("payload", type_=JSONB()), bindparam("run_after", type_=DateTime(timezone=True)))

# claim_jobs() uses ix_job_ready for the lanes and within a lane, ix_job_running for leases that ran out
CLAIM = text(
    "SELECT * FROM claim_jobs(:worker, CAST(:kinds AS text[]), :limit, :lease_s, :after_workspace, :after_kind)"
)

EXTEND = text("""
    UPDATE job SET lease_until = now() + make_interval(secs => :lease_s)
    FROM unnest(CAST(:workspaces AS uuid[]), CAST(:ids AS uuid[]), CAST(:attempts AS integer[]))
         AS claimed (workspace_id, id, attempts)
    WHERE job.workspace_id = claimed.workspace_id AND job.id = claimed.id AND job.state = 'running'
      AND job.worker = :worker AND job.attempts = claimed.attempts
    RETURNING job.id, job.attempts
""")

# `uncounted`: 1 for an attempt that does not count, as when the worker shuts down
FINISH = text("""
    WITH ending AS (
        SELECT * FROM unnest(CAST(:workspaces AS uuid[]), CAST(:ids AS uuid[]), CAST(:attempts AS integer[]),
                             CAST(:workers AS text[]), CAST(:states AS text[]), CAST(:delays_s AS float8[]),
                             CAST(:errors AS text[]), CAST(:counts AS text[]), CAST(:uncounted AS integer[]))
             AS e (workspace_id, id, attempts, worker, state, delay_s, error, counts, uncounted)
    ), finished AS (
        UPDATE job SET state = e.state, worker = CASE e.state WHEN 'ready' THEN NULL ELSE e.worker END,
            wall = CASE e.state WHEN 'done' THEN NULL ELSE wall END,
            lease_until = NULL, last_error = e.error, attempts = job.attempts - e.uncounted,
            run_after = CASE e.state WHEN 'ready' THEN now() + make_interval(secs => e.delay_s) ELSE run_after END,
            finished_at = CASE e.state WHEN 'ready' THEN NULL ELSE now() END
        FROM ending e
        WHERE job.workspace_id = e.workspace_id AND job.id = e.id AND job.state = 'running'
          AND job.worker = e.worker AND job.attempts = e.attempts
        RETURNING job.workspace_id, job.id, e.state, e.error, e.counts
    ), reported AS (
        UPDATE job_run SET error = f.error, counts = f.counts::jsonb,
            state = CASE f.state WHEN 'done' THEN 'done' WHEN 'dead' THEN 'failed' ELSE 'queued' END,
            finished_at = CASE f.state WHEN 'ready' THEN NULL ELSE now() END
        FROM finished f WHERE job_run.workspace_id = f.workspace_id AND job_run.id = f.id
    )
    SELECT id FROM finished
""")

HASTEN = text("UPDATE job SET run_after = now() WHERE state = 'ready' AND last_error LIKE 'llm_error: %'")

ADVANCE = text("""
    UPDATE job SET progress = CAST(:progress AS jsonb)
    WHERE workspace_id = :workspace AND id = :id AND state = 'running' AND worker = :worker AND attempts = :attempts
""")

# One sweep at a time: two at the same moment would queue everything twice.
LOCK_SWEEP = text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:sweep', 0))")
WITHOUT_JOB = text("""
    SELECT w.id FROM unnest(CAST(:ids AS uuid[])) AS w (id)
    WHERE NOT EXISTS (SELECT FROM job j WHERE j.workspace_id = :workspace AND j.memory_id = w.id AND j.kind = 'embed'
                      AND j.state IN ('ready', 'running'))
    ORDER BY w.id
""")


async def enqueue(session: Session, jobs: Sequence[NewJob]) -> None:
    """Adds jobs; they exist when the caller's transaction commits. Wake the workers after that."""
    await direct.insert(session, new_rows(session.workspace_id, jobs))


def new_rows(workspace_id: UUID, jobs: Sequence[NewJob]) -> NewRows:
    """The rows of jobs, to be written with what causes them."""
    rows = [
        {
            "workspace_id": workspace_id,
            "id": uuid7(),
            "kind": job.kind,
            "memory_id": job.memory_id,
            "payload": dict(job.payload),
            "run_after": job.run_after,
            "max_attempts": job.max_attempts,
            "priority": job.priority,
        }
        for job in jobs
    ]
    return NewRows(INSERT, rows)


async def claim(
    session: Session, worker: str, kinds: Sequence[str], limit: int, lease_s: float, *, after: Lane = FIRST_LANE
) -> list[Job]:
    """At most `limit` due jobs, lane by lane, starting with the lane after `after`, so that each lane has its turn.

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
    make = direct.reader(
        Job, worker=lambda _: worker, waited_s=lambda row: max(0.0, row.waited_s), wall=lambda row: Wall.of(row.wall)
    )
    return [make(row) for row in rows]


async def extend(session: Session, worker: str, jobs: Sequence[Job], lease_s: float) -> set[tuple[UUID, int]]:
    """Id and attempt of the jobs that `worker` still holds, now for `lease_s` more seconds; it has lost the others."""
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


async def finish(session: Session, endings: Sequence[Ending]) -> set[UUID]:
    """Records the endings of attempts in the jobs and their job_run rows; returns the ids whose lease was not lost."""
    rows = await direct.fetch(
        session,
        FINISH,
        {
            "workspaces": [ending.job.workspace_id for ending in endings],
            "ids": [ending.job.id for ending in endings],
            "attempts": [ending.job.attempts for ending in endings],
            "workers": [ending.job.worker for ending in endings],
            "states": [ending.state for ending in endings],
            "delays_s": [ending.delay_s for ending in endings],
            "errors": [ending.error for ending in endings],
            "counts": [None if ending.counts is None else json.dumps(dict(ending.counts)) for ending in endings],
            "uncounted": [0 if ending.counted else 1 for ending in endings],
        },
    )
    return {row.id for row in rows}


async def advance(session: Session, job: Job, done: int, total: int) -> None:
    """Stores the progress of a long job, in the transaction of the work itself; does nothing once the lease is lost."""
    progress = json.dumps({"done": done, "total": max(done, total)})
    fence = {"workspace": job.workspace_id, "id": job.id, "worker": job.worker, "attempts": job.attempts}
    await session.execute(ADVANCE, {**fence, "progress": progress})


async def hasten(session: Session) -> None:
    """Makes jobs of all workspaces that wait for the language model due. As loxodon_worker only."""
    await session.execute(HASTEN)


async def enqueue_embeds(session: Session, memory_ids: Sequence[UUID]) -> int:
    """Queues the vectors of these memories, except those with a waiting or running job; returns how many. Other sweeps
    wait until the transaction ends."""
    await session.execute(LOCK_SWEEP)
    without = await session.scalars(WITHOUT_JOB, {"ids": list(memory_ids)})
    jobs = [NewJob("embed", memory_id=each) for each in without]
    await enqueue(session, jobs)
    return len(jobs)

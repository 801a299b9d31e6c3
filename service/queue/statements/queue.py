"""The durable queue: jobs are enqueued, claimed, extended and finished, and recurring ones are started.

A job is inserted by the transaction that causes it. A worker claims batches, one lane (a kind of job in a workspace)
after the other, and holds each job by a lease. Finishing a job names the worker and the attempt that claimed it, so a
late finish after a lost lease changes nothing. All times are the server's. See docs/decisions/008-durable-queue.md.

`schedule` has one row per recurring job for all workspaces. The worker that locks the row starts the run: it inserts
a job with its reason in the nil workspace. From there on it is a job like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import DateTime, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.domain.access import Wall
from service.domain.job import (
    LONG_MAX_ATTEMPTS,
    MAX_ATTEMPTS,
    NOTHING,
    Ending,
    Job,
    JobName,
    NewJob,
    Payload,
    RunReason,
)
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
    )
    UPDATE job SET state = e.state, worker = CASE e.state WHEN 'ready' THEN NULL ELSE e.worker END,
        wall = CASE e.state WHEN 'done' THEN NULL ELSE wall END,
        lease_until = NULL, last_error = e.error, counts = e.counts::jsonb, attempts = job.attempts - e.uncounted,
        run_after = CASE e.state WHEN 'ready' THEN now() + make_interval(secs => e.delay_s) ELSE run_after END,
        finished_at = CASE e.state WHEN 'ready' THEN NULL ELSE now() END
    FROM ending e
    WHERE job.workspace_id = e.workspace_id AND job.id = e.id AND job.state = 'running'
      AND job.worker = e.worker AND job.attempts = e.attempts
    RETURNING job.id
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
    """Records the endings of attempts in the jobs; returns the ids whose lease was not lost."""
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


REGISTER_RECURRING = text("""
    INSERT INTO schedule AS s (name, interval_s)
    SELECT * FROM unnest(CAST(:names AS text[]), CAST(:intervals_s AS float8[]))
    ON CONFLICT (name) DO UPDATE SET interval_s = excluded.interval_s,
        next_run = least(s.next_run, coalesce(s.last_run, now()) + make_interval(secs => excluded.interval_s))
    WHERE s.interval_s <> excluded.interval_s
""")

# Several workers of one deployment start together: one run serves them all.
MAKE_RECURRING_DUE = text("""
    UPDATE schedule SET next_run = now()
    WHERE name = ANY (CAST(:names AS text[])) AND next_run > now()
      AND (last_run IS NULL OR last_run < now() - interval '1 minute')
""")

# The row lock makes one leader; a waiting or running job of the same name counts as this run.
START_DUE_RUNS = text("""
    WITH due AS (
        SELECT s.name FROM schedule s WHERE s.name = ANY (CAST(:names AS text[])) AND s.next_run <= now()
        ORDER BY s.name FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE schedule s SET last_run = now(), next_run = now() + make_interval(secs => s.interval_s)
        FROM due WHERE s.name = due.name RETURNING s.name
    )
    INSERT INTO job (workspace_id, id, kind, max_attempts, reason)
    SELECT :workspace, new.id, new.name, :max_attempts, 'schedule'
    FROM moved JOIN unnest(CAST(:names AS text[]), CAST(:ids AS uuid[])) AS new (name, id) USING (name)
    WHERE NOT EXISTS (
        SELECT FROM job WHERE job.workspace_id = :workspace AND job.kind = new.name
          AND (job.state = 'ready' OR job.state = 'running') AND job.memory_id IS NULL)
    RETURNING kind
""")

FIND_WAITING_RUN = text("""
    SELECT id FROM job
    WHERE workspace_id = :workspace AND kind = :name AND state = 'ready' AND reason IS NOT NULL
      AND payload = CAST(:payload AS jsonb)
    ORDER BY created_at LIMIT 1
""")

INSERT_RUN = text("""
    INSERT INTO job (workspace_id, id, kind, max_attempts, payload, reason)
    VALUES (:workspace, :id, :name, :max_attempts, CAST(:payload AS jsonb), :reason)
""")

# SECURITY DEFINER, for loxodon_worker: no workspace is known here.
FIND_DUE_WORKSPACES = text("SELECT workspace_id FROM find_due_workspaces(:name, :interval_min)")


async def register_recurring(session: Session, intervals_s: Mapping[str, float]) -> None:
    """Creates the rows of new recurring jobs (due at once) and updates changed intervals."""
    await session.execute(REGISTER_RECURRING, {"names": list(intervals_s), "intervals_s": list(intervals_s.values())})


async def make_recurring_due(session: Session, names: Sequence[str]) -> None:
    """Makes `names` due now, except what ran within the last minute."""
    await session.execute(MAKE_RECURRING_DUE, {"names": list(names)})


async def start_due_runs(session: Session, names: Sequence[str]) -> list[str]:
    """Queues runs of the due jobs among `names`; returns their names. In a transaction of the nil workspace."""
    rows = await session.scalars(
        START_DUE_RUNS,
        {
            "names": list(names),
            "ids": [uuid7() for _ in names],
            "workspace": NIL_WORKSPACE,
            "max_attempts": MAX_ATTEMPTS,
        },
    )
    return list(rows)


async def request_run(
    session: Session, name: JobName, payload: Payload = NOTHING, *, reason: RunReason = "request"
) -> UUID:
    """Requests a run of `name`; returns its id, or that of one already queued with this payload."""
    values = {"name": name, "payload": json.dumps(dict(payload))}
    waiting: UUID | None = await session.scalar(FIND_WAITING_RUN, values)
    if waiting is not None:
        return waiting
    run = uuid7()
    max_attempts = LONG_MAX_ATTEMPTS if name == "reembed" else MAX_ATTEMPTS
    await session.execute(INSERT_RUN, {**values, "id": run, "max_attempts": max_attempts, "reason": reason})
    return run


async def list_due_workspaces(session: Session, name: JobName, interval_min: float) -> list[UUID]:
    """Workspaces in which a job of each workspace is due; `interval_min` if they have no own interval. 0 switches it
    off."""
    return list(await session.scalars(FIND_DUE_WORKSPACES, {"name": name, "interval_min": interval_min}))

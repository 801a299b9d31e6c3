"""Inspecting and controlling jobs: those of a workspace, or with `system` those of the whole service.

Controlling a job is recorded in the audit log of the caller's workspace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, get_args
from uuid import UUID

from sqlalchemy import Row

from service.domain.access import Caller, Right
from service.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.domain.job import JobName, JobRecord, JobState, SystemJobName, WorkspaceJobName
from service.domain.request import Call, Operation
from service.domain.scope import NIL_WORKSPACE, Scope
from service.postgres.engine import Session
from service.queue.statements import overview, queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction

MAX_RETRIED = 1_000
"""Maximum number of jobs that one request retries."""

Act = Callable[[Session, UUID], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class JobsOf:
    """Which jobs: those of the caller's workspace, or of the service."""

    caller: Caller
    system: bool = False

    @property
    def workspace_id(self) -> UUID:
        return NIL_WORKSPACE if self.system else self.caller.workspace_id

    def check(self, of_system: Right) -> None:
        """Raises Forbidden without the right `admin`, or for the service's jobs without the right `of_system`."""
        right = of_system if self.system else Right.ADMIN
        if not self.caller.may(right):
            raise Forbidden(f"This key lacks the right {right}.")


@dataclass(frozen=True, slots=True)
class NamedJobs:
    """All jobs of one name. `interval_s`: between two scheduled runs, the next of which is at `next_run`."""

    interval_s: float | None
    next_run: datetime | None
    states: Sequence[Row[Any]]
    running: list[JobRecord]
    runs: Sequence[Row[Any]]


async def list_jobs(
    of: JobsOf, states: Sequence[JobState], res: Resources, *, name: JobName | None, before: UUID | None, limit: int
) -> list[JobRecord]:
    """Jobs in one of `states`, newest first, made before the job `before`."""
    of.check(Right.METRICS)
    async with res.db.read(of.workspace_id) as session:
        return await overview.page(session, states, name=name, before=before, limit=limit)


async def describe(of: JobsOf, name: JobName, res: Resources, *, last_runs: int) -> NamedJobs:
    of.check(Right.METRICS)
    workspace_id = of.workspace_id
    async with res.db.read(workspace_id) as session:
        states = await overview.counts(session, name)
        runs = await overview.runs(session, name, limit=last_runs)
        running = await overview.page(session, ["running"], name=name, before=None, limit=1)
        clock = await overview.interval(session, name) if of.system else _own_interval(name, runs, res)
    interval_s, next_run = clock or (None, None)
    return NamedJobs(interval_s, next_run, states, running, runs)


async def run(of: JobsOf, name: JobName, res: Resources, call: Call) -> JobRecord:
    """Requests a run; returns it, or one that is already queued. Raises InvalidInput for a job that is triggered by
    writes."""
    of.check(Right.OPERATOR)
    allowed: tuple[str, ...] = get_args(SystemJobName if of.system else WorkspaceJobName)
    if name not in allowed:
        which = "with system=true" if of.system else "without system=true"
        raise InvalidInput(f"name: only these can be run on request {which}: {', '.join(allowed)}.", field="name")
    async with plain_transaction(of.workspace_id, res, call) as write:
        job_id = await queue.request_run(write.session, name)
        job = await overview.get(write.session, job_id)
        assert job is not None, "it was just made"
        await _audit(write, "run_job", [job_id], of)
        return job


async def retry_some(
    of: JobsOf, states: Sequence[JobState], res: Resources, call: Call, *, name: JobName | None
) -> int:
    """Makes jobs due again, at most MAX_RETRIED; returns how many."""
    of.check(Right.OPERATOR)
    async with plain_transaction(of.workspace_id, res, call) as write:
        ids = await overview.retry_some(write.session, states, name=name, limit=MAX_RETRIED)
        if ids:
            await _audit(write, "retry_job", ids, of)
        return len(ids)


async def retry(of: JobsOf, job_id: UUID, res: Resources, call: Call) -> JobRecord:
    """Makes the job due now. Raises NotFound, or Conflict if it is running or done, or its operation is finished."""
    again, job = await _steer(overview.retry, "retry_job", of, job_id, res, call)
    if not again and job.state in ("running", "done"):
        raise Conflict(f"The job is {job.state}; only a waiting, dead or cancelled job can be retried.", field="id")
    if not again:
        raise Conflict("The operation of this job is finished; send its request again.", field="id")
    return job


async def cancel(of: JobsOf, job_id: UUID, res: Resources, call: Call) -> JobRecord:
    """Cancels the job. Raises NotFound, or Conflict if it is done."""
    _, job = await _steer(overview.cancel, "cancel_job", of, job_id, res, call)
    if job.state == "done":
        raise Conflict("The job is done.", field="id")
    return job


def _own_interval(name: JobName, runs: Sequence[Row[Any]], res: Resources) -> tuple[float, datetime | None] | None:
    """Seconds between the runs of a job in each workspace, and when the next is due; None for other jobs."""
    interval_s = 60 * res.settings.jobs.intervals_min.of(name)
    if not interval_s:
        return None
    return interval_s, runs[0].created_at + timedelta(seconds=interval_s) if runs else None


async def _steer(
    act: Act, operation: Operation, of: JobsOf, job_id: UUID, res: Resources, call: Call
) -> tuple[bool, JobRecord]:
    """Applies an action; returns whether it changed the job, and the job as it is now."""
    of.check(Right.OPERATOR)
    async with plain_transaction(of.workspace_id, res, call) as write:
        changed = await act(write.session, job_id)
        job = await overview.get(write.session, job_id)
        if job is None:
            raise NotFound.of("job")
        if changed:
            await _audit(write, operation, [job_id], of)
        return changed, job


async def _audit(write: Write, operation: Operation, ids: Sequence[UUID], of: JobsOf) -> None:
    """Audits in the same transaction, except for a job of the service, which belongs to no workspace."""
    workspace_id = of.caller.workspace_id
    async with write.res.db.begin(workspace_id) if of.system else nullcontext(write.session) as session:
        await replace(write, session=session).audit(operation, Scope(workspace_id), ids, subject="job")

"""Routes for jobs: list, start, retry and cancel them, and see their last runs.

Jobs of a workspace need the right `admin`. Jobs of the whole service (clean-up, partitions) belong to no workspace:
seeing them needs `metrics`, controlling them `operator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from service.domain.job import JobName, JobRecord, JobState
from service.http import errors
from service.http.deps import CallerOf, CursorOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import UnkeyedCallOf
from service.jobs import jobs
from service.jobs.jobs import MAX_RETRIED, JobsOf

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JsonRoute, responses=errors.document(403))

LAST_RUNS = 20
OPEN: tuple[JobState, ...] = ("queued", "running", "failed", "dead")

Named = Annotated[JobName, Path(description="What the job does")]


OfSystem = Annotated[
    bool, Query(description="Jobs of the whole service instead: needs `metrics`, for controlling them `operator`")
]


async def _of(caller: CallerOf, system: OfSystem = False) -> JobsOf:
    return JobsOf(caller, system)


Whose = Annotated[JobsOf, Depends(_of)]


class JobProgress(ResponseModel):
    """Progress of a long job."""

    done: int = Field(description="Rows done")
    total: int = Field(description="Rows in total, counted at the start")
    per_s: float | None = Field(description="Rows per second since its first attempt started; null: not started")
    eta_s: float | None = Field(description="Seconds left at that rate; null: unknown")

    @classmethod
    def after(cls, progress: Mapping[str, Any], seconds: float | None) -> Self:
        done, total = int(progress["done"]), int(progress["total"])
        per_s = done / seconds if seconds else None
        eta_s = max(0, total - done) / per_s if per_s else None
        return cls(done=done, total=total, per_s=per_s, eta_s=eta_s)


class JobItem(ResponseModel):
    """A job, without the text it processes."""

    id: Id = Field(description="UUID")
    name: str = Field(description="Name of the job", examples=["enrich"])
    state: JobState = Field(
        description="queued; running; failed: waits for another attempt; dead: waits for a person; done; cancelled"
    )
    reason: str | None = Field(description="Why the last attempt failed; null: not failed")
    attempts: int = Field(description="Attempts started so far")
    max_attempts: int = Field(description="Number of attempts after which it is dead")
    age_s: float = Field(description="Seconds since it was created")
    progress: JobProgress | None = Field(description="Progress of a long job; null: none, or none yet")
    memory_id: Id | None = Field(description="UUID of the memory it is about; null: none, or several")
    conversation_id: Id | None = Field(description="UUID of the conversation it is about; null: none")
    operation_id: Id | None = Field(description="UUID of the operation it performs; null: none")
    created_at: Time = Field(description="When it was created")
    due_at: Time = Field(description="Earliest start")
    started_at: Time | None = Field(description="When its first attempt started; null: not yet")
    finished_at: Time | None = Field(description="When it was done, dead or cancelled; null: not yet")

    @classmethod
    def describing(cls, job: JobRecord) -> Self:
        shown = JobProgress.after(job.progress, job.begun_s) if job.progress else None
        return cls.of(job, progress=shown, age_s=float(job.age_s))


class RetriedJobs(ResponseModel):
    """The number of retried jobs."""

    retried: int = Field(description=f"Number of retried jobs; {MAX_RETRIED:,} is the maximum, then there may be more")


class JobsPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[JobItem] = Field(description="At most `limit` jobs")
    next_cursor: NextCursor = None


class JobStateCount(ResponseModel):
    """The number of jobs in one state."""

    state: JobState = Field(description="queued, running, failed or dead")
    jobs: int = Field(description="Number of jobs")
    oldest: Time = Field(description="When the oldest was created")


class JobRunItem(ResponseModel):
    """A scheduled or requested run of a job."""

    id: Id = Field(description="UUID of the run and its job")
    name: str = Field(description="Name of the job", examples=["cleanup"])
    reason: str = Field(description="schedule or request")
    state: str = Field(description="queued, running, done, failed or cancelled")
    attempts: int = Field(description="Attempts started so far")
    counts: dict[str, int] | None = Field(description="Counts of what it did, by name; null: nothing, or not yet")
    error: str | None = Field(description="Why the last attempt failed; null: not failed")
    created_at: Time = Field(description="When it was queued")
    started_at: Time | None = Field(description="When it started; null: not yet")
    finished_at: Time | None = Field(description="When it finished; null: not yet")


class JobDetails(ResponseModel):
    """State of all jobs with one name."""

    name: str = Field(description="Name of the jobs", examples=["cleanup"])
    interval_s: float | None = Field(description="Seconds between scheduled runs; null: not scheduled")
    next_run: Time | None = Field(description="When the next run is scheduled; null: never")
    states: list[JobStateCount] = Field(
        description="Number of queued, running, failed and dead jobs; states without any are omitted"
    )
    progress: JobProgress | None = Field(description="Progress of the newest running job; null: none")
    runs: list[JobRunItem] = Field(description=f"The last {LAST_RUNS} runs, newest first")


@router.get("", summary="List background jobs")
async def list_jobs(
    caller: CallerOf,
    res: ResourcesOf,
    cursor: CursorOf,
    state: Annotated[
        list[JobState] | None,
        Query(max_length=len(get_args(JobState)), description="Repeatable; default queued, running, failed and dead"),
    ] = None,
    name: Annotated[JobName | None, Query(description="Only jobs with this name")] = None,
    system: OfSystem = False,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> JobsPage:
    """Needs the right `admin`; with `system`, `metrics`. Done and cancelled jobs are listed only if `state` includes
    them, and kept for 7 days."""
    (before,) = cursor.key(UUID) or (None,)
    listed = await jobs.list_jobs(JobsOf(caller, system), state or OPEN, res, name=name, before=before, limit=limit + 1)
    shown, more = cursor.cut(listed, limit, "id")
    return JobsPage(results=[JobItem.describing(job) for job in shown], next_cursor=more)


@router.get("/{name}", summary="Get the state and last runs of jobs with one name")
async def get_job(name: Named, of: Whose, res: ResourcesOf) -> JobDetails:
    """Needs the right `admin`; with `system`, `metrics`. Jobs that are triggered by writes have no runs."""
    described = await jobs.describe(of, name, res, last_runs=LAST_RUNS)
    return JobDetails.of(
        described,
        name=name,
        states=[JobStateCount.of(count) for count in described.states],
        progress=next((JobItem.describing(job).progress for job in described.running), None),
        runs=[JobRunItem.of(run) for run in described.runs],
    )


@router.post("/{name}/run", summary="Run a job now", status_code=202)
async def run_job(name: Named, of: Whose, res: ResourcesOf, call: UnkeyedCallOf) -> JobItem:
    """Runs ageing (`relevance`, `decay`, `flag_stale`, `forget`), `promote`, `patterns` or `consolidate` for the
    workspace; needs the right `admin`. With `system`, runs a scheduled job of the whole service; needs `operator`. If
    the job is already queued, that one is returned. Other jobs are triggered by writes only."""
    return JobItem.describing(await jobs.run(of, name, res, call))


@router.post("/retry", summary="Retry several jobs now")
async def retry_jobs(
    of: Whose,
    res: ResourcesOf,
    call: UnkeyedCallOf,
    state: Annotated[
        list[Literal["dead", "failed", "cancelled"]] | None,
        Query(max_length=3, description="Repeatable; default dead. failed: waiting for another attempt"),
    ] = None,
    name: Annotated[JobName | None, Query(description="Only jobs with this name")] = None,
) -> RetriedJobs:
    """Retries jobs in the given states, except those whose operation is finished. Needs the right `admin`; with
    `system`, `operator`."""
    return RetriedJobs(retried=await jobs.retry_some(of, state or ["dead"], res, call, name=name))


@router.post("/{id}/retry", summary="Retry a job now", responses=errors.document(409))
async def retry_job(id: str, of: Whose, res: ResourcesOf, call: UnkeyedCallOf) -> JobItem:
    """Retries a dead, cancelled or waiting job; it gets at least three more attempts. 409 if it is running or done, or
    its operation is finished: then repeat that request. Needs the right `admin`; with `system`, `operator`."""
    return JobItem.describing(await jobs.retry(of, uuid_of(id, "job"), res, call))


@router.post("/{id}/cancel", summary="Cancel a job", responses=errors.document(409))
async def cancel_job(id: str, of: Whose, res: ResourcesOf, call: UnkeyedCallOf) -> JobItem:
    """A waiting job does not start; a running one stops between two of its transactions, within a third of its lease
    (20 s). Its operation fails with the code `cancelled`. 409 if the job is done. Needs the right `admin`; with
    `system`, `operator`."""
    return JobItem.describing(await jobs.cancel(of, uuid_of(id, "job"), res, call))

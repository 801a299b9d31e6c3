"""Jobs over HTTP: what waits, runs or is dead, the last runs of each kind, and how to start, repeat or end one.

The jobs of a workspace are for its `admin`. Those of the whole service (clean-up, partitions) are in no workspace: the
right `metrics` shows them, as it shows the length of the queue, and `operator` steers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from service.domain.job import JobName, JobState
from service.http import cursors, errors
from service.http.deps import AgentId, CallerOf, ResourcesOf, RunId, UserId
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import UnkeyedOf
from service.jobs import jobs
from service.jobs.jobs import AT_ONCE, JobsOf
from service.queue.overview import JobRecord

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JsonRoute)

LAST_RUNS = 20
OPEN: tuple[JobState, ...] = ("queued", "running", "failed", "dead")

Named = Annotated[JobName, Path(description="What the job does")]


OfSystem = Annotated[
    bool, Query(description="Jobs of the whole service instead: `metrics` sees them, `operator` steers them")
]


async def _of(caller: CallerOf, system: OfSystem = False) -> JobsOf:
    return JobsOf(caller, system)


Whose = Annotated[JobsOf, Depends(_of)]


class JobProgress(ResponseModel):
    """How far a long job is."""

    done: int = Field(description="Rows done, from 0")
    total: int = Field(description="Rows in all, as counted at the beginning")
    per_s: float | None = Field(description="Rows a second since its first attempt began; null: not begun")
    eta_s: float | None = Field(description="Seconds left at that rate; null: not known")

    @classmethod
    def after(cls, progress: Mapping[str, Any], seconds: float | None) -> Self:
        done, total = int(progress["done"]), int(progress["total"])
        per_s = done / seconds if seconds else None
        eta_s = max(0, total - done) / per_s if per_s else None
        return cls(done=done, total=total, per_s=per_s, eta_s=eta_s)


class JobItem(ResponseModel):
    """A job, without the text that it works on."""

    id: Id = Field(description="UUID")
    name: str = Field(description="What it does", examples=["enrich"])
    state: JobState = Field(
        description="queued; running; failed: waits for another attempt; dead: waits for a person; done; cancelled"
    )
    reason: str | None = Field(description="Why the last attempt failed; null: it did not")
    attempts: int = Field(description="Begun so far, from 0")
    max_attempts: int = Field(description="After so many it is dead")
    age_s: float = Field(description="Seconds since it was made")
    progress: JobProgress | None = Field(description="Of a long one; null: it has none, or none yet")
    memory_id: Id | None = Field(description="UUID of the memory it is about; null: of none, or of several")
    conversation_id: Id | None = Field(description="UUID of the conversation it is about; null: of none")
    operation_id: Id | None = Field(description="UUID of the operation that it carries out; null: none")
    created_at: Time = Field(description="When it was made")
    due_at: Time = Field(description="When it may begin, or could")
    started_at: Time | None = Field(description="When its first attempt began; null: none has")
    finished_at: Time | None = Field(description="When it was done, dead or cancelled; null: it is not")

    @classmethod
    def describing(cls, found: JobRecord) -> Self:
        shown = JobProgress.after(found.progress, found.begun_s) if found.progress else None
        return cls.of(found, progress=shown, age_s=float(found.age_s))


class RetriedJobs(ResponseModel):
    """How many jobs are tried again."""

    retried: int = Field(description=f"Jobs that are due now, at most {AT_ONCE:,}: with so many there may be more")


class JobsPage(ResponseModel):
    """Newest first; send `next_cursor` back for the next page."""

    results: list[JobItem] = Field(description="At most `limit` jobs")
    next_cursor: NextCursor = None


class JobStateCount(ResponseModel):
    """Jobs of one name in one state."""

    state: JobState = Field(description="queued, running, failed or dead")
    jobs: int = Field(description="How many, from 1")
    oldest: Time = Field(description="When the oldest was made")


class JobRunItem(ResponseModel):
    """A run that the clock or a request has started."""

    id: Id = Field(description="UUID, the same as its job's")
    name: str = Field(description="What it does", examples=["cleanup"])
    reason: str = Field(description="schedule: by the clock; request: somebody asked for it")
    state: str = Field(description="queued, running, done, failed or cancelled")
    attempts: int = Field(description="Begun so far, from 0")
    counts: dict[str, int] | None = Field(description="What it did, by name of the count; null: nothing, or not yet")
    error: str | None = Field(description="Why the last attempt failed; null: it did not")
    created_at: Time = Field(description="When it was queued")
    started_at: Time | None = Field(description="When it began; null: not yet")
    finished_at: Time | None = Field(description="When it was over; null: not yet")


class JobDetails(ResponseModel):
    """All jobs of one name."""

    name: str = Field(description="What they do", examples=["cleanup"])
    interval_s: float | None = Field(description="Seconds between runs by the clock; null: the clock starts none")
    next_run: Time | None = Field(description="When the clock starts the next run; null: never")
    states: list[JobStateCount] = Field(description="How many are queued, running, failed or dead; none left out: 0")
    progress: JobProgress | None = Field(description="Of the newest that runs; null: none runs, or it has none")
    runs: list[JobRunItem] = Field(description=f"The last {LAST_RUNS} runs, newest first")


@router.get("", summary="Jobs that wait, run, or are dead", responses=errors.documented(400, 401, 403, 503))
async def list_jobs(
    caller: CallerOf,
    res: ResourcesOf,
    state: Annotated[
        list[JobState] | None,
        Query(max_length=len(get_args(JobState)), description="Repeatable; default queued, running, failed and dead"),
    ] = None,
    name: Annotated[JobName | None, Query(description="Only those that do this")] = None,
    system: OfSystem = False,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> JobsPage:
    """Needs the right `admin`; with `system` `metrics`. What is done or cancelled is shown where `state` names it, and
    kept for 7 days."""
    before = None if cursor is None else cursors.unpack(cursor, UUID)
    found = await jobs.list_jobs(JobsOf(caller, system), state or OPEN, res, name=name, before=before, limit=limit + 1)
    shown, last = cursors.cut(found, limit)
    more = cursors.pack(str(last.id)) if last else None
    return JobsPage(results=[JobItem.describing(each) for each in shown], next_cursor=more)


@router.get(
    "/{name}", summary="The jobs of one name, and their last runs", responses=errors.documented(400, 401, 403, 503)
)
async def get_job(name: Named, of: Whose, res: ResourcesOf) -> JobDetails:
    """Needs the right `admin`; with `system` `metrics`. Jobs that follow a write have no runs."""
    found = await jobs.describe(of, name, res, last_runs=LAST_RUNS)
    return JobDetails.of(
        found,
        name=name,
        states=[JobStateCount.of(each) for each in found.states],
        progress=next((JobItem.describing(each).progress for each in found.running), None),
        runs=[JobRunItem.of(each) for each in found.runs],
    )


@router.post("/{name}/run", summary="Run a job now", status_code=202, responses=errors.documented(400, 401, 403, 503))
async def run_job(
    name: Named,
    of: Whose,
    res: ResourcesOf,
    write: UnkeyedOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
) -> JobItem:
    """Ageing (`relevance`, `decay`, `flag_stale`, `forget`), `promote` and `patterns` of the workspace, or of what has
    every given id: needs the right `admin`. With `system` what the clock runs for the whole service: needs `operator`.
    One that is queued already is answered, and no second one made. The other jobs run because of what was written."""
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return JobItem.describing(await jobs.run(of, name, ids, res, write))


@router.post("/retry", summary="Try many jobs again now", responses=errors.documented(400, 401, 403, 503))
async def retry_jobs(
    of: Whose,
    res: ResourcesOf,
    write: UnkeyedOf,
    state: Annotated[
        list[Literal["dead", "failed", "cancelled"]] | None,
        Query(max_length=3, description="Repeatable; default dead. failed: what waits for another attempt"),
    ] = None,
    name: Annotated[JobName | None, Query(description="Only those that do this")] = None,
) -> RetriedJobs:
    """Each as `retry_job` does, without those whose operation is over. Needs the right `admin`; with `system`
    `operator`."""
    return RetriedJobs(retried=await jobs.retry_some(of, state or ["dead"], res, write, name=name))


@router.post("/{id}/retry", summary="Try a job again now", responses=errors.documented(400, 401, 403, 404, 409, 503))
async def retry_job(id: str, of: Whose, res: ResourcesOf, write: UnkeyedOf) -> JobItem:
    """One that is dead, cancelled, or waits; it gets at least three attempts more. 409 for one that runs or is done,
    and for one whose operation is over: send that request again. Needs the right `admin`; with `system` `operator`."""
    return JobItem.describing(await jobs.retry(of, uuid_of(id, jobs.missing), res, write))


@router.post("/{id}/cancel", summary="Cancel a job", responses=errors.documented(400, 401, 403, 404, 409, 503))
async def cancel_job(id: str, of: Whose, res: ResourcesOf, write: UnkeyedOf) -> JobItem:
    """One that waits never begins, one that runs is stopped within a third of its lease (20 s) between two of its
    transactions, a dead one is put away. Its operation has failed with the code `cancelled`. 409 for one that is done.
    Needs the right `admin`; with `system` `operator`."""
    return JobItem.describing(await jobs.cancel(of, uuid_of(id, jobs.missing), res, write))

"""Jobs over HTTP: what waits, runs or is dead, the last runs of each kind, and how to start, repeat or end one.

The jobs of a workspace are for its `admin`. Those of the whole service (clean-up, partitions) are in no workspace: the
right `metrics` shows them, as it shows the length of the queue, and `operator` steers them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self, get_args
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from service.domain.access import Caller, Right
from service.domain.audit import Operation
from service.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from service.domain.job import NOTHING, WORKSPACE_JOBS, JobName, JobState, Payload, SystemJobName, WorkspaceJobName
from service.domain.request import WriteContext
from service.domain.scope import NIL_WORKSPACE, Scope
from service.http import cursors, errors
from service.http.deps import AgentId, CallerOf, ResourcesOf, RunId, UserId, session_of
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.postgres.engine import Session
from service.queue import overview, schedule
from service.queue.overview import JobRecord
from service.queue.schedule import RunRecord
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=JsonRoute)

LAST_RUNS = 20
OPEN: tuple[JobState, ...] = ("queued", "running", "failed", "dead")
AT_ONCE = 1_000
"""Jobs that a request tries again."""

Named = Annotated[JobName, Path(description="What the job does")]
OfSystem = Annotated[
    bool, Query(description="Jobs of the whole service instead: `metrics` sees them, `operator` steers them")
]


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
    workspace_id = _seen(caller, system=system)
    before = None if cursor is None else cursors.unpack(cursor, UUID)
    async with res.db.read(workspace_id) as session:
        found = await overview.page(session, workspace_id, state or OPEN, name=name, before=before, limit=limit + 1)
    shown, last = cursors.cut(found, limit)
    more = cursors.pack(str(last.id)) if last else None
    return JobsPage(results=[JobItem.describing(each) for each in shown], next_cursor=more)


@router.get(
    "/{name}", summary="The jobs of one name, and their last runs", responses=errors.documented(400, 401, 403, 503)
)
async def get_job(name: Named, caller: CallerOf, res: ResourcesOf, system: OfSystem = False) -> JobDetails:
    """Needs the right `admin`; with `system` `metrics`. Jobs that follow a write have no runs."""
    workspace_id = _seen(caller, system=system)
    async with res.db.read(workspace_id) as session:
        states = await overview.counts(session, workspace_id, name)
        runs = await overview.runs(session, workspace_id, name, limit=LAST_RUNS)
        running = await overview.page(session, workspace_id, ["running"], name=name, before=None, limit=1)
        clock = await overview.interval(session, name) if system else _own_interval(name, runs, res)
    return JobDetails(
        name=name,
        interval_s=clock[0] if clock else None,
        next_run=clock[1] if clock else None,
        states=[JobStateCount.of(each) for each in states],
        progress=next((JobItem.describing(each).progress for each in running), None),
        runs=[JobRunItem.of(each) for each in runs],
    )


@router.post("/{name}/run", summary="Run a job now", status_code=202, responses=errors.documented(400, 401, 403, 503))
async def run_job(
    name: Named,
    caller: CallerOf,
    res: ResourcesOf,
    request: Request,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    system: OfSystem = False,
) -> JobItem:
    """Ageing (`relevance`, `decay`, `flag_stale`, `forget`), `promote` and `patterns` of the workspace, or of what has
    every given id: needs the right `admin`. With `system` what the clock runs for the whole service: needs `operator`.
    One that is queued already is answered, and no second one made. The other jobs run because of what was written."""
    workspace_id = _steered(caller, system=system)
    payload = _payload(name, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, system=system)
    async with res.db.begin(workspace_id) as session:
        job_id = await schedule.request(session, workspace_id, name, payload)
        found = await overview.get(session, workspace_id, job_id)
        await _audit(session, "run_job", [job_id], caller, res, request, system=system)
    res.wakeup.notify()
    assert found is not None, "it was just made"
    return JobItem.describing(found)


def _payload(name: JobName, ids: Mapping[str, str | None], *, system: bool) -> Payload:
    """Whom a run is for. Raises InvalidInput for a job that runs because of what was written, and for the ids of one
    that runs for the whole service."""
    allowed: tuple[str, ...] = get_args(SystemJobName if system else WorkspaceJobName)
    if name not in allowed:
        which = "with system=true" if system else "without system=true"
        raise InvalidInput(f"name: only these run by request {which}: {', '.join(allowed)}.", field="name")
    scope = {key: value for key, value in ids.items() if value is not None}
    if system and scope:
        field = next(iter(scope))
        raise InvalidInput(f"{field}: a job of the whole service runs for everybody.", field=field)
    return {"scope": scope} if scope else NOTHING


@router.post("/retry", summary="Try many jobs again now", responses=errors.documented(400, 401, 403, 503))
async def retry_jobs(
    caller: CallerOf,
    res: ResourcesOf,
    request: Request,
    state: Annotated[
        list[Literal["dead", "failed", "cancelled"]] | None,
        Query(max_length=3, description="Repeatable; default dead. failed: what waits for another attempt"),
    ] = None,
    name: Annotated[JobName | None, Query(description="Only those that do this")] = None,
    system: OfSystem = False,
) -> RetriedJobs:
    """Each as `retry_job` does, without those whose operation is over. Needs the right `admin`; with `system`
    `operator`."""
    workspace_id = _steered(caller, system=system)
    async with res.db.begin(workspace_id) as session:
        found = await overview.retry_some(session, workspace_id, state or ["dead"], name=name, limit=AT_ONCE)
        if found:
            await _audit(session, "retry_job", found, caller, res, request, system=system)
    res.wakeup.notify()
    return RetriedJobs(retried=len(found))


@router.post("/{id}/retry", summary="Try a job again now", responses=errors.documented(400, 401, 403, 404, 409, 503))
async def retry_job(id: str, caller: CallerOf, res: ResourcesOf, request: Request, system: OfSystem = False) -> JobItem:
    """One that is dead, cancelled, or waits; it gets at least three attempts more. 409 for one that runs or is done,
    and for one whose operation is over: send that request again. Needs the right `admin`; with `system` `operator`."""
    again, found = await _steer(overview.retry, "retry_job", id, caller, res, request, system=system)
    if not again and found.state in ("running", "done"):
        raise Conflict(f"The job is {found.state}: only one that waits, is dead or cancelled is retried.", field="id")
    if not again:
        raise Conflict("The operation of this job is over; send its request again.", field="id")
    res.wakeup.notify()
    return JobItem.describing(found)


@router.post("/{id}/cancel", summary="Cancel a job", responses=errors.documented(400, 401, 403, 404, 409, 503))
async def cancel_job(
    id: str, caller: CallerOf, res: ResourcesOf, request: Request, system: OfSystem = False
) -> JobItem:
    """One that waits never begins, one that runs is stopped within a third of its lease (20 s) between two of its
    transactions, a dead one is put away. Its operation has failed with the code `cancelled`. 409 for one that is done.
    Needs the right `admin`; with `system` `operator`."""
    _, found = await _steer(overview.cancel, "cancel_job", id, caller, res, request, system=system)
    if found.state == "done":
        raise Conflict("The job is done.", field="id")
    return JobItem.describing(found)


def _seen(caller: Caller, *, system: bool) -> UUID:
    """The workspace whose jobs are looked at; raises Forbidden."""
    return _workspace(caller, Right.METRICS if system else Right.ADMIN, system=system)


def _steered(caller: Caller, *, system: bool) -> UUID:
    return _workspace(caller, Right.OPERATOR if system else Right.ADMIN, system=system)


def _workspace(caller: Caller, right: Right, *, system: bool) -> UUID:
    if not caller.may(right):
        raise Forbidden(f"This key lacks the right {right}.")
    return NIL_WORKSPACE if system else caller.workspace_id


def _own_interval(name: JobName, runs: Sequence[RunRecord], res: Resources) -> tuple[float, datetime | None] | None:
    """Seconds between the runs of a job that each workspace has, and when the next is due; None for another job."""
    found = {str(each): of for each, of in WORKSPACE_JOBS.items()}.get(name)
    if found is None:
        return None
    setting, wanted_by = found
    rules = getattr(res.settings, setting)
    if wanted_by is not None and not getattr(rules, wanted_by):
        return None
    interval_s = 60 * float(getattr(rules, f"{name}_interval_min"))
    return interval_s, runs[0].created_at + timedelta(seconds=interval_s) if runs else None


Act = Callable[[Session, UUID, UUID], Awaitable[bool]]


async def _steer(
    act: Act, operation: Operation, id: str, caller: Caller, res: Resources, request: Request, *, system: bool
) -> tuple[bool, JobRecord]:
    """Whether the act changed the job, and the job as it is now."""
    workspace_id, job_id = _steered(caller, system=system), uuid_of(id, _missing)
    async with res.db.begin(workspace_id) as session:
        changed = await act(session, workspace_id, job_id)
        found = await overview.get(session, workspace_id, job_id)
        if found is None:
            raise _missing()
        if changed:
            await _audit(session, operation, [job_id], caller, res, request, system=system)
    return changed, found


async def _audit(
    session: Session,
    operation: Operation,
    ids: Sequence[UUID],
    caller: Caller,
    res: Resources,
    request: Request,
    *,
    system: bool,
) -> None:
    """Audits what was done in the workspace of who did it: in the same transaction, but for a job of the service, which
    is in no workspace."""
    context = WriteContext(request.state.request_id, caller.key_id, session_id=session_of(request))
    async with res.db.begin(caller.workspace_id) if system else nullcontext(session) as own:
        await append_audit(own, operation, Scope(caller.workspace_id), ids, context, res, kind="job")


def _missing() -> NotFound:
    return NotFound("There is no job with this id.", field="id")

"""Jobs that run with the settings of their workspace: those of each workspace, which a scheduled run in the nil
workspace starts where they are due, and those that carry out an operation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from service.access.statements.keys import workspace
from service.domain.errors import ServiceError
from service.domain.job import Counts, Job, Payload, WorkspaceJobName
from service.domain.request import Call
from service.domain.scope import NIL_WORKSPACE
from service.queue.statements import operations, queue
from service.queue.statements.operations import OperationRecord
from service.runtime.resources import Resources

BY_CLOCK: Payload = MappingProxyType({"by": "schedule"})


Work = Callable[[Job, Resources], Awaitable[Counts | None]]


def in_each(name: WorkspaceJobName, work: Work) -> Work:
    """A job that does `work` in a workspace, with its settings. A scheduled run in the nil workspace starts one in each
    workspace that is due."""

    async def run(job: Job, res: Resources) -> Counts | None:
        if job.workspace_id == NIL_WORKSPACE:
            return await start(name, res)
        return await work(job, await with_own_settings(job, res))

    return run


async def start(name: WorkspaceJobName, res: Resources) -> Counts:
    """Starts a run in each workspace in which it is due and switched on."""
    async with res.db.read(NIL_WORKSPACE) as session:
        due = await queue.list_due_workspaces(session, name, res.settings.jobs.intervals_min.of(name))
    for workspace_id in due:
        async with res.db.begin(workspace_id) as session:
            await queue.request_run(session, name, BY_CLOCK, reason="schedule")
    if due:
        res.wakeup.notify()
    return {"started": len(due)}


async def with_own_settings(job: Job, res: Resources) -> Resources:
    """Resources with the workspace's settings, such as its model budget and instructions."""
    async with res.db.without_wall().read(job.workspace_id) as session:  # they are the whole workspace's
        own = await workspace(session)
    return res.of_workspace(dict(own.settings))


async def run_operation(
    job: Job, res: Resources, work: Callable[[OperationRecord, Resources], Awaitable[Mapping[str, Any]]]
) -> Mapping[str, Any] | None:
    """Carries out the operation of a job, and stores the result of `work` in it; None if it had ended before. `work`
    may run several times. The last failed attempt fails the operation."""
    workspace_id, operation_id = job.workspace_id, UUID(str(job.payload["operation_id"]))
    async with res.db.begin(workspace_id) as session:
        operation = await operations.begin(session, operation_id)
    if operation is None:
        return None
    try:
        result = await work(operation, await with_own_settings(job, res))
    except ServiceError as exc:
        if not exc.retryable or job.is_last_attempt:
            error = {"code": exc.code, "detail": exc.detail, "field": exc.field}
            async with res.db.begin(workspace_id) as session:
                await operations.finish(session, operation_id, error=error)
        raise
    async with res.db.begin(workspace_id) as session:
        await operations.finish(session, operation_id, result=result)
    return result


def call_of(job: Job) -> Call:
    """The call that the job counts as in the audit log."""
    return Call(f"job:{job.id}", may_share=True)

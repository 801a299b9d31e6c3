"""Jobs that run for each workspace: a scheduled run in the nil workspace starts one in each that is due."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any

from service.access.statements.keys import workspace
from service.domain.ageing import AgeingScope
from service.domain.job import Counts, Job, Payload, WorkspaceJobName
from service.domain.request import WriteContext
from service.domain.scope import NIL_WORKSPACE
from service.queue import schedule
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
        due = await schedule.list_unaged(session, name, res.settings.jobs.intervals_min.of(name))
    for workspace_id in due:
        async with res.db.begin(workspace_id) as session:
            await schedule.request(session, workspace_id, name, BY_CLOCK, reason="schedule")
    if due:
        res.wakeup.notify()
    return {"started": len(due)}


async def with_own_settings(job: Job, res: Resources) -> Resources:
    """Resources with the workspace's settings, such as its model budget and instructions."""
    async with res.db.without_wall().read(job.workspace_id) as session:  # they are the whole workspace's
        own = await workspace(session, job.workspace_id)
    return res.of_workspace(dict(own.settings))


def scope_of(job: Job) -> AgeingScope:
    """The scope of a run."""
    ids: Any = job.payload.get("scope", {})
    return AgeingScope(**ids)


def context_of(job: Job) -> WriteContext:
    """The writer, for the audit log."""
    return WriteContext(f"job:{job.id}", may_share=True)

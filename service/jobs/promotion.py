"""Promotion by the clock: what was often used and told in several conversations of a project becomes known everywhere.

Each memory is promoted by the verb of the route, in a transaction of its own, which looks at its figures again. It is
noted with the memory, so a run that dies, is repeated or meets another one promotes nothing twice.
"""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from service.db.jobs import queue
from service.db.memories import promotable
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.jobs import workspaces
from service.memory.promote import promote_if_worthy
from service.resources import Resources

FIRST = UUID(int=0)
AT_ONCE = 100


async def promote(job: Job, res: Resources) -> Counts:
    """Promotes what meets the thresholds of its workspace to `_global`."""
    if job.workspace_id == NIL_WORKSPACE:
        return await workspaces.start("promote", res)
    own = await workspaces.with_own_settings(job, res)
    ids, context = asdict(workspaces.scope_of(job)), workspaces.context_of(job)
    seen = promoted = 0
    last: UUID | None = FIRST
    while last is not None:
        async with own.db.read(job.workspace_id) as session:
            found = await promotable.worthy(
                session, job.workspace_id, own.settings.promoting, ids, after=last, now=own.clock(), batch=AT_ONCE
            )
        for memory_id in found:
            promoted += await promote_if_worthy(job.workspace_id, memory_id, own, context) is not None
        seen += len(found)
        async with own.db.begin(job.workspace_id) as session:
            await queue.advance(session, job, seen, seen)
        last = found[-1] if len(found) == AT_ONCE else None
    return {"seen": seen, "promoted": promoted}

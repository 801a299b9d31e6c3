"""Scheduled promotion: memories of a project that were often used and said in several conversations become known
everywhere.

Each is promoted by the verb of the route, in a separate transaction that checks its figures again and marks the memory,
so interrupted, repeated or concurrent runs promote nothing twice.
"""

from __future__ import annotations

from uuid import UUID

from service.access import workspace_jobs
from service.domain.job import Counts, Job
from service.domain.request import Call
from service.domain.scope import NIL_ID
from service.memories.promote import archive_stale_copy, promote_if_worthy
from service.memories.statements import promotable
from service.queue.statements import queue
from service.runtime.resources import Resources

BATCH = 100


async def promote(job: Job, res: Resources) -> Counts:
    """Promotes memories that meet the workspace's thresholds to `_global`."""
    call = workspace_jobs.call_of(job)
    archived = await _archive_stale_copies(job.workspace_id, res, call)
    seen = promoted = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.read(job.workspace_id) as session:
            worthy_ids = await promotable.list_worthy(
                session, res.settings.jobs.promoting, after=last, now=res.clock(), batch=BATCH
            )
        for memory_id in worthy_ids:
            promoted += await promote_if_worthy(job.workspace_id, memory_id, res, call) is not None
        seen += len(worthy_ids)
        async with res.db.begin(job.workspace_id) as session:
            await queue.advance(session, job, seen, seen)
        last = worthy_ids[-1] if len(worthy_ids) == BATCH else None
    return {"seen": seen, "promoted": promoted, "archived": archived}


async def _archive_stale_copies(workspace_id: UUID, res: Resources, call: Call) -> int:
    """Archives copies whose originals have changed or ended since; returns how many."""
    archived = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.read(workspace_id) as session:
            ids = await promotable.list_stale_copies(session, after=last, now=res.clock(), batch=BATCH)
        for copy_id in ids:
            archived += await archive_stale_copy(workspace_id, copy_id, res, call)
        last = ids[-1] if len(ids) == BATCH else None
    return archived

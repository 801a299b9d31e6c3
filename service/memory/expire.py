"""What has outlived its time: by its own expires_at, or by the retention of its workspace (D4)."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from uuid import UUID

from service.db.erasure import deletion
from service.db.erasure.deletion import BATCH
from service.db.jobs import schedule
from service.db.tenants.keys import workspace
from service.domain.request import WriteContext
from service.domain.scope import NIL_WORKSPACE, Scope
from service.memory.transactions import note
from service.resources import Resources


async def remove_outlived(res: Resources) -> int:
    """How many memories went, of all workspaces, each with a DELETE in its history; batches until none is left."""
    removed = 0
    while True:
        async with res.db.read(NIL_WORKSPACE) as session:
            found = await schedule.outlived(
                session, res.clock(), retention_days=res.settings.memory_retention_days, limit=BATCH
            )
        gone = 0
        for workspace_id, group in groupby(sorted(found), key=itemgetter(0)):
            gone += await _remove(workspace_id, [memory_id for _, memory_id in group], res)
        removed += gone
        if not gone:  # nothing left, or others were faster
            return removed


async def _remove(workspace_id: UUID, ids: list[UUID], res: Resources) -> int:
    async with res.db.begin(workspace_id) as session:
        own = res.of_workspace(dict((await workspace(session, workspace_id)).settings))
        gone = await deletion.delete_memories(session, workspace_id, ids, generation=res.generation)
        if gone:
            await note(
                session, "delete", Scope(workspace_id), gone, WriteContext("job:cleanup"), own, reason="outlived"
            )
    return len(gone)

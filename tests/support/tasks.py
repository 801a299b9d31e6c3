"""The worker's part of a test, without a worker."""

from __future__ import annotations

import json
from uuid import UUID

from service.domain.access import Wall
from service.domain.job import Job
from service.runtime.resources import Resources
from service.worker.loop import carry_out
from service.worker.registry import TASKS
from tests.conftest import Tenant
from tests.support.application import Tables

WAITING = "SELECT id, memory_id, payload, wall FROM job WHERE workspace_id = $1 AND kind = $2 AND state = 'ready'"
DONE = "UPDATE job SET state = 'done' WHERE workspace_id = $1 AND id = $2"


async def to_consolidate(tables: Tables, tenant: Tenant) -> list[Job]:
    """The conversations of a workspace that a model reads later."""
    sql = "SELECT id, payload FROM job WHERE workspace_id = $1 AND kind = 'consolidate'"
    return [
        Job(tenant.workspace_id, row["id"], "consolidate", None, json.loads(row["payload"]), 1, 14, "test")
        for row in await tables.fetch(sql, tenant.workspace_id)
    ]


async def work(resources: Resources, tables: Tables, workspace_id: UUID, kind: str) -> int:
    """Runs the waiting jobs of a kind, in their last attempt; returns how many there were."""
    rows = await tables.fetch(WAITING, workspace_id, kind)
    for row in rows:
        wall = Wall.of(json.loads(row["wall"]) if row["wall"] else None)
        payload = json.loads(row["payload"])
        job = Job(workspace_id, row["id"], kind, row["memory_id"], payload, 1, 1, "test", wall=wall)
        await carry_out(TASKS[kind], (job,), resources)  # type: ignore[index]
        await tables.fetch(DONE, workspace_id, row["id"])
    return len(rows)

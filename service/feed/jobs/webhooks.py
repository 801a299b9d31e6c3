"""Deliveries of webhooks."""

from __future__ import annotations

from uuid import UUID

from service.domain.job import Counts, Job
from service.feed.webhooks import deliver
from service.runtime.resources import Resources


async def run(job: Job, res: Resources) -> Counts | None:
    """Sends what waits for one webhook. Killed between an answer and its note, the delivery is sent again: receivers
    know it by its id."""
    await deliver(job.workspace_id, UUID(str(job.payload["webhook_id"])), res)
    return None

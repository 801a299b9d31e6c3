"""Deliveries of webhooks."""

from __future__ import annotations

from uuid import UUID

from service.domain.job import Counts, Job
from service.memory.webhooks import deliver
from service.resources import Resources


async def run(job: Job, res: Resources) -> Counts | None:
    """Sends one delivery; one that was delivered before is not sent again. Killed between the two it is: receivers know
    it by its id."""
    await deliver(job.workspace_id, UUID(str(job.payload["delivery_id"])), res, is_last=job.is_last_attempt)
    return None

"""What an erasure removed is still in the data files: which tables does VACUUM pass over?"""

from __future__ import annotations

from service.db.jobs import schedule
from service.domain.job import Counts, Job
from service.resources import Resources


async def run(job: Job, res: Resources) -> Counts:
    """Tables that were passed over: every one that VACUUM has not passed since the erasure. None where the worker may
    not, up to Postgres 16. Safe to run twice: what is done is not done again."""
    async with res.db.read(job.workspace_id) as session:
        tables = await schedule.unvacuumed(session, job.workspace_id, job.id)
    for table in tables:
        await res.db.vacuum(table)
    return {"tables": len(tables)}

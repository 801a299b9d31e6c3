"""What nobody needs any more: expired answers and caches, finished jobs, memories that outlived their time."""

from __future__ import annotations

from collections import Counter

from service.db.jobs import schedule
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.memory import expire
from service.resources import Resources

BATCH = 5_000  # rows of one table per transaction: some 50 ms
EMBEDDING_DAYS = 30  # a cached vector only saves time; texts that come again come within days


async def run(_job: Job, res: Resources) -> Counts:
    """Rows removed by table. Small transactions until nothing is left, so a crash loses at most one of them."""
    total: Counter[str] = Counter(memory=await expire.remove_outlived(res))
    while True:
        async with res.db.begin(NIL_WORKSPACE) as session:
            removed = await schedule.clean_up(
                session,
                res.clock(),
                job_days=res.settings.job_retention_days,
                embedding_days=EMBEDDING_DAYS,
                batch=BATCH,
            )
        total.update(removed)
        if max(removed.values()) < BATCH:
            return {name: count for name, count in total.items() if count}

"""Are there partitions for the days to come, and are those beyond retention gone?"""

from __future__ import annotations

from datetime import timedelta

from service.db.jobs import schedule
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.resources import Resources

AHEAD = timedelta(days=7)  # the job runs daily: a week without a worker still finds its partitions


async def run(_job: Job, res: Resources) -> Counts:
    """Partitions made and dropped, of every partitioned table (R14.09). Each step is its own short transaction."""
    now = res.clock()
    oldest = {
        "audit_log": now - timedelta(days=res.settings.audit_retention_days),
        "memory_history": now - timedelta(days=res.settings.history_retention_days),
        "tool_invocation": now - timedelta(days=res.settings.invocation_retention_days),
        "conversation_log": now - timedelta(days=res.settings.history_retention_days),
    }
    async with res.db.begin(NIL_WORKSPACE) as session:
        made = await schedule.ensure_partitions(session, now + AHEAD)
    dropped = 0
    for parent, older_than in oldest.items():
        async with res.db.begin(NIL_WORKSPACE) as session:
            dropped += await schedule.drop_partitions(session, parent, older_than)
    return {"made": made, "dropped": dropped}

"""Which notes of working memory are over? Reads do not see them any more; here they leave the table (R11.07)."""

from __future__ import annotations

from service.db.cognition import working
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.resources import Resources

BATCH = 5_000  # rows per transaction: some 50 ms


async def run(_job: Job, res: Resources) -> Counts:
    """How many went, of all workspaces."""
    gone = 0
    while True:
        async with res.db.begin(NIL_WORKSPACE) as session:
            removed = await working.sweep(session, res.clock(), batch=BATCH)
        gone += removed
        if removed < BATCH:
            return {"working_item": gone}

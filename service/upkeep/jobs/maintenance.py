"""Upkeep of the whole database: scheduled tasks, and VACUUM after an erasure.

A task for all workspaces runs in the nil workspace, where only a few database functions see the rows of all tenants; it
changes the rows of a workspace in a transaction of that workspace.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from service.domain import sizes
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.memories.lifecycle import remove_outlived
from service.runtime.resources import Resources
from service.search.statements import term_statistics
from service.upkeep.statements import maintenance
from service.working.statements import working

BATCH = 5_000  # rows of one table per transaction: some 50 ms
INVOCATIONS_KEPT = timedelta(days=365)  # the log of tool calls, and so their statistics
JOB_DAYS = 7  # a finished job is of interest to whoever looks for what went wrong last week
EMBEDDING_DAYS = 30  # a cached vector only saves time; texts that come again come within days
PARTITIONS_AHEAD = timedelta(days=7)  # the job runs daily: a week without a worker still finds its partitions
TERM_COUNTS_GOOD_FOR_S = 3_540.0
"""An hour, less a minute because a run may start a little early."""


async def clean_up(_job: Job, res: Resources) -> Counts:
    """Removes expired answers and caches, finished jobs, and expired memories; returns the rows by table.

    Works in small transactions until nothing is left, so a crash loses at most one of them."""
    total: Counter[str] = Counter(memory=await remove_outlived(res))
    while True:
        async with res.db.begin(NIL_WORKSPACE) as session:
            removed = await maintenance.clean_up(
                session,
                res.clock(),
                job_days=JOB_DAYS,
                embedding_days=EMBEDDING_DAYS,
                history_days=res.settings.history.retention_days,
                batch=BATCH,
            )
        total.update(removed)
        if max(removed.values()) < BATCH:
            return {name: count for name, count in total.items() if count}


async def sweep_working_memory(_job: Job, res: Resources) -> Counts:
    """Removes expired notes of working memory in all workspaces, which reads already ignore."""
    deleted = 0
    while True:
        async with res.db.begin(NIL_WORKSPACE) as session:
            removed = await working.sweep(session, res.clock(), batch=BATCH)
        deleted += removed
        if removed < BATCH:
            return {"working_item": deleted}


async def keep_partitions(_job: Job, res: Resources) -> Counts:
    """Creates partitions for the coming days and drops those past retention, each in a short transaction."""
    now = res.clock()
    oldest = {
        "audit_log": now - timedelta(days=res.settings.history.audit_retention_days),
        "memory_history": now - timedelta(days=res.settings.history.retention_days),
        "tool_invocation": now - INVOCATIONS_KEPT,
        "conversation_log": now - timedelta(days=res.settings.history.retention_days),
    }
    async with res.db.begin(NIL_WORKSPACE) as session:
        made = await maintenance.ensure_partitions(session, now + PARTITIONS_AHEAD)
    dropped = 0
    for parent, older_than in oldest.items():
        async with res.db.begin(NIL_WORKSPACE) as session:
            dropped += await maintenance.drop_partitions(session, parent, older_than)
    return {"made": made, "dropped": dropped}


async def count_terms(_job: Job, res: Resources) -> Counts | None:
    """Counts the texts in which each word occurs, for searches of large workspaces.

    Workspaces that have grown large since the last run are counted at once, the others when their counts are an hour
    old. Counting begins at half the size at which counts are used, so that they exist by then: without them all words
    weigh the same. One transaction per workspace, some seconds for a million memories.
    """
    minimum = max(1, sizes.EXACT_ROWS // 2)
    async with res.db.read(NIL_WORKSPACE) as session:
        large = await term_statistics.large_workspaces(session, minimum)
    counted = terms = 0
    for workspace_id in large:
        async with res.db.begin(workspace_id) as session:
            if not await term_statistics.counted_within(session, TERM_COUNTS_GOOD_FOR_S):
                counted, terms = counted + 1, terms + await term_statistics.count(session)
    if large and not counted:
        return None
    async with res.db.begin(NIL_WORKSPACE) as session:
        common = await term_statistics.count_common(session)
    return {"workspaces": counted, "terms": terms, "common": common}


async def vacuum(job: Job, res: Resources) -> Counts:
    """Removes erased rows from the data files: VACUUM of every table that was not vacuumed since. Does nothing if the
    worker has no right to, as up to Postgres 16. Safe to run twice."""
    async with res.db.read(job.workspace_id) as session:
        tables = await maintenance.find_unvacuumed(session, job.id)
    for table in tables:
        await res.db.vacuum(table)
    return {"tables": len(tables)}

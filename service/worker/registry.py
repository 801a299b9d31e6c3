"""The table of tasks: for each kind of job its function, its interval if it recurs, and its time-out.

A task runs outside the claiming transaction and opens its own; it is safe to run twice. It may return counts, which are
stored with the job. Every name of `domain.job.JobName` has a line here, which a test checks. docs/adding.md shows
how to add one.

Every worker looks for recurring jobs that are due; the one that locks the row in `schedule` starts the run, so each is
started once however many workers there are. The queue then runs it like any other job, with retries and a lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from service.access import workspace_jobs
from service.cognition.jobs import patterns
from service.domain.job import SHORTEST_MIN, Counts, Job, JobName, WorkspaceJobName
from service.domain.scope import NIL_WORKSPACE
from service.erasure import forget_scope
from service.feed import webhooks
from service.intake import deferred
from service.memories.jobs import enrich
from service.postgres.engine import Database
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.upkeep.jobs import ageing, embed, maintenance, reembed

Run = Callable[[Job, Resources], Awaitable[Counts | None]]
RunMany = Callable[[Sequence[Job], Resources], Awaitable[Counts | None]]
MINUTE_S, HOUR_S = 60.0, 3_600.0
SHORTEST_S = SHORTEST_MIN * MINUTE_S
"""The interval at which jobs look for workspaces in which they are due."""

EMBED_BATCH = 20
"""Late vectors made in one call: a third of a second of the local model."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of a job, and how it runs. With `interval_s` it recurs, with `at_start` whenever a worker starts too."""

    run: Run
    interval_s: float | None = None
    at_start: bool = False

    timeout_s: float = 300.0
    """A longer run is cancelled and counts as failed."""

    together: RunMany | None = None
    """Runs several first attempts in one call; a retry goes to `run`, so that one bad job does not fail the others."""

    max_batch: int | None = None
    """The most jobs in one call of `together`; None: EMBED_BATCH."""

    retry_alone: bool = False
    """After a batch failed, each of its jobs runs alone in the same attempt, else after its pause."""

    at_most_half: bool = False
    """Uses at most half of a worker's slots, because it waits for other servers."""

    derives: bool = False
    """Makes data of a row, such as its vector, whoever wrote it. Other tasks work within the wall of a request."""


def _in_each(name: WorkspaceJobName, work: workspace_jobs.Work) -> Task:
    return Task(workspace_jobs.in_each(name, work), interval_s=SHORTEST_S, timeout_s=HOUR_S)


TASKS: Mapping[JobName, Task] = MappingProxyType(
    {
        "embed": Task(embed.run, interval_s=5 * MINUTE_S, together=embed.run_together, derives=True),
        "enrich": Task(
            enrich.run, together=enrich.run_together, max_batch=enrich.MAX_BATCH, retry_alone=True, derives=True
        ),
        "ingest": Task(deferred.ingest),
        "consolidate": Task(deferred.consolidate, interval_s=SHORTEST_S),
        "forget_scope": Task(forget_scope.run, timeout_s=HOUR_S),
        "count_terms": Task(maintenance.count_terms, interval_s=5 * MINUTE_S, at_start=True, timeout_s=HOUR_S),
        "audit_partitions": Task(maintenance.keep_partitions, interval_s=24 * HOUR_S, at_start=True),
        "cleanup": Task(maintenance.clean_up, interval_s=24 * HOUR_S),
        "sweep_working": Task(maintenance.sweep_working_memory, interval_s=5 * MINUTE_S),
        "vacuum": Task(maintenance.vacuum, timeout_s=HOUR_S),
        "relevance": _in_each("relevance", ageing.relevance),
        "decay": _in_each("decay", ageing.decay),
        "flag_stale": _in_each("flag_stale", ageing.flag_stale),
        "forget": _in_each("forget", ageing.archive),
        "patterns": _in_each("patterns", patterns.patterns),
        "promote": _in_each("promote", ageing.promote),
        "reembed": Task(reembed.run, interval_s=24 * HOUR_S, timeout_s=24 * HOUR_S),
        "deliver_webhook": Task(webhooks.deliver, timeout_s=120.0, at_most_half=True),
    }
)


TICK_S = 10.0
"""Intervals are minutes, so looking every ten seconds is on time."""


class Timetable:
    """The recurring ones among `tasks`."""

    def __init__(self, db: Database, tasks: Mapping[str, Task]) -> None:
        self._db = db
        self._intervals_s = {name: task.interval_s for name, task in tasks.items() if task.interval_s is not None}
        self._at_start = [name for name, task in tasks.items() if task.at_start]
        self._registered = False

    async def start_due(self) -> list[str]:
        """Queues a run of everything that is due; returns the names. The first look includes `at_start`."""
        if not self._intervals_s:
            return []
        async with self._db.begin(NIL_WORKSPACE) as session:
            if not self._registered:
                await queue.register_recurring(session, self._intervals_s)
                await queue.make_recurring_due(session, self._at_start)
            started = await queue.start_due_runs(session, list(self._intervals_s))
        self._registered = True
        return started

"""Starts of recurring jobs.

Every worker looks; the one that locks the row in `schedule` starts the run, so each is started once however many
workers there are. The queue then runs it like any other job, with retries and a lease.
"""

from __future__ import annotations

from collections.abc import Mapping

from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.queue.statements import schedule
from service.worker.registry import Task

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
                await schedule.register(session, self._intervals_s)
                await schedule.make_due(session, self._at_start)
            started = await schedule.start_due(session, list(self._intervals_s))
        self._registered = True
        return started

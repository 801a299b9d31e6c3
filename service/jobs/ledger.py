"""Which jobs does this worker hold, and has the queue been told how they ended?

Endings are written in batches: while one statement is under way the next ones collect. When the database is away they
wait; what could not be written before the lease ran out is run again by whoever claims it, and our late word changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from uuid import UUID

from service.db.engine import Database
from service.db.jobs import queue
from service.domain.job import Ending, Job
from service.domain.scope import NIL_WORKSPACE

BATCH = 500
PAUSE_S = 0.5
"""Between two tries to write while the database is away."""

log = logging.getLogger(__name__)
Key = tuple[UUID, int]


class Ledger:
    """The jobs one worker holds, from their claim until the queue knows how they ended."""

    def __init__(self, db: Database, worker: str) -> None:
        self._db = db
        self._worker = worker
        self._held: dict[Key, Job] = {}
        self._endings: list[Ending] = []
        self._news = asyncio.Event()
        self._one_writer = asyncio.Lock()

    def take(self, jobs: Iterable[Job]) -> None:
        self._held |= {_key(job): job for job in jobs}

    def end(self, ending: Ending) -> None:
        """Notes how an attempt ended; written soon after."""
        self._held.pop(_key(ending.job), None)
        self._endings.append(ending)
        self._news.set()

    async def write_endings(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.flush_all()
            except Exception as exc:  # Postgres is away, or a bug: neither may silence the worker
                log.warning("endings of %d jobs wait for the database: %s", len(self._endings), type(exc).__name__)
                self._news.set()
                await asyncio.sleep(PAUSE_S)

    async def flush_all(self) -> None:
        """Writes what is noted by now; raises when the database is away, and keeps what is unwritten."""
        while self._endings:
            await self._flush()

    async def _flush(self) -> None:
        async with self._one_writer:
            batch = self._endings[:BATCH]
            if not batch:
                return
            async with self._db.begin(NIL_WORKSPACE, by_key=True) as session:
                settled = await queue.finish(session, batch)
            del self._endings[: len(batch)]
        if len(settled) < len(batch):
            log.warning("%d jobs ended after their lease was lost", len(batch) - len(settled))

    async def extend(self, lease_s: float) -> list[Job]:
        """Extends every lease; returns the jobs that are not ours any more and forgets them."""
        held = sorted(self._held.values(), key=_key)
        if not held:
            return []
        async with self._one_writer, self._db.begin(NIL_WORKSPACE) as session:
            ours = await queue.extend(session, self._worker, held, lease_s)
        lost = [job for job in held if _key(job) not in ours and self._held.get(_key(job)) is job]
        for job in lost:
            del self._held[_key(job)]
        return lost


def _key(job: Job) -> Key:
    return job.id, job.attempts

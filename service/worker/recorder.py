"""Records how the attempts of a worker's jobs ended.

Endings are written in batches: while one statement is under way the next ones collect. While the database is
unavailable they wait. A job whose ending could not be written before its lease ran out is run again by the worker that
claims it then, and a late ending changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from uuid import UUID

from service.domain.errors import ServiceError
from service.domain.job import Ending, Job
from service.domain.scope import NIL_WORKSPACE
from service.kit import faults
from service.postgres.engine import Database
from service.queue import queue

BATCH = 500
PAUSE_S = 0.5
"""Between two tries to write while the database is unavailable."""

MAX_BACKOFF_S = 600.0  # the longest wait before another attempt
MAX_ASKED_S = 3_600.0  # the longest that an error may ask for

log = logging.getLogger(__name__)
Key = tuple[UUID, int]


class JobRecorder:
    """The jobs one worker holds, from their claim until the queue knows how they ended."""

    def __init__(self, db: Database, worker: str) -> None:
        self._db = db
        self._worker = worker
        self._held: dict[Key, Job] = {}
        self._endings: list[Ending] = []
        self._pending = asyncio.Event()
        self._one_writer = asyncio.Lock()

    def take(self, jobs: Iterable[Job]) -> None:
        self._held |= {_key(job): job for job in jobs}

    def end(self, ending: Ending) -> None:
        """Takes how an attempt ended; written soon after."""
        self._held.pop(_key(ending.job), None)
        self._endings.append(ending)
        self._pending.set()

    async def write_endings(self) -> None:
        """Runs until cancelled."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            try:
                await self.flush_all()
            except Exception as exc:  # Postgres is unavailable, or a bug: the recorder must go on
                log.warning("endings of %d jobs wait for the database: %s", len(self._endings), type(exc).__name__)
                self._pending.set()
                await asyncio.sleep(PAUSE_S)

    async def flush_all(self) -> None:
        """Writes what is noted by now; raises when the database is unavailable, and keeps what is unwritten."""
        while self._endings:
            await self._flush()

    async def _flush(self) -> None:
        async with self._one_writer:
            batch = self._endings[:BATCH]
            if not batch:
                return
            async with self._db.begin(NIL_WORKSPACE, generic_plans=True) as session:
                written = await queue.finish(session, batch)
            del self._endings[: len(batch)]
        if len(written) < len(batch):
            log.warning("%d jobs ended after their lease was lost", len(batch) - len(written))

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


def ending_of_failure(job: Job, error: Exception, *, alone: bool, backoff_s: float) -> Ending:
    """Tried again after `backoff_s` doubled with each attempt, or dead: after the last one, or when none can help.

    Of an error only `retryable`, `pauses` and `retry_after_s` are read. One that does not say is retried, one that
    pauses costs no attempt, and the wait is as long as it asks for at least. A job that failed in a batch (`alone` is
    false) is tried alone first: which one of them was at fault is not known.
    """
    if getattr(error, "pauses", False):
        wait_s = getattr(error, "retry_after_s", None) or backoff_s
        return Ending(job, "ready", delay_s=wait_s, error=describe(error), counted=False)
    hopeless = alone and not getattr(error, "retryable", True)
    if hopeless or job.is_last_attempt:
        return Ending(job, "dead", error=describe(error))
    asked_s = min(MAX_ASKED_S, getattr(error, "retry_after_s", None) or 0.0)
    delay_s = max(asked_s, min(MAX_BACKOFF_S, backoff_s * 2 ** (job.attempts - 1)))
    return Ending(job, "ready", delay_s=delay_s, error=describe(error))


def describe(error: BaseException) -> str:
    """Our own errors in their words, of others only class and place, because their message may quote a memory."""
    if isinstance(error, ServiceError):
        return f"{error.code}: {error.detail}"
    state = faults.details(error).get("sqlstate")
    return f"{faults.classes(error)}{f' ({state})' if state else ''} at {faults.place(error)}"

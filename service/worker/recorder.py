"""Records how the attempts of a worker's jobs ended.

Endings are written in batches: they collect while a statement is in progress, and wait while the database is
unavailable. If an ending cannot be written before the lease ends, another worker claims and runs the job again, and the
late ending changes nothing.
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
from service.queue.statements import queue

BATCH = 500
PAUSE_S = 0.5
"""The pause between attempts to write while the database is unavailable."""

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
        """Notes how an attempt ended; it is written soon after."""
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
        """Writes all noted endings; raises if the database is unavailable, and keeps the unwritten ones."""
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
        """Extends every lease; forgets and returns the jobs that are no longer ours."""
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
    """The job is retried after `backoff_s`, doubled with each attempt, or dead after the last one, or if a retry cannot
    help.

    Only `retryable`, `pauses` and `retry_after_s` of an error are read. By default it is retried; one that pauses costs
    no attempt; the wait is at least as long as it asks for. A job that failed in a batch (`alone` is false) is first
    retried alone, because it is not known which one was at fault.
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
    """The message of our own errors; only class and place of others, whose message may quote a memory."""
    if isinstance(error, ServiceError):
        return f"{error.code}: {error.detail}"
    state = faults.details(error).get("sqlstate")
    return f"{faults.classes(error)}{f' ({state})' if state else ''} at {faults.locate(error)}"

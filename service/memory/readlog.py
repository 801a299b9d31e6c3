"""Who read what? Noted at once, written a little later, in batches, beside the requests (R13.07).

A read never waits for its entry and never fails because of it: the buffer is bounded, the oldest entries give way when
the database stays away, and how many did is logged.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from service.db import audit
from service.db.audit import Entry
from service.db.engine import Database
from service.errors import ServiceError

log = structlog.get_logger(__name__)

CAPACITY = 10_000  # entries of about 1 kB
BATCH = 500
PAUSE_S = 0.5  # between two writes
FAREWELL_S = 5.0  # for the rest, at shutdown


class ReadLog:
    """Entries on their way to the audit log."""

    def __init__(self, database: Database, *, capacity: int = CAPACITY, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._pause_s = pause_s
        self._waiting: deque[Entry] = deque(maxlen=capacity)
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()  # who flushes before an erasure also waits for what is under way
        self.dropped = 0

    def add(self, entry: Entry) -> None:
        """Takes an entry; never waits. The oldest one goes when there are too many."""
        if len(self._waiting) == self._waiting.maxlen:
            self.dropped += 1
        self._waiting.append(entry)
        self._news.set()

    async def flush(self) -> None:
        """Writes all that waits, a transaction per workspace and batch. Raises ServiceError and keeps the batch when
        the database is away."""
        async with self._writing:
            await self._write()

    async def _write(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            while batch:
                workspace_id = batch[0].scope.workspace_id
                own = [entry for entry in batch if entry.scope.workspace_id == workspace_id]
                try:
                    async with self._database.begin(workspace_id) as session:
                        await audit.append(session, own)
                except BaseException:
                    self._put_back(batch)
                    raise
                batch = [entry for entry in batch if entry.scope.workspace_id != workspace_id]

    def _put_back(self, batch: list[Entry]) -> None:
        room = (self._waiting.maxlen or 0) - len(self._waiting)
        self.dropped += max(0, len(batch) - room)
        self._waiting.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(self._pause_s)  # more may come: one transaction for all
            self._news.clear()
            try:
                await self.flush()
            except ServiceError as exc:
                self._news.set()
                log.warning("read_log_waits", code=exc.code, waiting=len(self._waiting), dropped=self.dropped)
            except Exception as exc:  # a bug here must not end the log, nor repeat for ever with the same entries
                log.error("read_log_failed", kind=type(exc).__name__, lost=len(self._waiting))
                self._waiting.clear()


@asynccontextmanager
async def open_read_log(database: Database) -> AsyncIterator[ReadLog]:
    """A log that is written in the background, and to its end when the block is left."""
    found = ReadLog(database)
    writing = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        try:
            await asyncio.wait_for(found.flush(), FAREWELL_S)
        except (ServiceError, TimeoutError):
            log.warning("read_log_cut_short", dropped=found.dropped)

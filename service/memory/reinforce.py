"""How do reads leave their mark on what they found? (R6.20, R7.24)

Counted in this process at once, written a little later in batches: a search never waits for it and never fails by it.
Uses of the same memory add up before they are written, so a memory that is read a thousand times is one update. What
is counted and not yet written is lost with the process; it is a habit, not a fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import structlog

from service.db import uses
from service.db.engine import Database
from service.db.uses import Use
from service.errors import ServiceError

log = structlog.get_logger(__name__)

CAPACITY = 50_000  # memories and entities with uses to be written; more are not counted
BATCH = 500
PAUSE_S = 1.0  # between two writes
FAREWELL_S = 5.0  # for the rest, at shutdown

Key = tuple[UUID, str, UUID]
"""Workspace, "memory" or "entity", and its id."""


class Reinforcement:
    """Uses on their way to the counters."""

    def __init__(self, database: Database, *, capacity: int = CAPACITY, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._capacity, self._pause_s = capacity, pause_s
        self._waiting: dict[Key, Use] = {}
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()
        self.dropped = 0

    def add(self, workspace_id: UUID, memories: Iterable[UUID], at: datetime, *, entities: Iterable[UUID] = ()) -> None:
        """Counts one use of each; never waits."""
        for kind, ids in (("memory", memories), ("entity", entities)):
            for each in ids:
                self._count((workspace_id, kind, each), Use(1, at))
        if self._waiting:
            self._news.set()

    def _count(self, key: Key, use: Use) -> None:
        known = self._waiting.get(key)
        if known is None and len(self._waiting) >= self._capacity:
            self.dropped += use.times
            return
        self._waiting[key] = use if known is None else Use(known.times + use.times, max(known.at, use.at))

    async def flush(self) -> None:
        """Writes all that waits, a transaction per workspace and batch. Raises ServiceError and keeps what is not
        written when the database is away."""
        async with self._writing:
            while self._waiting:
                workspace_id = next(iter(self._waiting))[0]
                batch = [key for key in self._waiting if key[0] == workspace_id][:BATCH]
                taken = {key: self._waiting.pop(key) for key in batch}
                try:
                    async with self._database.begin(workspace_id) as session:
                        await uses.count(
                            session,
                            workspace_id,
                            {key[2]: use for key, use in taken.items() if key[1] == "memory"},
                            {key[2]: use for key, use in taken.items() if key[1] == "entity"},
                        )
                except BaseException:
                    for key, use in taken.items():
                        self._count(key, use)
                    raise

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
                log.warning("uses_wait", code=exc.code, waiting=len(self._waiting), dropped=self.dropped)
            except Exception as exc:  # a bug here must not end the counting, nor repeat for ever
                log.error("uses_failed", kind=type(exc).__name__, lost=len(self._waiting))
                self._waiting.clear()


@asynccontextmanager
async def open_reinforcement(database: Database) -> AsyncIterator[Reinforcement]:
    """Counters that are written in the background, and to their end when the block is left."""
    found = Reinforcement(database)
    writing = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        try:
            await asyncio.wait_for(found.flush(), FAREWELL_S)
        except (ServiceError, TimeoutError):
            log.warning("uses_cut_short", dropped=found.dropped)

"""Background writes: the audit of reads, and uses of memories.

Entries are buffered, written in batches, retried while the database is unavailable, and flushed at shutdown. A read
never waits for its entry and never fails because of it: entries that do not fit the buffer are dropped and counted in
the log. A killed process loses its buffer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, ClassVar, TypeVar
from uuid import UUID

import structlog

from service.domain.errors import ServiceError
from service.postgres.engine import Database
from service.runtime.background import running
from service.runtime.statements import audit, stats
from service.runtime.statements.audit import AuditEntry
from service.runtime.statements.stats import Use

log = structlog.get_logger(__name__)

SHUTDOWN_S = 5.0  # for the remaining entries, at shutdown
BATCH = 500
READS_CAPACITY, READS_PAUSE_S = 10_000, 0.5  # entries of about 1 kB; seconds between two writes
USES_CAPACITY, USES_PAUSE_S = 50_000, 1.0  # buffered memories and entities; uses of more are not counted

Buffered = deque[AuditEntry] | dict[Any, Any]


class WriteBehind(ABC):
    """A buffer that is written in the background. Adding sets `_pending`; `pause_s` is the pause between two writes."""

    _buffer: Buffered

    what: ClassVar[str]
    """The name of the buffer in the log."""

    def __init__(self, database: Database, *, pause_s: float = USES_PAUSE_S) -> None:
        self._database = database
        self._pause_s = pause_s
        self._pending = asyncio.Event()
        self._writing = asyncio.Lock()  # a flush before an erasure also waits for a write under way
        self.dropped = 0

    @abstractmethod
    async def write(self) -> None:
        """Writes the buffer. Raises ServiceError and keeps the rest if the database is unavailable."""

    def clear(self) -> int:
        """Drops the buffer; returns its size."""
        lost = len(self._buffer)
        self._buffer.clear()
        return lost

    async def flush(self) -> None:
        """Calls `write`, one at a time."""
        async with self._writing:
            await self.write()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._pending.wait()
            await asyncio.sleep(self._pause_s)  # more may come: one transaction for all
            self._pending.clear()
            try:
                await self.flush()
            except ServiceError as exc:
                self._pending.set()
                log.warning("write_behind_waits", what=self.what, code=exc.code, dropped=self.dropped)
            except Exception as exc:  # a bug here must neither end the writing nor fail for ever on the same entries
                log.error("write_behind_failed", what=self.what, kind=type(exc).__name__, lost=self.clear())


class ReadLog(WriteBehind):
    """Audit entries of reads."""

    what = "read log"

    def __init__(self, database: Database, *, capacity: int = READS_CAPACITY, pause_s: float = READS_PAUSE_S) -> None:
        super().__init__(database, pause_s=pause_s)
        self._buffer: deque[AuditEntry] = deque(maxlen=capacity)

    def add(self, entry: AuditEntry) -> None:
        """Adds an entry; never waits. If there are too many, the oldest is dropped."""
        if len(self._buffer) == self._buffer.maxlen:
            self.dropped += 1
        self._buffer.append(entry)
        self._pending.set()

    async def write(self) -> None:
        """A transaction per workspace and batch."""
        while self._buffer:
            batch = [self._buffer.popleft() for _ in range(min(BATCH, len(self._buffer)))]
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

    def _put_back(self, batch: list[AuditEntry]) -> None:
        room = (self._buffer.maxlen or 0) - len(self._buffer)
        self.dropped += max(0, len(batch) - room)
        self._buffer.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))


UseKey = tuple[UUID, str, UUID]
"""Workspace, "memory" or "entity", and its id."""


class UseCounter(WriteBehind):
    """Uses of memories and entities by reads; those of one memory are summed into one update.

    They affect its ranking (docs/decisions/059-ageing.md).
    """

    what = "uses"

    def __init__(self, database: Database, *, capacity: int = USES_CAPACITY, pause_s: float = USES_PAUSE_S) -> None:
        super().__init__(database, pause_s=pause_s)
        self._capacity = capacity
        self._buffer: dict[UseKey, Use] = {}

    def add(self, workspace_id: UUID, memories: Iterable[UUID], at: datetime, *, entities: Iterable[UUID] = ()) -> None:
        """Counts one use of each; never waits."""
        for kind, ids in (("memory", memories), ("entity", entities)):
            for key in ids:
                self._count((workspace_id, kind, key), Use(1, at))
        if self._buffer:
            self._pending.set()

    def _count(self, key: UseKey, use: Use) -> None:
        known = self._buffer.get(key)
        if known is None and len(self._buffer) >= self._capacity:
            self.dropped += use.times
            return
        self._buffer[key] = use if known is None else Use(known.times + use.times, max(known.at, use.at))

    async def write(self) -> None:
        """A transaction per workspace and batch."""
        while self._buffer:
            workspace_id = next(iter(self._buffer))[0]
            batch = [key for key in self._buffer if key[0] == workspace_id][:BATCH]
            taken = {key: self._buffer.pop(key) for key in batch}
            try:
                async with self._database.begin(workspace_id, background=True) as session:
                    await stats.count_uses(
                        session,
                        {key[2]: use for key, use in taken.items() if key[1] == "memory"},
                        {key[2]: use for key, use in taken.items() if key[1] == "entity"},
                    )
            except BaseException:
                for key, use in taken.items():
                    self._count(key, use)
                raise


Buffer = TypeVar("Buffer", bound=WriteBehind)


@asynccontextmanager
async def in_background(buffer: Buffer) -> AsyncIterator[Buffer]:
    """Writes the buffer during the block, and completely at its end."""
    try:
        async with running(buffer.run()):
            yield buffer
    finally:
        try:
            await asyncio.wait_for(buffer.flush(), SHUTDOWN_S)
        except (ServiceError, TimeoutError):
            log.warning("write_behind_cut_short", what=buffer.what, dropped=buffer.dropped)

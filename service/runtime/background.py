"""Work in the background of a block, and background writes: the audit of reads, and uses of memories.

Entries are buffered, written in batches, retried while the database is unavailable, and flushed at shutdown. A read
never waits for its entry and never fails because of it: entries that do not fit the buffer are dropped and counted in
the log. A killed process loses its buffer.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from service.domain.errors import ServiceError
from service.postgres.engine import Database, Session
from service.runtime.statements import audit, stats
from service.runtime.statements.audit import AuditEntry
from service.runtime.statements.stats import Use


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs the work in a task during the block; what is not done at its end is cancelled."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


log = structlog.get_logger(__name__)

SHUTDOWN_S = 5.0  # for the remaining entries, at shutdown
BATCH = 500
CAPACITY = 10_000  # entries of up to about 1 kB
PAUSE_S = 1.0  # between two writes

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class WriteBehind(ABC, Generic[Key, Value]):
    """A buffer that is written in the background, a transaction per workspace and batch. `pause_s` is the pause between
    two writes."""

    what: ClassVar[str]
    """The name of the buffer in the log."""

    def __init__(self, database: Database, *, capacity: int = CAPACITY, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._capacity = capacity
        self._pause_s = pause_s
        self._buffer: OrderedDict[tuple[UUID, Key], Value] = OrderedDict()
        self._pending = asyncio.Event()
        self._writing = asyncio.Lock()  # a flush before an erasure also waits for a write under way
        self.dropped = 0

    @abstractmethod
    async def write(self, session: Session, values: Mapping[Key, Value]) -> None:
        """Writes values of one workspace."""

    def combine(self, older: Value, newer: Value) -> Value:
        """One value instead of two with the same key."""
        return newer

    def put(self, workspace_id: UUID, key: Key, value: Value) -> None:
        """Adds a value; never waits. If there are too many, the oldest is dropped."""
        older = self._buffer.get((workspace_id, key))
        if older is None and len(self._buffer) >= self._capacity:
            self._buffer.popitem(last=False)
            self.dropped += 1
        self._buffer[workspace_id, key] = value if older is None else self.combine(older, value)
        self._pending.set()

    async def flush(self) -> None:
        """Writes the buffer, one call at a time. Raises ServiceError and keeps the rest if the database is
        unavailable."""
        async with self._writing:
            while self._buffer:
                workspace_id = next(iter(self._buffer))[0]
                keys = list(islice((key for key in self._buffer if key[0] == workspace_id), BATCH))
                taken = {key: self._buffer.pop(key) for key in keys}
                try:
                    async with self._database.begin(workspace_id, background=True) as session:
                        await self.write(session, {key: value for (_, key), value in taken.items()})
                except BaseException:
                    self._put_back(taken)
                    raise

    def _put_back(self, taken: dict[tuple[UUID, Key], Value]) -> None:
        """Puts values before those that came since; of too many the oldest are dropped."""
        for key, older in reversed(taken.items()):
            newer = self._buffer.get(key)
            if newer is None and len(self._buffer) >= self._capacity:
                self.dropped += 1
            else:
                self._buffer[key] = older if newer is None else self.combine(older, newer)
                self._buffer.move_to_end(key, last=False)

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
                lost = len(self._buffer)
                self._buffer.clear()
                log.error("write_behind_failed", what=self.what, kind=type(exc).__name__, lost=lost)


class ReadLog(WriteBehind[UUID, AuditEntry]):
    """Audit entries of reads."""

    what = "read log"

    def add(self, entry: AuditEntry) -> None:
        self.put(entry.scope.workspace_id, uuid7(), entry)

    async def write(self, session: Session, values: Mapping[UUID, AuditEntry]) -> None:
        await audit.append(session, list(values.values()))


UseKey = tuple[str, UUID]
""""memory" or "entity", and its id."""


class UseCounter(WriteBehind[UseKey, Use]):
    """Uses of memories and entities by reads; those of one memory are summed into one update.

    They affect its ranking (docs/decisions/059-ageing.md).
    """

    what = "uses"

    def add(self, workspace_id: UUID, memories: Iterable[UUID], at: datetime, *, entities: Iterable[UUID] = ()) -> None:
        """Counts one use of each; never waits."""
        for kind, ids in (("memory", memories), ("entity", entities)):
            for key in ids:
                self.put(workspace_id, (kind, key), Use(1, at))

    def combine(self, older: Use, newer: Use) -> Use:
        return Use(older.times + newer.times, max(older.at, newer.at))

    async def write(self, session: Session, values: Mapping[UseKey, Use]) -> None:
        await stats.count_uses(
            session,
            {key: use for (kind, key), use in values.items() if kind == "memory"},
            {key: use for (kind, key), use in values.items() if kind == "entity"},
        )


Buffer = TypeVar("Buffer", bound=WriteBehind[Any, Any])


@asynccontextmanager
async def in_background(buffer: Buffer) -> AsyncIterator[Buffer]:
    """Writes the buffer during the block, and completely at its end."""
    try:
        async with running(buffer.run()):
            yield buffer
    finally:
        try:
            async with asyncio.timeout(SHUTDOWN_S):
                await buffer.flush()
        except (ServiceError, TimeoutError):
            log.warning("write_behind_cut_short", what=buffer.what, dropped=buffer.dropped)

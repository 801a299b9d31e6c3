"""Caches the callers of API keys, limits wrong keys, and notes when a key was last used."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from service.access.statements import keys
from service.domain.access import Caller
from service.domain.errors import RateLimited
from service.http.admission import Buckets
from service.postgres.engine import Database, Session
from service.runtime.background import CAPACITY, WriteBehind

REMEMBERED_S = 5.0
"""How long a key is cached, and so how long a revoked key keeps working in other processes."""

REMEMBERED_KEYS = 1_000
KEY_USE_EVERY = timedelta(minutes=1)


class KeyRing:
    """Caches API keys by hash, and limits wrong keys by address."""

    def __init__(
        self, database: Database, *, failed_per_min: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, Caller]] = OrderedDict()
        self._failures = Buckets(failed_per_min / 60, failed_per_min, clock)

    async def caller(self, secret: str, address: str = "") -> Caller | None:
        """The caller, None for an unknown key. Raises RateLimited for an address that sent too many of them, unless the
        key is cached as valid."""
        digest = keys.digest(secret)
        if digest not in self._seen and (wait_s := self._failures.wait_s(address)) > 0:
            raise RateLimited("Too many wrong keys came from this address.", retry_after_s=wait_s)
        caller = await self._look_up(digest, partial(keys.find, self._database, secret))
        if caller is None:
            self._failures.take(address)
        return caller

    async def caller_by_id(self, workspace_id: UUID, key_id: UUID) -> Caller | None:
        """The caller for the id of a key, as in a token."""
        find = partial(keys.find_by_id, self._database, workspace_id, key_id)
        return await self._look_up(f"{workspace_id}/{key_id}", find)

    async def _look_up(self, name: str, find: Callable[[], Awaitable[Caller | None]]) -> Caller | None:
        """The caller in the cache under this name, else the one that `find` returns; None for an unknown key."""
        until, cached = self._seen.get(name, (0.0, None))
        if cached is not None and self._clock() < until:
            return cached
        caller = await find()
        self._seen.pop(name, None)
        if caller is not None:
            self._seen[name] = (self._clock() + REMEMBERED_S, caller)
            if len(self._seen) > REMEMBERED_KEYS:
                self._seen.popitem(last=False)
        return caller

    def forget(self) -> None:
        """Empties the cache after a change of keys or workspace settings in this process."""
        self._seen.clear()


class KeyUses(WriteBehind[UUID, datetime]):
    """The last use of keys, written at most once a minute for each key."""

    what = "key uses"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._noted: dict[UUID, datetime] = {}

    def add(self, workspace_id: UUID, key_id: UUID, at: datetime) -> None:
        """Notes a use; never waits."""
        noted = self._noted.get(key_id)
        if noted is not None and at - noted < KEY_USE_EVERY:
            return
        if len(self._noted) >= CAPACITY:
            self._noted.clear()
        self._noted[key_id] = at
        self.put(workspace_id, key_id, at)

    async def write(self, session: Session, values: Mapping[UUID, datetime]) -> None:
        await keys.note_uses(session, values)

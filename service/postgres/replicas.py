"""Streaming standbys that serve reads, each only as long as it has replayed what the request must see.

The primary's WAL position is sampled all the time: what was committed before a sample was taken lies below it. So a
standby that has replayed a sample has everything that was committed before that sample, whatever the servers' clocks
say. If a request brings a position, the standby must also have replayed that. The standby checks the position in the
round trip that opens the transaction, so the guarantee also holds for one that was replaced behind its address.

A read that no standby can serve goes to the primary. One that breaks off is repeated there (ReplicaFailed).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf, nan
from typing import Final, Literal

import asyncpg  # type: ignore[import-untyped]
import structlog

from service.domain.errors import ServiceError, StoreUnavailable
from service.observability.metrics import REPLICA_FALLBACKS, REPLICA_LAG, REPLICA_READS
from service.postgres.engine import DATABASE_FAULTS, Access, Database, ReplicaFailed, Session
from service.postgres.rights import find_access
from service.postgres.roles import APP

log = structlog.get_logger(__name__)

WAIT_S: Final = 0.05
"""How long a read waits for a standby to replay the position that it brings."""

LOOK_AGAIN_S: Final = 0.005
NEAR_S: Final = 1.0
"""A standby that was further behind than this at the last look is not waited for."""

OPEN_S: Final = 1.0
"""The longest that a standby may take to open a transaction; a host that vanished does not even refuse."""

LOOK_S: Final = 1.0
SAMPLES_KEPT_S: Final = 300.0
IDLE_S: Final = 30.0

NO_ANSWER = (ServiceError, *DATABASE_FAULTS, TimeoutError)
"""Errors of a look at a server, one that is not a primary any more included."""

# After a switch to a new file the position lies behind the file's header, which no standby replays before a record.
CURRENT = """
    SELECT at - CASE at % pg_size_bytes(current_setting('wal_segment_size')) WHEN 40 THEN 40 ELSE 0 END
    FROM (SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint AS at) now_at
"""
REPLAYED = "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint"

# A separate transaction, because the read's own might take its snapshot before it reads the position. Fails with a
# division by zero if the standby is behind.
CHECK = "BEGIN READ ONLY; SELECT 1 / (coalesce(pg_last_wal_replay_lsn(), '0/0') - '0/0' >= {})::integer; COMMIT; "


@dataclass(frozen=True, slots=True)
class WalSample:
    """A position of the primary. `taken_at`: what was committed before this moment lies below it."""

    taken_at: float
    position: int


class Replica:
    """A standby. `replayed`: its position at the last look, None while it cannot be used. `lag_s`: at the last look.
    `is_reported`: the log says that it does not answer."""

    def __init__(self, number: int, url: str, *, pooled: bool, pool_size: int) -> None:
        self.name = str(number)
        self.replayed: int | None = None
        self.lag_s = inf
        self.is_reported = False
        self.database = Database(Access(url, pooled), pool_size=pool_size, pool_timeout_s=OPEN_S)
        self._watcher = Database(Access(url, pooled), pool_size=1, pool_timeout_s=OPEN_S)
        self._access = (url, pooled)
        self._is_checked = False
        self._looking = asyncio.Lock()

    async def look(self) -> None:
        """Learns how far it has replayed. Raises StoreUnavailable, also for a primary or a wrong login."""
        if not self._is_checked:
            url, pooled = self._access
            await find_access(url, wanted_role=APP, pooled=pooled)
            self._is_checked = True
        self.replayed = await self._watcher.fetch_value(REPLAYED)
        if self.replayed is None:
            raise StoreUnavailable("This server is no standby.")
        await self.database.pool.close_idle(IDLE_S, keep=1)

    async def await_position(self, position: int) -> None:
        """Looks again and again until it has replayed the position. However many wait, one of them looks."""
        while True:
            async with self._looking:
                if self.replayed is None or self.replayed >= position:
                    return
                self.replayed = await self._watcher.fetch_value(REPLAYED)
                if self.replayed is not None and self.replayed < position:
                    await asyncio.sleep(LOOK_AGAIN_S)

    async def open(self, opening: Sequence[str], position: int) -> Session | None:
        """A transaction in which the position is visible, None if it cannot have one."""
        try:
            async with asyncio.timeout(OPEN_S):
                return await self.database.connect([CHECK.format(position) + opening[0], *opening[1:]])
        except asyncpg.DivisionByZeroError:
            reason = "behind"
        except (StoreUnavailable, TimeoutError):
            reason = "unreachable"
        self.replayed = None  # until the next look
        REPLICA_FALLBACKS.labels(reason).inc()
        return None

    def fail(self, error: BaseException) -> ReplicaFailed:
        """The error of a read that it could not finish. It is not used until it answers again."""
        self.replayed = None
        return ReplicaFailed(type(error).__name__)

    async def close(self) -> None:
        await self.database.close()
        await self._watcher.close()


class Replicas:
    """The standbys of a primary. `max_lag_s`: how far behind a read may be that brings no position."""

    def __init__(self, primary: Database, replicas: Sequence[Replica], max_lag_s: float) -> None:
        self._primary = primary
        self._replicas = replicas
        self._max_lag_s = max_lag_s
        self._every_s = min(0.5, max_lag_s / 8)
        self._samples: deque[WalSample] = deque()
        self._oldest_accepted: WalSample | None = None
        self._turn = itertools.count()
        self._is_closing = False

    async def open(self, opening: Sequence[str], position: int) -> tuple[Replica, Session] | None:
        """A transaction on a standby that has replayed the position, and is no further behind than it may be. None if
        there is none, even after WAIT_S."""
        oldest = self._oldest_accepted
        if oldest is None or time.monotonic() - oldest.taken_at > self._max_lag_s:
            REPLICA_FALLBACKS.labels("unknown").inc()
            return None
        wanted = max(position, oldest.position)
        replica = self._choose(wanted) or await self._wait(wanted, WAIT_S if position > oldest.position else 0)
        if replica is None:
            answers = any(each.replayed is not None for each in self._replicas)
            REPLICA_FALLBACKS.labels("behind" if answers else "unreachable").inc()
            return None
        session = await replica.open(opening, wanted)
        return None if session is None else (replica, session)

    def _choose(self, position: int) -> Replica | None:
        """One that has replayed the position, in turns."""
        ready = [each for each in self._replicas if each.replayed is not None and each.replayed >= position]
        return ready[next(self._turn) % len(ready)] if ready else None

    async def _wait(self, position: int, seconds: float) -> Replica | None:
        near = [each for each in self._replicas if each.replayed is not None and each.lag_s < NEAR_S]
        if not near or not seconds:
            return None
        with suppress(*NO_ANSWER):
            async with asyncio.timeout(seconds):
                await max(near, key=lambda each: each.replayed or 0).await_position(position)
        return self._choose(position)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Looks at all servers during the block."""
        looks: list[Callable[[], Awaitable[None]]] = [self._sample]
        looks += [partial(self._look, each) for each in self._replicas]
        tasks = [asyncio.create_task(self._repeat(look)) for look in looks]
        try:
            yield
        finally:
            self._is_closing = True  # a roll-back that is under way swallows the cancellation
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, look: Callable[[], Awaitable[None]]) -> None:
        while not self._is_closing:
            await look()
            await asyncio.sleep(self._every_s)

    async def _sample(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(LOOK_S):
                position = await self._primary.fetch_value(CURRENT)
        except NO_ANSWER:
            return
        assert position is not None
        if self._samples and position < self._samples[-1].position:
            self._samples.clear()  # another server was promoted before it had replayed everything
        self._samples.append(WalSample(began, position))
        while self._samples[0].taken_at < began - SAMPLES_KEPT_S:
            self._samples.popleft()
        accepted = (each for each in self._samples if each.taken_at >= began - self._max_lag_s / 2)
        self._oldest_accepted = next(accepted)

    async def _look(self, replica: Replica) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await replica.look()
            replica.is_reported = False
        except NO_ANSWER as exc:
            if not replica.is_reported:
                log.warning("replica_unavailable", replica=replica.name, reason=getattr(exc, "detail", "no answer"))
            replica.is_reported, replica.replayed = True, None
        replica.lag_s = inf if replica.replayed is None else self._lag_s(replica.replayed)
        REPLICA_LAG.labels(replica.name).set(nan if replica.lag_s == inf else replica.lag_s)

    def _lag_s(self, replayed: int) -> float:
        """How far a standby with this position is behind, at most."""
        if not self._samples:
            return inf
        if replayed >= self._samples[-1].position:
            return 0.0
        reached = (each for each in reversed(self._samples) if each.position <= replayed)
        return time.monotonic() - next(reached, self._samples[0]).taken_at


Source = Literal["replicas", "primary"]


@dataclass(slots=True)
class RequestPosition:
    """What a request must see, and what a later one must see to see its writes: positions in the WAL.

    `wanted`: it came with the request. `reached`: where the primary was after the request's last commit, 0 before it.
    `source`: of a request that only reads; those of `primary` count like commits, because they tell of writes that were
    not its own. `stays`: on the primary, whatever it reads.
    """

    replicas: Replicas
    wanted: int = 0
    reached: int = 0
    source: Source | None = None
    stays: bool = False

    async def open(self, opening: Sequence[str]) -> tuple[Replica, Session] | None:
        """A transaction of this request on a standby, if one may and can serve it."""
        if self.stays or self.source != "replicas":
            return None
        opened = await self.replicas.open(opening, self.wanted)
        REPLICA_READS.labels("primary" if opened is None else "replica").inc()
        return opened

    def again(self, reached: int) -> RequestPosition:
        """For a request that is a part of this one, and must also see what was reached before."""
        return RequestPosition(self.replicas, max(self.wanted, self.reached, reached), stays=self.stays)

    def stay(self) -> None:
        """Sends all reads of the request to the primary from now on, because a standby failed one."""
        REPLICA_FALLBACKS.labels("failed").inc()
        self.stays = True

    async def note(self, connection: asyncpg.Connection) -> None:
        """Notes where the primary is, on a connection to it that has just committed."""
        self.reached = max(self.reached, await connection.fetchval(CURRENT))


@asynccontextmanager
async def open_replicas(
    primary: Access, urls: Sequence[str], *, max_lag_s: float, pool_size: int
) -> AsyncIterator[Replicas]:
    """The standbys at these URLs, watched during the block. They need not be there yet."""
    async with AsyncExitStack() as stack:
        sampled = Database(primary, pool_size=1, pool_timeout_s=OPEN_S)
        stack.push_async_callback(sampled.close)
        replicas = [
            Replica(number, url, pooled=primary.pooled, pool_size=pool_size) for number, url in enumerate(urls, 1)
        ]
        for replica in replicas:
            stack.push_async_callback(replica.close)
        found = Replicas(sampled, replicas, max_lag_s)
        await stack.enter_async_context(found.watched())
        yield found

"""The open connections of a process, each used by one transaction at a time; and their codecs.

A connection keeps its session: SQLAlchemy's pool makes new objects for each transaction and switches greenlets at both
ends, which took longer than BEGIN and COMMIT. Written out as text, 384 numbers cost 0.3 ms each time, and a store sends
its vector three times.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import asyncpg  # type: ignore[import-untyped]
import sqlalchemy.exc
from pgvector import HalfVector
from sqlalchemy import Executable, TextClause, TextualSelect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from service.domain import moments
from service.domain.scope import NIL_WORKSPACE

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The epoch of Postgres, which counts microseconds."""

MICROSECOND: Final = timedelta(microseconds=1)
LEAST, MOST = (moments.FIRST - EPOCH) // MICROSECOND, (moments.END - EPOCH) // MICROSECOND - 1

HALFVEC_SCHEMA = """
SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'
"""

WARM_TYPES = "SELECT NULL::sparsevec, NULL::uuid[], NULL::integer[], NULL::float8[], NULL::timestamptz[]"
"""Types of our statements that the driver looks up in the catalogue. All at once this takes 6 ms when a connection is
opened; one by one, when a statement first needs them, each look-up adds 3 to 9 ms to a request."""


async def register_codecs(connection: asyncpg.Connection[Any]) -> None:
    """Registers times, and vectors in a database with pgvector. The driver's own codec writes Python's first and last
    moment as infinity, and reads infinity as one of them without a zone, which cannot be compared with any other."""
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_microseconds, decoder=_moment, format="tuple"
    )
    schema = await connection.fetchval(HALFVEC_SCHEMA)
    if schema is not None:
        await connection.set_type_codec(
            "halfvec", schema=schema, encoder=_binary, decoder=HalfVector.from_binary, format="binary"
        )
        await connection.fetch(WARM_TYPES)


def _microseconds(moment: datetime) -> tuple[int]:
    return ((moment - EPOCH) // MICROSECOND,)


def _moment(kept: tuple[int]) -> datetime:
    (count,) = kept
    return EPOCH + timedelta(0, 0, min(max(count, LEAST), MOST))


def _binary(value: HalfVector | str) -> bytes:
    return (HalfVector.from_text(value) if isinstance(value, str) else value).to_binary()


class PooledConnection(AsyncConnection):
    """A connection that goes back to its pool when it is closed. `workspace_id`: of the transaction that uses it, which
    sees the rows of no other."""

    __slots__ = ("_pool", "used_at", "workspace_id")

    def __init__(self, engine: AsyncEngine, pool: ConnectionPool) -> None:
        super().__init__(engine)
        self._pool = pool
        self.used_at = 0.0
        self.workspace_id = NIL_WORKSPACE

    if not TYPE_CHECKING:  # the types are those of AsyncConnection

        async def execute(self, statement: Executable, parameters: Any = None, **options: Any) -> Any:
            if isinstance(statement, TextClause | TextualSelect) and not isinstance(parameters, list):
                parameters = self.fill(parameters or {})
            return await super().execute(statement, parameters, **options)

    def fill(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a text statement, with the workspace as :workspace where they have none."""
        return {"workspace": self.workspace_id, **values}

    async def close(self) -> None:
        await self._pool.give_back(self)

    async def end(self) -> None:
        """Closes the connection itself."""
        await super().close()


class ConnectionPool:
    """At most `size` connections, opened as they are needed. `engine`: opens them, and has a NullPool. `in_use`,
    `waiting`: transactions that have a connection, and that wait for one."""

    def __init__(self, engine: AsyncEngine, *, size: int, timeout_s: float) -> None:
        self.size, self.in_use, self.waiting = size, 0, 0
        self._engine, self._timeout_s, self._closed = engine, timeout_s, False
        self._places = asyncio.Semaphore(size)
        self._idle: list[PooledConnection] = []  # the one used last is the last

    @property
    def idle(self) -> int:
        return len(self._idle)

    async def take(self) -> PooledConnection:
        """A connection, once one is free: the one used last, because it has its statements prepared. Raises
        SQLAlchemy's TimeoutError, and what it raises for a connection that cannot be opened."""
        self.waiting += 1
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._places.acquire()
        except TimeoutError:
            raise sqlalchemy.exc.TimeoutError from None
        finally:
            self.waiting -= 1
        self.in_use += 1
        if self._idle:
            return self._idle.pop()
        try:
            await (connection := PooledConnection(self._engine, self))
        except BaseException:
            self._leave()
            raise
        return connection

    async def give_back(self, connection: PooledConnection) -> None:
        """Keeps the connection for the next transaction, unless it was lost or the pool is closed."""
        try:
            if self._closed or connection.closed or connection.invalidated:
                await connection.end()
            else:
                connection.used_at = time.monotonic()
                self._idle.append(connection)
        finally:
            self._leave()

    async def close_idle(self, idle_s: float, *, keep: int) -> int:
        """Closes connections idle for `idle_s`, all but the `keep` used last, and returns how many: each takes 7 to 15
        MB of the server's memory, and a new one some 25 ms."""
        since, spare = time.monotonic() - idle_s, self._idle[: max(0, len(self._idle) - keep)]
        spare = [connection for connection in spare if connection.used_at <= since]
        self._idle = [connection for connection in self._idle if connection not in spare]
        for connection in spare:
            await connection.end()
        return len(spare)

    async def close(self) -> None:
        """Closes those that are idle now, and the others when they are given back."""
        self._closed = True
        await self.close_idle(0, keep=0)

    def _leave(self) -> None:
        self.in_use -= 1
        self._places.release()

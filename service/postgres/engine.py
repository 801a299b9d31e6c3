"""The beginning and end of transactions on the connections of a pool, and driver errors as ours.

`Database.begin(workspace)` and `.read(workspace)` open one short transaction with the workspace set for row-level
security: BEGIN and all settings travel in one simple-protocol string, so a read costs three round trips. Settings are
transaction-local, so a pooled connection never carries the previous request's workspace. No network may be awaited
inside; the fakes of the tests check that with `in_transaction()`.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import sqlalchemy.exc
from pydantic_core import from_json
from sqlalchemy import NullPool, event
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from service.domain.access import NO_WALL, Wall
from service.domain.errors import OutcomeUnknown, StoreUnavailable
from service.domain.scope import NIL_WORKSPACE
from service.kit.deadline import NEVER, Deadline
from service.observability.metrics import DATABASE_ERRORS, POOL_WAIT, SCOPE_LOCK_WAIT
from service.postgres import citus, connections, opening, roles
from service.postgres.connections import ConnectionPool, PooledConnection
from service.postgres.driver_errors import DRIVER, RETRY_AFTER_S, is_lost, translate, translated_errors, unavailable

if TYPE_CHECKING:
    from service.postgres.replicas import RequestPosition

Session = PooledConnection

_open_transactions: ContextVar[int] = ContextVar("open_transactions", default=0)
"""Transactions open in this task. A context variable, because the fakes of the tests read it to find calls of a model
inside a transaction, and have the interface of a model."""

WALLED, PLANS = "walled", "plans"

MAX_PREPARED_S = 60
"""Seconds until a prepared statement is prepared and planned again, so that a plan made while a table was empty does
not live on."""

MAX_PREPARED_CHARS = 64 * 1024
"""The size above which statements are not prepared. The driver's default of 15 kB is less than a search of many words
with a filter has, which would be parsed each time."""

WRITES_SHARED = "SET LOCAL loxodon.shared = 'on'"

LOCK_TIMEOUT_MS = 5_000

SHORT_LOCK_WAIT = "SET LOCAL lock_timeout = 250"
"""For background work that locks many rows. Postgres ends one of two transactions that wait for each other after a
second, which may be the one of a request. Background work gives up sooner, so it never costs a request."""

DATABASE_FAULTS = (StoreUnavailable, sqlalchemy.exc.DBAPIError, asyncpg.PostgresError)
"""What a transaction raises for the database's sake, a missing table included."""


class ReplicaFailed(Exception):
    """A read on a standby broke off. No ServiceError, so that nothing answers it before the request is repeated on the
    primary (http/replica_reads.py)."""


def in_transaction() -> bool:
    """Whether this task has a transaction open, in which only the database may be awaited."""
    return _open_transactions.get() > 0


@dataclass(frozen=True, slots=True)
class Access:
    """How a process connects: `url` for SQLAlchemy, whether through a pooler in transaction mode, and whether to the
    coordinator of a Citus cluster."""

    url: str
    pooled: bool = False
    citus: bool = False


class Database:
    """One pool of connections that serve requests under row-level security, as seen within one wall: each request and
    each job has its own view (`within`)."""

    def __init__(
        self, access: Access, *, pool_size: int, pool_timeout_s: float, statement_timeout_s: float = 20.0
    ) -> None:
        self.engine = create_async_engine(
            access.url,
            poolclass=NullPool,  # ours keeps the sessions, too
            hide_parameters=True,  # an error that is logged must not hold memory text
            isolation_level="AUTOCOMMIT",  # BEGIN and COMMIT are ours, see _transaction
            pool_reset_on_return=None,  # and so is ROLLBACK
            json_deserializer=from_json,  # a third of the standard library's time, and a search reads fifty
            connect_args=connect_arguments(access),
        )
        event.listen(self.engine.sync_engine, "connect", lambda raw, _: raw.run_async(connections.register_codecs))
        self.pool = ConnectionPool(self.engine, size=pool_size, timeout_s=pool_timeout_s)
        self._plans = opening.ON_CITUS if access.citus else opening.ON_ONE_SERVER
        self._wall: Wall | None = NO_WALL
        self._deadline = NEVER
        self._wal_position: RequestPosition | None = None
        self._read = f"SET LOCAL statement_timeout = {int(statement_timeout_s * 1000)}"
        self._write = f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}; {self._read}"

    def within(
        self, wall: Wall | None, deadline: Deadline = NEVER, wal_position: RequestPosition | None = None
    ) -> Database:
        """A view whose transactions have this wall, and whose commits lift the deadline. None refuses to open any: for
        what outlives a request, so that no request can use it by mistake. `wal_position`: where it may read, and how
        far it has written; None without standbys."""
        view = copy.copy(self)
        view._wall, view._deadline, view._wal_position = wall, deadline, wal_position
        return view

    def without_wall(self) -> Database:
        """A view that reaches the whole workspace, for what a request does on the workspace's account."""
        return self.within(NO_WALL, self._deadline, self._wal_position)

    @property
    def wall(self) -> Wall:
        """The wall that its transactions cannot leave."""
        if self._wall is None:
            raise RuntimeError("No wall was chosen: take the resources of the request (deps.ResourcesOf).")
        return self._wall

    @asynccontextmanager
    async def begin(
        self,
        workspace_id: UUID,
        lock: str | None = None,
        *,
        generic_plans: bool = False,
        writes_shared: bool = False,
        detached: bool = False,
        background: bool = False,
    ) -> AsyncIterator[Session]:
        """A READ COMMITTED transaction that commits at the end of the block, before any reply. `lock`: a statement
        without parameters that waits for a lock (scopes.lock); it travels with BEGIN, which saves a round trip.
        `generic_plans`: for transactions that insert rows or find them by keys (Plans.generic). `writes_shared`: it may
        write memories of the whole workspace, which row-level security refuses otherwise. `detached`: it
        keeps something for later requests, and this one may still be cut off at its deadline. `background`: it is
        repeated when it fails, so it waits for a locked row too briefly to make a request fail (SHORT_LOCK_WAIT).

        Raises StoreUnavailable (nothing was written) or OutcomeUnknown (the connection was lost during COMMIT).
        """
        shared = WRITES_SHARED if writes_shared else None
        planner, patience = self._plans.generic if generic_plans else None, SHORT_LOCK_WAIT if background else None
        settings = "; ".join(filter(None, (self._write, planner, patience, shared)))
        async with self._transaction(
            "BEGIN ISOLATION LEVEL READ COMMITTED", settings, workspace_id, writes=True, lock=lock, detached=detached
        ) as session:
            yield session
            if not detached:
                self._deadline.lift()  # COMMIT is never cancelled, because its outcome would be unknown

    @asynccontextmanager
    async def read(self, workspace_id: UUID = NIL_WORKSPACE, *, generic_plans: bool = False) -> AsyncIterator[Session]:
        """A short read-only transaction. Under the nil workspace no tenant's rows are visible. `generic_plans`: as for
        `begin`. Raises StoreUnavailable, also when the connection is lost at its end."""
        settings = f"{self._read}; {self._plans.generic}" if generic_plans else self._read
        async with self._transaction("BEGIN READ ONLY", settings, workspace_id) as session:
            yield session

    def snapshot(self, workspace_id: UUID, *, steady_plans: bool = False) -> AbstractAsyncContextManager[Session]:
        """A read-only transaction in which every statement sees the same state. `steady_plans`: for a search
        (Plans.steady); else statements are planned for their values (Plans.custom)."""
        mode = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        planner = self._plans.steady if steady_plans else self._plans.custom
        return self._transaction(mode, f"{self._read}; {planner}", workspace_id)

    async def vacuum(self, table: str) -> None:
        """Runs VACUUM, outside a transaction and without a time limit. `table`: its name as SQL writes it."""
        await self._with_driver(lambda raw: raw.execute(f"VACUUM {table}"))

    async def fetch_value(self, query: str) -> Any:
        """The only value of a query about the server. Raises StoreUnavailable."""
        return await self._with_driver(lambda raw: raw.fetchval(query))

    async def _with_driver(self, run: Callable[[asyncpg.Connection[Any]], Awaitable[Any]]) -> Any:
        with translated_errors():
            connection = await self._free_connection()
            try:
                return await run(await driver(connection))
            except BaseException:
                await _abandon(connection)
                raise
            finally:
                await connection.close()

    @asynccontextmanager
    async def _transaction(
        self,
        mode: str,
        settings: str,
        workspace_id: UUID,
        *,
        writes: bool = False,
        lock: str | None = None,
        detached: bool = False,
    ) -> AsyncIterator[Session]:
        settings = f"SET LOCAL loxodon.workspace = '{workspace_id}'; {settings}"
        statements = opening.statements(mode, settings, lock, self.wall, is_citus=self._plans is opening.ON_CITUS)
        wal_position, replica = self._wal_position, None
        if wal_position is not None and not writes and (opened := await wal_position.open(statements)) is not None:
            replica, connection = opened
        else:
            connection = await self.connect(statements, locks=lock is not None)
        connection.workspace_id = workspace_id
        follows = wal_position is not None and not detached and (writes or wal_position.source == "primary")
        depth = _open_transactions.set(_open_transactions.get() + 1)
        try:
            with translated_errors(connection, walled=bool(self._wall)):
                yield connection
            await _commit(connection, writes=writes, wal_position=wal_position if follows else None)
        except BaseException as exc:
            await _abandon(connection)
            if replica is not None and isinstance(exc, DATABASE_FAULTS):
                raise replica.fail(exc) from exc
            raise
        finally:
            _open_transactions.reset(depth)
            with suppress(Exception):  # the transaction has been committed, or its error is being raised
                await connection.close()

    async def connect(self, statements: Sequence[str], *, locks: bool = False) -> Session:
        """A connection with its transaction begun. Connections that died in the pool, perhaps all of them, are
        replaced: nothing was sent yet."""
        with translated_errors():
            for left in range(self.pool.size, -1, -1):
                connection = await self._free_connection()
                try:
                    began = time.perf_counter()
                    for statement in statements:
                        await (await driver(connection)).execute(statement)
                    if locks:
                        SCOPE_LOCK_WAIT.observe(time.perf_counter() - began)
                    connection.info.update({WALLED: bool(self._wall), PLANS: self._plans})
                    return connection
                except Exception as exc:
                    lost = is_lost(exc, connection)
                    await (connection.invalidate() if lost else _abandon(connection))
                    await connection.close()
                    if not lost or not left:
                        raise
                except BaseException:
                    await _abandon(connection)
                    await connection.close()
                    raise
        raise AssertionError("unreachable")

    async def _free_connection(self) -> PooledConnection:
        """A connection of the pool, once one is free."""
        began = time.perf_counter()
        try:
            return await self.pool.take()
        except (sqlalchemy.exc.DBAPIError, asyncpg.PostgresError) as exc:  # for whatever reason
            raise unavailable("unreachable") from exc
        finally:
            POOL_WAIT.observe(time.perf_counter() - began)

    async def close(self) -> None:
        await self.pool.close()
        await self.engine.dispose()


async def driver(session: AsyncConnection) -> asyncpg.Connection[Any]:
    """The asyncpg connection below a session, for simple-protocol strings."""
    known: asyncpg.Connection[Any] | None = session.info.get(DRIVER)
    if known is None:  # asking SQLAlchemy costs a greenlet; `info` lives as long as the connection
        known = session.info[DRIVER] = (await session.get_raw_connection()).driver_connection
        assert known is not None
    return known


def is_walled(session: Session) -> bool:
    """Whether the transaction has a wall, beyond which it sees nothing."""
    return bool(session.info[WALLED])


def is_citus(session: Session) -> bool:
    """Whether the transaction runs on a coordinator of Citus."""
    return session.info.get(PLANS) is opening.ON_CITUS


async def use_custom_plans(session: Session) -> None:
    """Lets the following statements of the transaction be planned for their values (Plans.custom)."""
    await _set_locally(session, session.info[PLANS].custom)


async def use_steady_plans(session: Session) -> None:
    """Lets the following statements of the transaction keep plans that no statistics change (Plans.steady)."""
    await _set_locally(session, session.info[PLANS].steady)


async def _set_locally(session: Session, settings: str) -> None:
    """Changes settings for the rest of the transaction."""
    if is_citus(session):
        settings = f"SET LOCAL {citus.ALONE}; {settings}; {citus.PROPAGATE}"
    await (await driver(session)).execute(settings)


async def _commit(session: Session, *, writes: bool, wal_position: RequestPosition | None = None) -> None:
    """Ends the transaction. `writes`: it may have written, so that a lost connection leaves the outcome unknown.
    `wal_position`: learns how far a standby must have replayed to see the transaction."""
    try:
        raw = await driver(session)
        await raw.execute("COMMIT")
        if wal_position is not None:
            await wal_position.note(raw)
    except Exception as exc:
        if not is_lost(exc, session):
            ours = translate(exc)  # a deferred constraint, or a cancelled statement: nothing was written
            raise ours or unavailable("other") from exc
        if not writes:
            raise unavailable("unreachable") from exc
        DATABASE_ERRORS.labels("commit_lost").inc()
        raise OutcomeUnknown(
            "The connection was lost while committing; repeat with the same Idempotency-Key to learn the outcome.",
            retry_after_s=RETRY_AFTER_S,
        ) from exc


async def _abandon(session: Session) -> None:
    """Rolls back, or discards the connection: it never goes back to the pool with an open transaction."""
    with suppress(BaseException):
        raw = await driver(session)
        if not raw.is_closed():  # even if it seems idle: the driver may have missed the answer to BEGIN
            await asyncio.shield(raw.execute("ROLLBACK", timeout=0.5))
        if not raw.is_closed() and not raw.is_in_transaction():
            return
    with suppress(BaseException):
        await session.invalidate()


def connect_arguments(access: Access) -> dict[str, Any]:
    """Arguments for asyncpg. With a pooler in transaction mode: unnamed statements and no start-up settings."""
    if access.pooled:
        return {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        }
    return {
        "server_settings": {"application_name": "loxodon", **roles.SESSION_SETTINGS},
        "max_cached_statement_lifetime": MAX_PREPARED_S,
        "max_cacheable_statement_size": MAX_PREPARED_CHARS,
    }

"""How does a transaction begin and end?

`Database.begin(workspace)` and `.read(workspace)` open one short transaction with the workspace set for row-level
security: BEGIN and all settings travel in one simple-protocol string, so a read costs three round trips (B1).
Settings are transaction-local, so a pooled connection never carries the previous request's workspace. Nothing may
wait for a network inside: `holding()` tells, and the providers refuse when it is true.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import event, text
from sqlalchemy import exc as sa_exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from service.db import roles, vectors
from service.domain.scope import NIL_WORKSPACE
from service.errors import Conflict, OutcomeUnknown, SchemaMismatch, ServiceError, StoreUnavailable

Session = AsyncConnection

_open: ContextVar[int] = ContextVar("open_sessions", default=0)

LOCK_TIMEOUT, QUERY_CANCELLED, DEADLOCK = "55P03", "57014", "40P01"
SHUTTING_DOWN = frozenset({"57P01", "57P02", "57P03"})
LOST = (OSError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError)
RETRY_AFTER_S = 1.0

DRIVER = "driver"

KEPT_S = 60
"""Seconds after which a kept statement is prepared, and its plan made, anew: so a plan from when a table was empty does
not outlive that by much."""

LONGEST_KEPT = 64 * 1024
"""Characters of a statement that stays prepared. The driver's 15 kB are less than a search of many words with a filter
has, and it would be parsed anew each time."""

BY_KEY = (
    "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; "
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
)
"""For statements whose best plan is the same for all values: rows by their key, one after the other. It is made once
per connection, where making it anew each time cost more than running it. What is switched off keeps a plan that was
made when a table was small, or one tenant's, from reading a whole table later."""

BY_VALUES = (
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = on; "
    "SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on"
)
"""The connection's own settings again (roles.SESSION_SETTINGS)."""

NO_SCHEMA = "The database has no schema of this service. Run `python -m service migrate` first."

CLASHES: Mapping[str, Callable[[], Conflict]] = {
    "pk_memory": lambda: Conflict("A memory with this id exists in another scope.", field="id"),
    "uq_memory_dedup": lambda: Conflict("The scope holds an equal memory already.", field="content"),
}
"""What a race that ended at a named constraint means to the caller."""


def holding() -> bool:
    """Is a transaction open in this task? Then nothing may be awaited but the database."""
    return _open.get() > 0


@dataclass(frozen=True, slots=True)
class Access:
    """How a process connects: `url` for SQLAlchemy, the role to take, and whether a transaction pooler is between."""

    url: str
    role: str | None
    pooled: bool = False


class Database:
    """One pool of connections that serve requests under row-level security."""

    def __init__(
        self, engine: AsyncEngine, *, pool_size: int, lock_timeout_s: float, statement_timeout_s: float
    ) -> None:
        self.engine = engine
        self.write_refusal: str | None = None  # a sentence: the schema is newer than this code (readiness.check)
        self._pool_size = pool_size
        self._write = (
            f"SET LOCAL lock_timeout = {int(lock_timeout_s * 1000)}; "
            f"SET LOCAL statement_timeout = {int(statement_timeout_s * 1000)}"
        )
        self._read = f"SET LOCAL statement_timeout = {int(statement_timeout_s * 1000)}"

    @classmethod
    def open(
        cls,
        access: Access,
        *,
        pool_size: int,
        pool_timeout_s: float,
        lock_timeout_s: float = 5.0,
        statement_timeout_s: float = 20.0,
    ) -> Database:
        engine = create_async_engine(
            access.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_use_lifo=True,  # who comes alone finds the connection that has just run the same statements
            pool_timeout=pool_timeout_s,
            hide_parameters=True,  # an error that is logged must not hold memory text
            isolation_level="AUTOCOMMIT",  # BEGIN and COMMIT are ours, see _transaction
            pool_reset_on_return=None,  # and so is ROLLBACK
            connect_args=connect_arguments(access),
        )
        event.listen(engine.sync_engine, "connect", lambda raw, _: raw.run_async(vectors.register))
        return cls(engine, pool_size=pool_size, lock_timeout_s=lock_timeout_s, statement_timeout_s=statement_timeout_s)

    @asynccontextmanager
    async def begin(
        self, workspace_id: UUID, lock: str | None = None, *, by_key: bool = False
    ) -> AsyncIterator[Session]:
        """A READ COMMITTED transaction that commits at the end of the block, before any reply. `lock`: a statement
        without parameters that waits for a lock (scopes.lock); it travels with BEGIN, which saves a round trip.
        `by_key`: its statements insert rows or find them by keys, so their plans are kept (BY_KEY).

        Raises StoreUnavailable (nothing was written) or OutcomeUnknown (the connection was lost during COMMIT).
        """
        if self.write_refusal is not None:
            raise SchemaMismatch(self.write_refusal)
        settings = "; ".join(filter(None, (self._write, BY_KEY if by_key else None, lock)))
        async with self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED", settings, workspace_id) as session:
            yield session

    @asynccontextmanager
    async def read(self, workspace_id: UUID = NIL_WORKSPACE, *, by_key: bool = False) -> AsyncIterator[Session]:
        """A short read-only transaction. The nil workspace sees no tenant's rows; functions before login use it.
        `by_key`: as for `begin`."""
        settings = f"{self._read}; {BY_KEY}" if by_key else self._read
        async with self._transaction("BEGIN READ ONLY", settings, workspace_id) as session:
            yield session

    def snapshot(self, workspace_id: UUID) -> AbstractAsyncContextManager[Session]:
        """A read-only transaction in which every statement sees the same state, and no table is scanned from end to
        end, whatever the planner thinks of one that a single scope nearly fills."""
        mode = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        return self._transaction(mode, f"{self._read}; SET LOCAL enable_seqscan = off", workspace_id)

    async def vacuum(self, table: str) -> None:
        """VACUUM, which no transaction may hold, and for as long as it takes; `table`: its name as SQL writes it."""
        with translated():
            connection = await self.engine.connect()
            try:
                await (await driver(connection)).execute(f"VACUUM {table}")
            except BaseException:
                await _abandon(connection)
                raise
            finally:
                await connection.close()

    @asynccontextmanager
    async def _transaction(self, mode: str, settings: str, workspace_id: UUID) -> AsyncIterator[Session]:
        opening = f"{mode}; SET LOCAL loxodon.workspace = '{workspace_id}'; {settings}"
        connection = await self._connect(opening)
        depth = _open.set(_open.get() + 1)
        try:
            with translated():
                yield connection
            await _commit(connection)
        except BaseException:
            await _abandon(connection)
            raise
        finally:
            _open.reset(depth)
            await connection.close()

    async def _connect(self, opening: str) -> Session:
        """A connection with its transaction begun. Those that died in the pool are replaced, which may be all of them
        after a while of rest: nothing was sent yet."""
        with translated():
            for left in range(self._pool_size, -1, -1):
                connection = await self.engine.connect()
                try:
                    await (await driver(connection)).execute(opening)
                    return connection
                except LOST:
                    await connection.invalidate()
                    await connection.close()
                    if not left:
                        raise
                except BaseException:
                    await _abandon(connection)
                    await connection.close()
                    raise
        raise AssertionError("unreachable")

    async def close(self) -> None:
        await self.engine.dispose()


async def driver(session: Session) -> asyncpg.Connection[Any]:
    """The asyncpg connection below a session, for simple-protocol strings."""
    known: asyncpg.Connection[Any] | None = session.info.get(DRIVER)
    if known is None:  # asking for it costs a greenlet; what is noted here goes with the connection
        known = session.info[DRIVER] = (await session.get_raw_connection()).driver_connection
        assert known is not None
    return known


async def plan_by_values(session: Session) -> None:
    """From here on statements are planned for their values, whatever the transaction began with: a large scope's."""
    await (await driver(session)).execute(BY_VALUES)


async def _commit(session: Session) -> None:
    try:
        await (await driver(session)).execute("COMMIT")
    except (*LOST, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError) as exc:
        raise OutcomeUnknown(
            "The connection was lost while committing; repeat with the same Idempotency-Key to learn the outcome.",
            retry_after_s=RETRY_AFTER_S,
        ) from exc
    except asyncpg.PostgresError as exc:  # a deferred constraint, or a cancelled statement: nothing was written
        raise _named(exc) from exc


async def _abandon(session: Session) -> None:
    """Rolls back; a connection that cannot even do that is thrown away, never given back with an open transaction."""
    with suppress(BaseException):
        raw = await driver(session)
        if not raw.is_closed():  # even when it seems idle: the driver does not know of a BEGIN it did not wait for
            await asyncio.shield(asyncio.wait_for(raw.execute("ROLLBACK"), 2.0))
        if not raw.is_closed() and not raw.is_in_transaction():
            return
    with suppress(BaseException):
        await session.invalidate()


class translated:  # noqa: N801 - reads as a statement: with translated()
    """A context that turns driver errors into ours, so that no SQL and no parameter leaves db/."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, ServiceError | asyncio.CancelledError):
            return
        if isinstance(error, sa_exc.TimeoutError):
            raise StoreUnavailable("Every database connection is busy.", retry_after_s=RETRY_AFTER_S) from error
        if isinstance(error, sa_exc.DBAPIError) and error.connection_invalidated:
            raise StoreUnavailable("The database cannot be reached.", retry_after_s=RETRY_AFTER_S) from error
        cause = getattr(getattr(error, "orig", None), "__cause__", None) or error
        if isinstance(cause, LOST):
            raise StoreUnavailable("The database cannot be reached.", retry_after_s=RETRY_AFTER_S) from error
        if isinstance(cause, asyncpg.UniqueViolationError) and cause.constraint_name in CLASHES:
            raise CLASHES[cause.constraint_name]() from error
        if isinstance(cause, asyncpg.PostgresError) and _is_ours(cause):
            raise _named(cause) from error


def _is_ours(error: asyncpg.PostgresError) -> bool:
    state = error.sqlstate or ""
    return state in {LOCK_TIMEOUT, QUERY_CANCELLED, DEADLOCK} | SHUTTING_DOWN or state.startswith("53")


def _named(error: asyncpg.PostgresError) -> StoreUnavailable:
    if error.sqlstate == LOCK_TIMEOUT:
        return StoreUnavailable("Another write to this scope takes too long.", retry_after_s=RETRY_AFTER_S)
    if error.sqlstate == DEADLOCK:
        return StoreUnavailable("Two writes waited for each other and this one gave way.", retry_after_s=RETRY_AFTER_S)
    if error.sqlstate == QUERY_CANCELLED:
        return StoreUnavailable("The database took too long.", retry_after_s=RETRY_AFTER_S)
    return StoreUnavailable("The database cannot do this right now.", retry_after_s=RETRY_AFTER_S)


def connect_arguments(access: Access) -> dict[str, Any]:
    """What asyncpg is told. Behind a transaction pooler: unnamed statements and no start-up settings (B23)."""
    if access.pooled:
        return {
            "statement_cache_size": 0,
            "prepared_statement_cache_size": 0,
            "prepared_statement_name_func": lambda: "",
        }
    settings: Mapping[str, str] = {"application_name": "loxodon", **roles.SESSION_SETTINGS}
    return {
        "server_settings": {**settings, **({"role": access.role} if access.role else {})},
        "max_cached_statement_lifetime": KEPT_S,
        "max_cacheable_statement_size": LONGEST_KEPT,
    }


async def find_access(url: str, *, wanted_role: str, own_login: bool, pooled: bool) -> Access:
    """How to connect with `url`: as it is, or, when it is the owner's or a superuser's, as `wanted_role` (A4).

    `own_login`: the owner has a URL of its own, so this one is taken as it is. Raises StoreUnavailable when the role
    that results must not serve requests.
    """
    engine = create_async_engine(url, connect_args={"timeout": 10}, pool_size=1)
    try:
        with translated():
            async with engine.connect() as session:
                privileged = await session.scalar(text(roles.FORBIDDEN))
                login = await session.scalar(text("SELECT current_user"))
                may_take = await session.scalar(text(roles.MAY_TAKE), {"wanted": wanted_role})
                migrated = await session.scalar(text("SELECT to_regprocedure('public.schema_revision()') IS NOT NULL"))
    finally:
        await engine.dispose()
    if not migrated:
        raise SchemaMismatch(NO_SCHEMA)
    if privileged and (own_login or pooled):
        raise StoreUnavailable(
            f"The database role {login} {privileged}: row-level security would not hold. Use a role that is only a "
            f"member of {wanted_role}."
        )
    if privileged and not may_take:
        raise StoreUnavailable(
            f"The database role {login} {privileged} and may not become {wanted_role}: GRANT {wanted_role} TO {login}."
        )
    return Access(url, wanted_role if privileged else None, pooled)


async def check_role(database: Database) -> None:
    """Refuses to serve under a role that row-level security does not hold back."""
    async with database.read() as session:
        privileged = await session.scalar(text(roles.FORBIDDEN))
    if privileged:
        raise StoreUnavailable(f"The current database role {privileged}: row-level security would not hold.")


__all__ = ["Access", "Database", "Session", "check_role", "find_access", "holding"]

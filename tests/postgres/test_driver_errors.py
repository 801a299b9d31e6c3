"""Every error of the driver as ours: what a client may repeat is 503, whichever way it is reported."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest
import sqlalchemy.exc
from asyncpg.exceptions import _base  # type: ignore[import-untyped]

from service.domain.errors import OutcomeUnknown, StoreUnavailable
from service.postgres import driver_errors, engine
from service.postgres.engine import Database, Session, driver
from service.postgres.roles import APP
from tests.conftest import open_as

GONE: list[Exception] = [
    OSError("Network is unreachable"),
    ConnectionResetError(104, "Connection reset by peer"),
    BrokenPipeError(),
    TimeoutError("gone"),
    EOFError("gone"),
    ssl.SSLError("record layer failure"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InternalClientError("got result for unknown protocol state 0"),
    _base.ProtocolError("unexpected message"),
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.ConnectionFailureError("gone"),
    asyncpg.ClientCannotConnectError("gone"),
    asyncpg.CannotConnectNowError("the database system is starting up"),
    asyncpg.AdminShutdownError("terminating connection due to unexpected postmaster exit"),
    asyncpg.CrashShutdownError("gone"),
    asyncpg.DatabaseDroppedError("gone"),
    asyncpg.IdleSessionTimeoutError("gone"),
    asyncpg.IdleInTransactionSessionTimeoutError("gone"),
    sqlalchemy.exc.PendingRollbackError("Can't reconnect until invalid transaction is rolled back."),
    sqlalchemy.exc.ResourceClosedError("This Connection is closed"),
    sqlalchemy.exc.DBAPIError("SELECT 1", None, Exception("gone"), connection_invalidated=True),
]
PASSING: list[Exception] = [
    asyncpg.TooManyConnectionsError("gone"),
    asyncpg.DiskFullError("gone"),
    asyncpg.ReadOnlySQLTransactionError("gone"),
    asyncpg.OutOfMemoryError("gone"),
    asyncpg.SerializationError("gone"),
    asyncpg.PostgresIOError("gone"),
    asyncpg.QueryCanceledError("gone"),
]


def named(error: Exception) -> str:
    return type(error).__name__


@pytest.fixture
async def own(owner_url: str) -> AsyncIterator[Database]:
    async with open_as(owner_url, APP, size=2) as database:
        yield database


@pytest.mark.parametrize("error", [*GONE, *PASSING], ids=named)
async def test_in_a_statement(own: Database, workspace: UUID, error: Exception) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        async with own.begin(workspace):
            raise error
    assert raised.value.retry_after_s
    async with own.read(workspace) as session:
        assert await (await driver(session)).fetchval("SELECT 1") == 1


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (asyncpg.DiskFullError("gone"), "disk space"),
        (asyncpg.ReadOnlySQLTransactionError("gone"), "read-only"),
        (asyncpg.OutOfMemoryError("gone"), "SQLSTATE 53200"),
    ],
)
async def test_the_sentence_says_why(own: Database, workspace: UUID, error: Exception, why: str) -> None:
    with pytest.raises(StoreUnavailable, match=why):
        async with own.begin(workspace):
            raise error


@pytest.mark.parametrize("error", GONE, ids=named)
@pytest.mark.parametrize("writes", [True, False])
async def test_in_commit(own: Database, workspace: UUID, error: Exception, writes: bool) -> None:
    """A write may have been committed, and a read has nothing to commit."""
    with pytest.raises(OutcomeUnknown if writes else StoreUnavailable):
        async with own.begin(workspace) if writes else own.read(workspace) as session:
            session.info[driver_errors.DRIVER] = _Failing(await driver(session), "COMMIT", error)
    async with own.read(workspace) as session:
        assert await (await driver(session)).fetchval("SELECT 1") == 1


@pytest.mark.parametrize("error", PASSING, ids=named)
async def test_refused_commit(own: Database, workspace: UUID, error: Exception) -> None:
    with pytest.raises(StoreUnavailable):
        async with own.begin(workspace) as session:
            session.info[driver_errors.DRIVER] = _Failing(await driver(session), "COMMIT", error)


@pytest.mark.parametrize("error", GONE, ids=named)
async def test_in_begin(own: Database, workspace: UUID, error: Exception) -> None:
    """Each connection of the pool is tried, as it may be dead, and one more."""
    known = engine.driver

    async def failing(session: Session) -> Any:
        return _Failing(await known(session), "BEGIN", error)

    with patch.object(engine, "driver", failing), pytest.raises(StoreUnavailable):
        async with own.read(workspace):
            pass
    async with own.read(workspace) as session:
        assert await (await driver(session)).fetchval("SELECT 1") == 1


@pytest.mark.parametrize("error", [*GONE, *PASSING, asyncpg.InvalidPasswordError("gone")], ids=named)
async def test_at_connecting(own: Database, workspace: UUID, error: Exception) -> None:
    with patch.object(asyncpg, "connect", side_effect=error), pytest.raises(StoreUnavailable):
        async with own.read(workspace):
            pass


async def test_whatever_a_dead_connection_raises(own: Database, workspace: UUID) -> None:
    with pytest.raises(StoreUnavailable):
        async with own.read(workspace) as session:
            await _broken(await driver(session))


async def test_a_bug_stays_a_bug(own: Database, workspace: UUID) -> None:
    with pytest.raises(ZeroDivisionError):
        async with own.read(workspace):
            raise ZeroDivisionError


async def _broken(connection: Any) -> None:
    connection.terminate()
    raise AttributeError("'NoneType' object has no attribute 'write'")


class _Failing:
    """A driver's connection on which a statement fails once."""

    def __init__(self, connection: Any, statement: str, error: Exception) -> None:
        self._connection, self._statement, self._error = connection, statement, error
        self._has_failed = False

    async def execute(self, statement: str, *_: Any) -> Any:
        if statement.startswith(self._statement) and not self._has_failed:
            self._has_failed = True
            raise self._error
        return await self._connection.execute(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

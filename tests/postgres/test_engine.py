from __future__ import annotations

from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

from service.access.statements import keys
from service.postgres.engine import Database, driver, in_transaction
from service.postgres.roles import APP
from tests.conftest import THROUGH_POOLER, open_as


async def test_in_transaction_inside_a_transaction_only(database: Database, workspace: UUID) -> None:
    assert not in_transaction()
    async with database.read(workspace):
        assert in_transaction()
    assert not in_transaction()


async def test_a_read_cannot_write(database: Database, workspace: UUID) -> None:
    with pytest.raises(Exception, match="read-only"):
        async with database.read(workspace) as session:
            await session.execute(text("UPDATE workspace SET name = 'x'"))


async def test_a_failed_block_rolls_back(database: Database, workspace: UUID) -> None:

    async def failing() -> None:
        async with database.begin(workspace) as session:
            await session.execute(text("UPDATE workspace SET name = 'changed'"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await failing()
    async with database.read(workspace) as session:
        assert (await keys.workspace(session)).name == "test"


async def test_connections_that_died_in_the_pool_are_replaced(owner_url: str) -> None:
    async with open_as(owner_url, APP, size=3) as database:
        pids = await _use_all(database)
        owner = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
        for pid in pids:
            await owner.execute("SELECT pg_terminate_backend($1, 5000)", pid)
        await owner.close()
        async with database.read() as session:
            assert await session.scalar(text("SELECT pg_backend_pid()")) not in pids


async def test_the_connection_used_last_is_used_first(owner_url: str) -> None:
    async with open_as(owner_url, APP, size=3) as database:
        pids, seen = await _use_all(database), set()
        for _ in range(3):
            async with database.read() as session:
                seen.add(await session.scalar(text("SELECT pg_backend_pid()")))
    assert seen == {pids[-1]}


async def _use_all(database: Database) -> list[int]:
    """The processes of all connections of the pool, in the order in which they were given back."""
    connections = [await database.pool.take() for _ in range(database.pool.size)]
    pids = [await each.scalar(text("SELECT pg_backend_pid()")) for each in connections]
    for each in connections:
        await each.close()
    return pids


@pytest.mark.skipif(THROUGH_POOLER, reason="through a pooler no statement is prepared")
async def test_a_long_statement_stays_prepared(database: Database, workspace: UUID) -> None:
    long = f"SELECT {' + '.join(['CAST($1 AS integer)'] * 1_000)}"
    async with database.read(workspace) as session:
        raw = await driver(session)
        assert await raw.fetchval(long, 1) == 1_000
        kept = text("SELECT count(*) FROM pg_prepared_statements WHERE length(statement) = :length")
        assert await session.scalar(kept, {"length": len(long)}) == 1

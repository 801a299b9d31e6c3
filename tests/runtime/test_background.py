"""The log of reads and the counter of uses: written later, without a read ever waiting or failing for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.domain.errors import LockedOut, StoreUnavailable
from service.domain.scope import Scope
from service.postgres.engine import Database, Session
from service.runtime.background import BATCH, ReadLog, UseCounter, in_background
from service.runtime.statements.audit import AuditEntry
from tests.conftest import Tenant
from tests.support.workers import fetch


def entry(workspace_id: UUID, number: int = 0) -> AuditEntry:
    return AuditEntry("retrieve", "semantic", Scope(workspace_id, "alice"), result_count=number)


async def counts(database: Database, workspace_id: UUID) -> list[int]:
    """The numbers of the entries written, in their order."""
    rows = await fetch(database, workspace_id, "SELECT result_count FROM audit_log ORDER BY recorded_at, id")
    return [row.result_count for row in rows]


class UnavailableDatabase(Database):
    """A database that comes back when it is told to."""

    def __init__(self, real: Database) -> None:
        self.real = real
        self.unavailable = True

    @asynccontextmanager
    async def begin(self, *asked: Any, **more: Any) -> AsyncIterator[Session]:
        if self.unavailable:
            raise StoreUnavailable("unavailable")
        async with self.real.begin(*asked, **more) as session:
            yield session


async def test_batches_of_all_workspaces_in_their_order(database: Database, tenant: Tenant, stranger: Tenant) -> None:
    log = ReadLog(database)
    for number in range(BATCH + 50):
        log.add(entry(tenant.workspace_id, number))
        log.add(entry(stranger.workspace_id, number))
    await log.flush()
    for workspace_id in (tenant.workspace_id, stranger.workspace_id):
        assert await counts(database, workspace_id) == list(range(BATCH + 50))


async def test_the_oldest_give_way_and_are_counted(database: Database, workspace: UUID) -> None:
    log = ReadLog(database, capacity=3)
    for number in range(5):
        log.add(entry(workspace, number))
    await log.flush()
    assert (log.dropped, await counts(database, workspace)) == (2, [2, 3, 4])


async def test_what_cannot_be_written_waits(database: Database, workspace: UUID) -> None:
    flaky = UnavailableDatabase(database)
    log = ReadLog(flaky, capacity=4)
    for number in range(3):
        log.add(entry(workspace, number))
    with pytest.raises(StoreUnavailable):
        await log.flush()
    for number in (3, 4):
        log.add(entry(workspace, number))
    flaky.unavailable = False
    await log.flush()
    assert (log.dropped, await counts(database, workspace)) == (1, [1, 2, 3, 4])


async def test_it_writes_in_the_background_and_comes_back_by_itself(database: Database, workspace: UUID) -> None:
    flaky = UnavailableDatabase(database)
    log = ReadLog(flaky, pause_s=0.01)
    running = asyncio.create_task(log.run())
    log.add(entry(workspace, 7))
    await asyncio.sleep(0.1)
    flaky.unavailable = False
    for _ in range(200):
        if await counts(database, workspace):
            break
        await asyncio.sleep(0.02)
    running.cancel()
    assert await counts(database, workspace) == [7]


async def test_nothing_is_lost_at_shutdown(database: Database, workspace: UUID) -> None:
    async with in_background(ReadLog(database)) as log:
        for number in range(10):
            log.add(entry(workspace, number))
    assert await counts(database, workspace) == list(range(10))


# -- the counter of uses -----------------------------------------------------------------------------------------------

AT = datetime(2026, 3, 2, tzinfo=UTC)
SEED = """
INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source, importance,
                    importance_level, "timestamp", embedding_status, created_at, updated_at)
VALUES (:workspace, :id, 'u', 'x', :hash, 'Context', 1, 'pattern', 0.5, 5, now(), 'queued', now(), now())
"""


async def stored(database: Database, workspace_id: UUID) -> UUID:
    """A memory, an hour before it is used."""
    memory_id = uuid4()
    async with database.begin(workspace_id) as session:
        await session.execute(text(SEED), {"workspace": workspace_id, "id": memory_id, "hash": memory_id.hex})
        await session.execute(
            text("INSERT INTO memory_stat (workspace_id, memory_id, last_accessed) VALUES (:w, :id, :at)"),
            {"w": workspace_id, "id": memory_id, "at": AT - timedelta(hours=1)},
        )
    return memory_id


async def uses_of(database: Database, workspace_id: UUID, memory_id: UUID) -> tuple[int, datetime]:
    async with database.read(workspace_id) as session:
        row = (
            await session.execute(
                text("SELECT access_count, last_accessed FROM memory_stat WHERE memory_id = :id"), {"id": memory_id}
            )
        ).one()
    return row[0], row[1]


async def test_uses_add_up_and_the_last_one_stays(database: Database, tenant: Tenant, stranger: Tenant) -> None:
    uses = UseCounter(database)
    mine, theirs = await stored(database, tenant.workspace_id), await stored(database, stranger.workspace_id)
    for minutes in (5, 0, 3):
        uses.add(tenant.workspace_id, [mine, uuid4()], AT + timedelta(minutes=minutes))
    uses.add(stranger.workspace_id, [theirs, mine], AT - timedelta(days=1))
    await uses.flush()
    assert await uses_of(database, tenant.workspace_id, mine) == (3, AT + timedelta(minutes=5))
    assert await uses_of(database, stranger.workspace_id, theirs) == (1, AT - timedelta(hours=1))


async def test_nothing_is_lost_while_the_database_is_unavailable(database: Database, workspace: UUID) -> None:
    flaky = UnavailableDatabase(database)
    uses = UseCounter(flaky)
    memory_id = await stored(database, workspace)
    uses.add(workspace, [memory_id], AT)
    with pytest.raises(StoreUnavailable):
        await uses.flush()
    uses.add(workspace, [memory_id], AT)
    flaky.unavailable = False
    await uses.flush()
    assert (await uses_of(database, workspace, memory_id))[0] == 2


async def test_of_too_many_the_oldest_are_not_counted(database: Database, workspace: UUID) -> None:
    uses = UseCounter(database, capacity=2)
    memory_id = await stored(database, workspace)
    uses.add(workspace, [uuid4(), memory_id, uuid4()], AT)
    uses.add(workspace, [memory_id], AT)
    assert uses.dropped == 1
    await uses.flush()
    assert (await uses_of(database, workspace, memory_id))[0] == 2


async def test_it_gives_way_to_a_request_that_holds_a_memory(database: Database, workspace: UUID) -> None:
    uses = UseCounter(database)
    memory_id = await stored(database, workspace)
    uses.add(workspace, [memory_id], AT)
    async with database.begin(workspace) as session:
        await session.execute(text("SELECT FROM memory_stat WHERE memory_id = :id FOR UPDATE"), {"id": memory_id})
        with pytest.raises(LockedOut):
            await asyncio.wait_for(uses.flush(), 0.9)  # before Postgres looks for a circle
    await uses.flush()
    assert (await uses_of(database, workspace, memory_id))[0] == 1

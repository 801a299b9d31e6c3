"""The log of reads: written later, without a read ever waiting or failing for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from sqlalchemy import text

from service.access.write_behind import BATCH, ReadLog, in_background
from service.domain.errors import StoreUnavailable
from service.domain.scope import Scope
from service.postgres.engine import Database, Session
from service.runtime.statements.audit import AuditEntry
from tests.conftest import Tenant


def entry(workspace_id: UUID, number: int = 0) -> AuditEntry:
    return AuditEntry("retrieve", "semantic", Scope(workspace_id, "alice"), result_count=number)


async def counts(database: Database, workspace_id: UUID) -> list[int]:
    """The numbers of the entries written, in their order."""
    async with database.read(workspace_id) as session:
        return list(await session.scalars(text("SELECT result_count FROM audit_log ORDER BY recorded_at, id")))


class UnavailableDatabase(Database):
    """A database that comes back when it is told to."""

    def __init__(self, real: Database) -> None:
        self.real = real
        self.unavailable = True

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
        if self.unavailable:
            raise StoreUnavailable("unavailable")
        async with self.real.begin(workspace_id, lock, generic_plans=generic_plans) as session:
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

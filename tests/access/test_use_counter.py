"""The counter of uses: it adds up, writes later, and never keeps a read waiting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.access.write_behind import UseCounter
from service.domain.errors import LockedOut, StoreUnavailable
from service.postgres.engine import Database
from tests.access.test_write_behind import UnavailableDatabase
from tests.conftest import Tenant

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


async def counts(database: Database, workspace_id: UUID, memory_id: UUID) -> tuple[int, datetime]:
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
    assert await counts(database, tenant.workspace_id, mine) == (3, AT + timedelta(minutes=5))
    assert await counts(database, stranger.workspace_id, theirs) == (1, AT - timedelta(hours=1))


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
    assert (await counts(database, workspace, memory_id))[0] == 2


async def test_too_many_are_not_counted(database: Database, workspace: UUID) -> None:
    uses = UseCounter(database, capacity=2)
    memory_id = await stored(database, workspace)
    uses.add(workspace, [memory_id, uuid4(), uuid4()], AT)
    uses.add(workspace, [memory_id], AT)
    assert uses.dropped == 1
    await uses.flush()
    assert (await counts(database, workspace, memory_id))[0] == 2


async def test_it_gives_way_to_a_request_that_holds_a_memory(database: Database, workspace: UUID) -> None:
    uses = UseCounter(database)
    memory_id = await stored(database, workspace)
    uses.add(workspace, [memory_id], AT)
    async with database.begin(workspace) as session:
        await session.execute(text("SELECT FROM memory_stat WHERE memory_id = :id FOR UPDATE"), {"id": memory_id})
        with pytest.raises(LockedOut):
            await asyncio.wait_for(uses.flush(), 0.9)  # before Postgres looks for a circle
    await uses.flush()
    assert (await counts(database, workspace, memory_id))[0] == 1

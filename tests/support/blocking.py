"""A transaction that is in the way of whatever the test does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from tests.support.application import Tables

ON_ONE_SERVER = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
WAITING = "SELECT count(*) FROM citus_lock_waits" if "CITUS_BIN" in os.environ else ON_ONE_SERVER


@asynccontextmanager
async def blocking(
    owner_url: str, tables: Tables, sql: str, workspace: UUID, first: str, *then: str
) -> AsyncIterator[None]:
    """Runs `sql` for the workspace and its first memory, and for the others as soon as somebody waits for it; then it
    commits."""

    async def go_on() -> None:
        while not await tables.value(WAITING):  # noqa: ASYNC110 - nothing in this process tells of it
            await asyncio.sleep(0.01)
        for each in then:
            await connection.execute(sql, workspace, UUID(each))
        await transaction.commit()

    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(sql, workspace, UUID(first))
    going_on = asyncio.create_task(go_on())
    try:
        yield
        await asyncio.wait_for(going_on, 10)
    finally:
        going_on.cancel()
        await connection.close()

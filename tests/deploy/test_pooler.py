"""Several processes behind one PgBouncer, where one is installed."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from sqlalchemy import text

from service.postgres import readiness
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import APP
from tests.support.pooler import PGBOUNCER, pooling

SERVERS = 2
"""Connections to Postgres, far fewer than the service opens: so each is used by many in turn."""


@pytest.mark.skipif(PGBOUNCER is None, reason="needs PgBouncer: apt-get install pgbouncer")
async def test_processes_share_connections_and_nothing_else(owner_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several start one after the other on the same connections, and none finds what another has set."""

    async def found_own(database: Database) -> bool:
        workspace = uuid4()
        async with database.read(workspace) as session:
            found = await session.scalar(text("SELECT current_setting('loxodon.workspace')"))
            await session.execute(text("SELECT count(*) FROM memory WHERE user_id = :user"), {"user": "alice"})
        return bool(found == str(workspace))

    processes = []
    with pooling(owner_url, servers=SERVERS) as pooled_url:
        try:
            for _ in range(3):
                monkeypatch.setattr("asyncpg.connection._uid", 0)  # each process names its statements from one on
                access = await find_access(pooled_url, wanted_role=APP, pooled=True)
                processes.append(Database(access, pool_size=4, pool_timeout_s=30))
            for each in processes:
                await readiness.check(each)
            assert all(await asyncio.gather(*(found_own(each) for each in processes * 10)))
        finally:
            for each in processes:
                await each.close()

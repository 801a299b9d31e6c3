"""A managed Postgres, where nobody is superuser and one login does everything."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

from service.db import migrate
from service.db.engine import Database, check_role, find_access
from service.db.roles import APP, WORKER
from service.launch.postgres import EmbeddedPostgres
from service.settings import Settings


@pytest.fixture(scope="module")
def fresh_url() -> Iterator[str]:
    """A server that has never seen the service: roles are cluster-wide, so the common one will not do."""
    with tempfile.TemporaryDirectory(prefix="loxodon-tests-") as folder:
        server = EmbeddedPostgres(Path(folder), settings={"fsync": "off", "synchronous_commit": "off"})
        try:
            yield server.start().url()
        finally:
            server.stop()


async def test_one_login_that_may_create_roles_is_enough(fresh_url: str, settings: Settings) -> None:
    admin = await asyncpg.connect(fresh_url.replace("+asyncpg", ""))
    await admin.execute("CREATE ROLE tenant_admin LOGIN CREATEROLE; ALTER DATABASE loxodon OWNER TO tenant_admin")
    await admin.execute("CREATE EXTENSION vector")  # as providers do it where it is not a trusted one
    await admin.close()
    url = fresh_url.replace("//postgres@", "//tenant_admin@")
    await migrate.upgrade_async(url, settings)
    await migrate.upgrade_async(url, settings)
    for role in (APP, WORKER):
        access = await find_access(url, wanted_role=role, own_login=False, pooled=False)
        database = Database.open(access, pool_size=1, pool_timeout_s=5)
        await check_role(database)
        async with database.read() as session:
            assert await session.scalar(text("SELECT current_user")) == role
        await database.close()

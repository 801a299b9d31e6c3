"""The schema as its superuser sees it, and as the roles that serve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.superuser import login_url
from service.postgres.engine import Access, Database
from service.postgres.roles import OWNER


@pytest.fixture(scope="session")
async def superuser(owner_url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    yield connection
    await connection.close()


@pytest.fixture(scope="session")
async def owner_database(owner_url: str) -> AsyncIterator[Database]:
    """As the owner of the tables, who sees every workspace."""
    access = Access(login_url(owner_url, OWNER))
    database = Database(access, pool_size=2, pool_timeout_s=10)
    yield database
    await database.close()

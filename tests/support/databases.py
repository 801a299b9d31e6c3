"""Databases of a test's own: on its server, or on every node where CITUS_BIN names the programs of a Citus cluster."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import TextClause, text

from bench import superuser
from tests.support import citus


async def new_database(superuser_url: str, name: str) -> str:
    """Makes a database that can be migrated. Returns its superuser's URL."""
    make = citus.new_database if "CITUS_BIN" in os.environ else superuser.new_database
    return await make(superuser_url, name)


@asynccontextmanager
async def own_database(superuser_url: str, name: str) -> AsyncIterator[tuple[str, asyncpg.Connection[Any]]]:
    """A new database that goes with the block: its superuser's URL and a connection."""
    if "CITUS_BIN" not in os.environ:
        async with superuser.own_database(superuser_url, name) as found:
            yield found
        return
    url = await citus.new_database(superuser_url, name)
    try:
        connection = await asyncpg.connect(citus.plain(url))
        yield url, connection
        await connection.close()
    finally:
        await citus.drop_database(superuser_url, name)


def of_workspace(sql: str, workspace: UUID) -> TextClause:
    """A statement of this workspace's own. A session keeps the plan of a statement without parameters, and on Citus a
    plan finds rows of the workspace only for which it was made."""
    return text(f"{sql} -- {workspace}")

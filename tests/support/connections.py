"""A connection of the pool without a transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.postgres.engine import Database, Session


@asynccontextmanager
async def pooled(database: Database) -> AsyncIterator[Session]:
    connection = await database.pool.take()
    try:
        yield connection
    finally:
        await connection.close()

"""How is the database?"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from service.db.engine import Database

READ = text(
    """
    SELECT split_part(current_setting('server_version'), ' ', 1) AS postgres,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           (SELECT revision FROM schema_revision()) AS schema_version,
           queue_depth() AS queue_depth
    """
)


@dataclass(frozen=True, slots=True)
class Status:
    """Versions, and how many jobs are due in all workspaces."""

    postgres: str
    pgvector: str
    schema_version: int
    queue_depth: int


async def read(database: Database) -> Status:
    """Raises StoreUnavailable when the database cannot be reached."""
    async with database.read() as session:
        return Status(*(await session.execute(READ)).one())

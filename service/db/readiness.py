"""Whether this version of the service fits the database, and what there is to know of it.

A migration that only adds leaves older code able to read. Code that meets such a database serves reads and refuses
writes; every other difference keeps it from serving (docs/upgrades.md, docs/decisions/028-schema-files.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from service.db.engine import NO_SCHEMA, Database, Session
from service.errors import SchemaMismatch

EXPECTED_REVISION = 1
"""The newest migration in migrations/versions; a test compares them."""

REVISION = text("SELECT revision, oldest_reader FROM schema_revision()")
SERVER = text(
    """
    SELECT split_part(current_setting('server_version'), ' ', 1) AS postgres,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           queue_depth() AS queue_depth
    """
)


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """Versions, and how many jobs are due in all workspaces."""

    revision: int
    postgres: str
    pgvector: str
    queue_depth: int


async def check(database: Database) -> None:
    """Raises SchemaMismatch when this code cannot serve the database, StoreUnavailable when it cannot be reached. Where
    it can only read, `database` refuses writes from now on, and takes them again once the revisions agree."""
    async with database.read() as session:
        await _check(database, session)


async def status(database: Database) -> DatabaseStatus:
    """What `check` looked at and more; raises the same."""
    async with database.read() as session:
        revision = await _check(database, session)
        return DatabaseStatus(revision, *(await session.execute(SERVER)).one())


async def _check(database: Database, session: Session) -> int:
    revision, oldest_reader = await _revision(session)
    database.write_refusal = write_refusal(revision, oldest_reader)
    return revision


async def _revision(session: Session) -> tuple[int, int]:
    try:
        row = (await session.execute(REVISION)).one_or_none()
    except ProgrammingError as exc:  # there is no such function
        raise SchemaMismatch(NO_SCHEMA) from exc
    if row is None:
        raise SchemaMismatch(NO_SCHEMA)
    return row.revision, row.oldest_reader


def write_refusal(revision: int, oldest_reader: int, expected: int = EXPECTED_REVISION) -> str | None:
    """Why code of revision `expected` must not write, None when it may. Raises SchemaMismatch when it cannot read."""
    if revision < expected:
        raise SchemaMismatch(
            f"The database's schema is at revision {revision}, this version of the service needs {expected}. "
            "Run `python -m service migrate` first."
        )
    if oldest_reader > expected:
        raise SchemaMismatch(
            f"The database's schema is at revision {revision}, which this version of the service (revision {expected}) "
            "cannot read. Start the newer version."
        )
    if revision > expected:
        return (
            f"The database's schema is at revision {revision}, this version of the service knows {expected}: it only "
            "serves reads. Start the newer version."
        )
    return None

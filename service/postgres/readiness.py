"""Checks that this version of the service fits the database, and reads the state of the database.

A migration that expands leaves older code able to read and write, so that a new version replaces an old one while both
serve. The database says which code may do what (schema_revision()): code that may only read refuses writes, and code
that cannot read, or is newer than the schema, does not serve (docs/upgrades.md, docs/decisions/028-schema-files.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from service.domain.errors import SchemaMismatch
from service.postgres.engine import NO_SCHEMA, Database, Session

EXPECTED_REVISION = 1
"""The newest migration in migrations/versions; a test compares them."""

REVISION = text("SELECT revision, oldest_reader, oldest_writer FROM schema_revision()")
SERVER = text(
    """
    SELECT split_part(current_setting('server_version'), ' ', 1) AS postgres,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           queue_depth() AS queue_depth
    """
)


BEHIND = "The database's schema is older than this version of the service: run `loxodon migrate`."
AHEAD = "The database's schema is newer than this version of the service can read: start the newer version."


@dataclass(frozen=True, slots=True)
class SchemaRevision:
    """The revision of the database's schema, and the oldest revisions of code that can still read it and write to
    it."""

    number: int
    oldest_reader: int
    oldest_writer: int


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


async def demand_revision(connection: asyncpg.Connection[Any]) -> None:
    """Raises SchemaMismatch where the schema is not of this very version, as commands that read all of it need."""
    if await connection.fetchval("SELECT to_regprocedure('public.schema_revision()')") is None:
        raise SchemaMismatch(NO_SCHEMA)
    revision = await connection.fetchval("SELECT revision FROM schema_revision()")
    if revision != EXPECTED_REVISION:
        raise SchemaMismatch(
            f"The database's schema is at revision {revision}, and this version of Loxodon knows {EXPECTED_REVISION}: "
            "use the version that serves it."
        )


async def status(database: Database) -> DatabaseStatus:
    """Checks the database as `check` does, and returns its versions and due jobs. Raises SchemaMismatch or
    StoreUnavailable."""
    async with database.read() as session:
        revision = await _check(database, session)
        return DatabaseStatus(revision, *(await session.execute(SERVER)).one())


async def _check(database: Database, session: Session) -> int:
    revision = await _revision(session)
    database.write_refusal = write_refusal(revision)
    return revision.number


async def _revision(session: Session) -> SchemaRevision:
    try:
        row = (await session.execute(REVISION)).one_or_none()
    except ProgrammingError as exc:  # the function does not exist
        raise mismatch(NO_SCHEMA, NO_SCHEMA) from exc
    if row is None:
        raise mismatch(NO_SCHEMA, NO_SCHEMA)
    return SchemaRevision(*row)


def write_refusal(revision: SchemaRevision, expected: int = EXPECTED_REVISION) -> str | None:
    """Why code of revision `expected` must not write, None when it may. Raises SchemaMismatch when it cannot read."""
    if revision.number < expected:
        raise mismatch(
            f"The database's schema is at revision {revision.number}, this version of the service needs {expected}. "
            "Run `loxodon migrate` first.",
            BEHIND,
        )
    if revision.oldest_reader > expected:
        raise mismatch(
            f"The database's schema is at revision {revision.number}, which this version of the service (revision "
            f"{expected}) cannot read. Start the newer version.",
            AHEAD,
        )
    if revision.oldest_writer > expected:
        return (
            f"The database's schema is at revision {revision.number}, this version of the service knows {expected}: "
            "it only serves reads. Start the newer version."
        )
    return None


def mismatch(detail: str, public: str) -> SchemaMismatch:
    """A SchemaMismatch with `detail` for the log, and `public`, a sentence for everybody, without numbers."""
    error = SchemaMismatch(detail)
    error.public = public
    return error

"""Checks that this version of the service fits the database, and measures the database: no row of a tenant.

A migration that expands leaves older code able to work, so that a new version replaces an old one while both serve.
The database says which code is too old for it (schema_revision()). That code does not serve, nor does code that is
newer than the schema (docs/upgrades.md, docs/decisions/028-schema-files.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Row, text
from sqlalchemy.exc import NoResultFound, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection

from service.domain.errors import SchemaMismatch, StoreUnavailable
from service.kit import postgres_url
from service.postgres import rights
from service.postgres.driver_errors import unavailable
from service.postgres.engine import Database, Session

EXPECTED_REVISION = 1
"""The newest migration in migrations/versions; a test compares them."""

REVISION = text("SELECT revision, oldest_code FROM schema_revision()")
SERVER = text(
    """
    SELECT (SELECT revision FROM schema_revision()) AS revision,
           split_part(current_setting('server_version'), ' ', 1) AS postgres,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           (SELECT coalesce(sum(jobs), 0)::integer FROM measure_queue() WHERE state = 'due') AS queue_depth
    """
)


NO_SCHEMA = "The database has no schema of this version of the service: run `loxodon migrate`."
BEHIND = "The database's schema is older than this version of the service: run `loxodon migrate`."
AHEAD = "The database's schema is too new for this version of the service: start the newer version."


# Of a standby, and of a server that an operator or a full disk made read-only.
TAKES_WRITES = text("SELECT NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off'")


PROBE_S = 2.0  # the longest that a probe waits for the database


async def check(database: Database, *, within_s: float | None = None, writes: bool = False) -> None:
    """Raises SchemaMismatch when this code cannot serve the database, StoreUnavailable when it cannot be reached in
    time, or with `writes` takes none."""
    async with _checked(database, within_s) as session:
        if writes and not await session.scalar(TAKES_WRITES):
            raise unavailable("read_only")


SESSION_SETTINGS = {"timezone": "UTC", "jit": "off", "work_mem": "64MB"}
"""Settings of commands that read all of the database; times are written as they are compared."""


@asynccontextmanager
async def connected(url: str, **settings: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection for a command, with these settings besides SESSION_SETTINGS. Raises StoreUnavailable."""
    with rights.require_usable(url):
        connection = await asyncpg.connect(postgres_url.libpq(url), server_settings={**SESSION_SETTINGS, **settings})
    try:
        yield connection
    finally:
        await connection.close()


async def demand_revision(connection: asyncpg.Connection[Any]) -> None:
    """Raises SchemaMismatch where the schema is not of this very version, as commands that read all of it need."""
    if await connection.fetchval("SELECT to_regprocedure('public.schema_revision()')") is None:
        raise SchemaMismatch(NO_SCHEMA)
    revision = await connection.fetchval("SELECT revision FROM schema_revision()")
    if revision < EXPECTED_REVISION:
        raise SchemaMismatch(BEHIND)
    if revision != EXPECTED_REVISION:
        raise SchemaMismatch(
            f"The database's schema is at revision {revision}, and this version of Loxodon knows {EXPECTED_REVISION}: "
            "use the version that serves it."
        )


async def status(database: Database) -> Row[Any]:
    """Checks the database as a probe does, and returns its versions and due jobs, by the names in SERVER. Raises
    SchemaMismatch or StoreUnavailable."""
    async with _checked(database, PROBE_S) as session:
        return (await session.execute(SERVER)).one()


@asynccontextmanager
async def _checked(database: Database, within_s: float | None) -> AsyncIterator[Session]:
    try:
        async with asyncio.timeout(within_s), database.read() as session:
            await check_session(session)
            yield session
    except TimeoutError:
        raise StoreUnavailable("The database does not answer.") from None


async def check_session(session: AsyncConnection) -> None:
    """Checks the schema as `check` does. Raises SchemaMismatch."""
    try:
        row = (await session.execute(REVISION)).one()
    except (ProgrammingError, NoResultFound) as exc:  # the function does not exist, or alembic_version is empty
        raise SchemaMismatch(NO_SCHEMA) from exc
    check_revision(*row)


def check_revision(number: int, oldest_code: int) -> None:
    """Raises SchemaMismatch when this code cannot serve a schema of revision `number`, which works with `oldest_code`
    and newer."""
    if number < EXPECTED_REVISION:
        raise SchemaMismatch(BEHIND)
    if oldest_code > EXPECTED_REVISION:
        raise SchemaMismatch(AHEAD)


# Jobs of a kind in a state (due, running, dead), and for how long the oldest has been in it.
QUEUE = text("SELECT kind, state, jobs, oldest_s FROM measure_queue()")

# Estimates, as of each table's last VACUUM or ANALYZE. Partitions count as their table; indexes and TOAST count to it.
# A table that was never analysed has no estimate: then the statistics tell how many rows came.
TABLES = text("""
    SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text AS name,
           sum(CASE WHEN c.relkind = 'p' THEN 0
                    WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid) ELSE c.reltuples END)::float8 AS rows,
           sum((c.relpages + coalesce(t.relpages, 0) + coalesce(i.pages, 0))::bigint
               * current_setting('block_size')::bigint)::float8 AS bytes
    FROM pg_class c
    LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    LEFT JOIN LATERAL (
        SELECT sum(x.relpages) AS pages FROM pg_index d JOIN pg_class x ON x.oid = d.indexrelid
        WHERE d.indrelid = c.oid OR d.indrelid = c.reltoastrelid
    ) i ON true
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    GROUP BY 1
""")

# For each job the counts of its last run in every workspace; the lag of consolidate is NULL where nothing was read.
UPKEEP = text("SELECT kind, what, items FROM measure_upkeep()")

"""Runs the migrations.

`upgrade` becomes the owner role and runs Alembic under one lock, so that several starting processes wait for each
other. Roles and extension are there already (roles.bootstrap_sql). docs/upgrades.md
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from alembic import command, context, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from service.domain.errors import SchemaMismatch, StoreUnavailable
from service.kit import shipped
from service.kit.settings import Settings
from service.postgres import citus, rights, roles, tables

MIGRATIONS = shipped.folder("migrations")
MIN_POSTGRES, MIN_PGVECTOR = 160000, (0, 8)
MADE_FROM = text("SELECT obj_description(to_regclass('public.migration'), 'pg_class')")
OTHER_FILES = (
    "Another version of the service made this database, and before the first release nothing migrates it: start that "
    "version, or move the data folder away (name an empty database, if you set DATABASE_URL)."
)


def script(sql: str) -> None:
    """Runs the statements of a migration in its transaction; `:dimension` and `:partitions` stand for the settings."""
    rendered = render(sql, context.config.attributes["settings"])
    raw = op.get_bind().connection.dbapi_connection
    raw.run_async(lambda connection: connection.execute(rendered))  # type: ignore[union-attr]


TRY_LOCK = text("SELECT pg_try_advisory_lock(hashtextextended('loxodon:migrate', 0))")
LOCK_LOOK_S = 0.2


def render(sql: str, settings: Settings) -> str:
    """Fills in the psql variables of `sql`: `:dimension` of generation 1's vectors, `:partitions` by hash of the
    workspace."""
    values = {"dimension": settings.embedder.dim, "partitions": settings.database.vector_partitions}
    return re.sub(r"(?<![\w:]):(dimension|partitions)\b", lambda variable: str(values[variable[1]]), sql)


def config(settings: Settings | None = None, connection: Connection | None = None) -> Config:
    alembic = Config()
    alembic.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    alembic.attributes["settings"] = settings
    alembic.attributes["connection"] = connection
    return alembic


def head() -> str:
    """The newest migration. Alembic is slow to import: the service compares with readiness.EXPECTED_REVISION."""
    revision = _scripts().get_current_head()
    assert revision is not None
    return revision


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(config())


def upgrade(owner_url: str, settings: Settings, revision: str = "head") -> None:
    """Brings the database to `revision`. Raises StoreUnavailable when the server or pgvector is too old, and
    SchemaMismatch when another version of the service has migrated it already."""
    asyncio.run(upgrade_async(owner_url, settings, revision))


async def upgrade_async(owner_url: str, settings: Settings, revision: str = "head") -> None:
    def run(connection: Connection) -> None:
        _check_known(connection)
        connection.commit()  # each migration has a transaction of its own, or none
        command.upgrade(config(settings, connection), revision)
        if revision == "head":
            if citus.is_citus(connection):
                citus.distribute(connection)
            else:
                renumber_feed(connection)

    await run_as_owner(owner_url, run)


async def run_as_owner(url: str, work: Callable[[Connection], None]) -> None:
    """Does the work as the owner of the schema, alone, and commits."""
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        with rights.require_usable(url):
            async with engine.connect() as connection:
                await connection.run_sync(_become_owner)
                await connection.run_sync(work)
                await connection.commit()
    finally:
        await engine.dispose()


def _become_owner(connection: Connection) -> None:
    _check_versions(connection)
    rights.check_owner(connection)
    connection.commit()
    # polled: waiting for the lock would hold a snapshot, and CREATE INDEX CONCURRENTLY waits for all snapshots to end
    while not connection.scalar(TRY_LOCK):
        connection.commit()
        time.sleep(LOCK_LOOK_S)
    if citus.is_citus(connection):
        connection.execute(text("SET citus.propagate_set_commands = 'none'"))
        connection.execute(text("SET citus.enable_unsafe_triggers = on"))
    connection.execute(text(f"SET ROLE {roles.OWNER}"))
    connection.commit()


# ix_memory_history_position: the last entry of each workspace.
RENUMBER_FEED = text("""
    UPDATE memory_history SET position = 0 WHERE EXISTS (
        SELECT FROM workspace w CROSS JOIN LATERAL (
            SELECT h.position FROM memory_history h WHERE h.workspace_id = w.workspace_id
            ORDER BY h.position DESC LIMIT 1) last
        WHERE last.position >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
""")


WEBHOOKS_TO_END = text("UPDATE webhook SET position = 0, seq = (SELECT last_value FROM memory_history_seq)")


def renumber_feed(connection: Connection) -> int:
    """Moves all of history to the start of the change feed, in the order written: after a restore of a dump into
    another server, whose transaction ids start again. Returns how many entries; 0 if none is ahead of the server's
    transaction ids. Webhooks continue with what is written afterwards."""
    count = connection.execute(RENUMBER_FEED).rowcount
    if count:
        connection.execute(WEBHOOKS_TO_END)
    return count


def _check_known(connection: Connection) -> None:
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is not None and revision not in {script.revision for script in _scripts().walk_revisions()}:
        raise SchemaMismatch(
            f"The database's schema is at revision {revision}, which this version of the service (revision {head()}) "
            "does not know. Start the version that made it, or name an empty database."
        )
    if revision == head() == "0001" and connection.scalar(MADE_FROM) != tables.schema_fingerprint():
        raise SchemaMismatch(OTHER_FILES)


def _check_versions(connection: Connection) -> None:
    server = int(connection.scalar(text("SHOW server_version_num")) or 0)
    if server < MIN_POSTGRES:
        raise StoreUnavailable(f"Postgres 16 or newer is needed, this one is {server // 10000}.")
    offered = connection.scalar(text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"))
    if offered is None or tuple(int(part) for part in offered.split(".")[:2]) < MIN_PGVECTOR:
        raise StoreUnavailable(f"pgvector 0.8 or newer is needed, this server offers {offered or 'none'}.")

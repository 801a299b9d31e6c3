"""Runs the migrations, and says what of the schema autogenerate compares.

`upgrade` becomes the owner role and runs Alembic under one lock, so that several starting processes wait for each
other. Roles and extension are there already (roles.bootstrap_sql). docs/upgrades.md
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from alembic import command, context, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from service.db import rights, roles
from service.errors import SchemaMismatch, StoreUnavailable
from service.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
MIN_POSTGRES, MIN_PGVECTOR = 160000, (0, 8)

ObjectKind = Literal[
    "schema", "table", "column", "index", "unique_constraint", "foreign_key_constraint", "check_constraint"
]


def is_ours(name: str | None, kind: ObjectKind, _parents: object) -> bool:
    """Whether autogenerate compares it: not partitions (reflected as tables), nor indexes, nor Alembic's own table, nor
    generated columns, which Alembic cannot compare."""
    if kind == "column":
        return name not in GENERATED
    if kind == "table":
        return name not in NOT_MAPPED and not any(name and name.startswith(prefix) for prefix in PARTITION_PREFIXES)
    return kind != "index"


def default_differs(
    _context: object, _there: object, _ours: object, found: str | None, _default: object, written: str | None
) -> bool | None:
    """Compares sequences by their text: Alembic would ask the server whether both values are equal, and no number comes
    twice. None leaves the comparison to Alembic."""
    return found != written if found and found.startswith("nextval(") else None


PARTITION_PREFIXES = (
    "memory_vector_p",
    "turn_vector_p",
    "memory_history_",
    "audit_log_",
    "conversation_log_",
    "tool_invocation_",
)
GENERATED = frozenset({"binary_embedding"})
NOT_MAPPED = frozenset({"partitioned_table", "alembic_version"})


def script(sql: str) -> None:
    """Runs the statements of a migration in its transaction; `:dimension` and `:partitions` stand for the settings."""
    rendered = render(sql, context.config.attributes["settings"])
    raw = op.get_bind().connection.dbapi_connection
    raw.run_async(lambda connection: connection.execute(rendered))  # type: ignore[union-attr]


def render(sql: str, settings: Settings) -> str:
    """`sql` with its psql variables: `:dimension` of generation 1's vectors, `:partitions` by hash of the workspace."""
    values = {"dimension": settings.embedding_dim, "partitions": settings.vector_partitions}
    return re.sub(r"(?<![\w:]):(dimension|partitions)\b", lambda variable: str(values[variable[1]]), sql)


def config(settings: Settings, connection: Connection | None = None) -> Config:
    found = Config(str(ROOT / "alembic.ini"))
    found.attributes["settings"] = settings
    found.attributes["connection"] = connection
    return found


def head() -> str:
    """The newest migration. Alembic is slow to import: the service compares with readiness.EXPECTED_REVISION."""
    revision = _scripts().get_current_head()
    assert revision is not None
    return revision


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(Config(str(ROOT / "alembic.ini")))


def upgrade(owner_url: str, settings: Settings, revision: str = "head") -> None:
    """Brings the database to `revision`. Raises StoreUnavailable when the server or pgvector is too old, and
    SchemaMismatch when another version of the service has migrated it already."""
    asyncio.run(upgrade_async(owner_url, settings, revision))


async def upgrade_async(owner_url: str, settings: Settings, revision: str = "head") -> None:
    def run(connection: Connection) -> None:
        _check_known(connection)
        command.upgrade(config(settings, connection), revision)
        if revision == "head":
            renumber_feed(connection)

    await _as_owner(owner_url, run)


async def downgrade_async(owner_url: str, settings: Settings, revision: str) -> None:
    """Takes the database back to `revision` ("base" empties it); roles stay."""
    await _as_owner(owner_url, lambda connection: command.downgrade(config(settings, connection), revision))


async def _as_owner(url: str, work: Callable[[Connection], None]) -> None:
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        with rights.usable(url):
            async with engine.connect() as connection:
                await connection.run_sync(_become_owner)
                await connection.run_sync(work)
                await connection.commit()
    finally:
        await engine.dispose()


def _become_owner(connection: Connection) -> None:
    _check_versions(connection)
    rights.check_owner(connection)
    connection.execute(text("SELECT pg_advisory_lock(hashtextextended('loxodon:migrate', 0))"))
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


def renumber_feed(connection: Connection) -> int:
    """After a restore from a dump into another server, whose transactions count from their own beginning: puts all of
    history behind each other at the start of the change feed, as it was written. Returns how many entries; 0 where none
    is ahead of the server's count."""
    return connection.execute(RENUMBER_FEED).rowcount


def _check_known(connection: Connection) -> None:
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in {script.revision for script in _scripts().walk_revisions()}:
        raise SchemaMismatch(
            f"The database's schema is at revision {found}, which this version of the service (revision {head()}) does "
            "not know. Start the version that made it, or name an empty database."
        )


def _check_versions(connection: Connection) -> None:
    server = int(connection.scalar(text("SHOW server_version_num")) or 0)
    if server < MIN_POSTGRES:
        raise StoreUnavailable(f"Postgres 16 or newer is needed, this one is {server // 10000}.")
    offered = connection.scalar(text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"))
    if offered is None or tuple(int(part) for part in offered.split(".")[:2]) < MIN_PGVECTOR:
        raise StoreUnavailable(f"pgvector 0.8 or newer is needed, this server offers {offered or 'none'}.")

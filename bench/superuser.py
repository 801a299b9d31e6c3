"""An embedded server that lets its superuser in, for measurements and tests that look past row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from service.launch.postgres import DATABASE
from service.postgres.roles import LOGINS, bootstrap_sql

SUPERUSER = "postgres"
TRUST = "local all all trust\nlocal replication all trust\n"


def trusting(folder: Path) -> dict[str, str]:
    """The setting under which an EmbeddedPostgres trusts everyone who reaches its socket. `folder`: one that is there,
    Postgres may enter."""
    access = folder / "trust.conf"
    access.write_text(TRUST)
    access.chmod(0o644)
    return {"hba_file": str(access)}


def login_url(superuser_url: str, role: str) -> str:
    """The URL of the login that serves as `role`, on a server that trusts."""
    return superuser_url.replace(f"//{SUPERUSER}@", f"//{LOGINS[role]}@")


async def new_database(superuser_url: str, name: str) -> str:
    """Makes a database that can be migrated. Returns its superuser's URL."""
    url = superuser_url.replace(f"/{DATABASE}?", f"/{name}?")
    for each, statements in ((superuser_url, f"CREATE DATABASE {name}"), (url, bootstrap_sql())):
        connection = await asyncpg.connect(each.replace("+asyncpg", ""))
        await connection.execute(statements)
        await connection.close()
    return url


@asynccontextmanager
async def own_database(superuser_url: str, name: str) -> AsyncIterator[tuple[str, asyncpg.Connection[Any]]]:
    """A new database that goes with the block: its superuser's URL and a connection."""
    url = await new_database(superuser_url, name)
    try:
        connection = await asyncpg.connect(url.replace("+asyncpg", ""))
        yield url, connection
        await connection.close()
    finally:
        admin = await asyncpg.connect(superuser_url.replace("+asyncpg", ""))
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()

"""A connection that sees one workspace, for export and import: the worker's login, under row-level security."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from service.command import transfer
from service.command.problems import CommandError
from service.domain.filters import uuid_or_none
from service.kit import postgres_url
from service.postgres import readiness, rights
from service.postgres.roles import URL_VARIABLES, WORKER

SESSION_SETTINGS = {
    "timezone": "UTC",  # times are written as they are compared
    "jit": "off",
    "work_mem": "64MB",
    "idle_in_transaction_session_timeout": "0",  # a slow disk is no reason to lose the snapshot
    "application_name": "loxodon",
}


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection to a database whose schema this version knows. Raises StoreUnavailable or SchemaMismatch, and
    CommandError for failures: the database stops, the disk is full."""
    with rights.require_usable(url):
        connection = await asyncpg.connect(postgres_url.libpq(url), server_settings=SESSION_SETTINGS)
    try:
        await readiness.demand_revision(connection)
        yield connection
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as exc:
        raise CommandError(f"It stopped: {exc}. Give the command again.") from exc
    finally:
        await connection.close()


async def enter(connection: Any, workspace_id: UUID) -> None:
    """Lets the session see this workspace, and write memories that belong to all of it."""
    await connection.execute(
        "SELECT set_config('loxodon.workspace', $1, false), set_config('loxodon.shared', 'on', false)",
        str(workspace_id),
    )


async def exists(connection: Any, workspace_id: UUID) -> bool:
    """Whether there is such a workspace; enters it."""
    await enter(connection, workspace_id)
    return await connection.fetchrow(transfer.WORKSPACE, workspace_id) is not None


async def choose(connection: Any, named: str | None) -> UUID:
    """The workspace with this id or name; without one the only one that there is. Raises CommandError."""
    if named is not None and (as_id := uuid_or_none(named)) is not None:
        if not await exists(connection, as_id):
            raise CommandError(f"There is no workspace {named} in the database.")
        return as_id
    names = await _names(connection)
    ids = [each for each, name in names.items() if named in (None, name)]
    if len(ids) == 1:
        return ids[0]
    listed = "\n".join(f"  {each}  {name}" for each, name in list(names.items())[:20])
    if named is not None:
        problem = f"{len(ids) or 'No'} workspace{'s are' if len(ids) > 1 else ' is'} called {named!r}"
    else:
        problem = "There are several workspaces" if names else "There is no workspace"
    raise CommandError(f"{problem}: name one with --workspace.\n{listed}")


async def _names(connection: Any) -> dict[UUID, str]:
    try:
        ids = [row[0] for row in await connection.fetch(transfer.WORKSPACES)]
    except asyncpg.InsufficientPrivilegeError as exc:
        raise CommandError(
            "This login may not list the workspaces: name one with --workspace, or set "
            f"{URL_VARIABLES[WORKER]} to the worker's login."
        ) from exc
    names = {}
    for each in ids:
        await enter(connection, each)
        names[each] = (await connection.fetchrow(transfer.WORKSPACE, each))["name"]
    return names


async def listing(url: str) -> list[dict[str, Any]]:
    """All workspaces with their names and sizes, as the worker sees them."""
    async with connected(url) as connection:
        entries = []
        for each, name in (await _names(connection)).items():
            await enter(connection, each)
            row = await connection.fetchrow(transfer.SIZE, each)
            entries.append({"id": str(each), "name": name, **row, "created_at": row["created_at"].isoformat()})
        return entries

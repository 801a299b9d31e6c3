"""Reads the shards of a Citus cluster as logins of the service, on each node, past the coordinator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]

from service.launch.postgres import DATABASE

WORKERS = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 AND isactive ORDER BY nodeid"
SHARDS = """
    SELECT c.oid::regclass::text AS name, c.relrowsecurity AND c.relforcerowsecurity AS protected,
           (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive) AS policies,
           (SELECT count(*) FROM pg_policy p JOIN pg_class shell ON shell.oid = p.polrelid
            WHERE shell.relname = regexp_replace(c.relname, '_[0-9]+$', '')
              AND shell.relnamespace = c.relnamespace) AS wanted
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname ~ '_1[0-9]{5}$'
      AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'workspace_id')
    ORDER BY 1
"""
REFUSALS = ("UndefinedObjectError", "InvalidTextRepresentationError", "InsufficientPrivilegeError")
"""Without a workspace: the setting is unknown, or empty after an earlier transaction of the session."""

Fetch = Callable[..., Awaitable[list[Any]]]
"""Returns the rows of a statement on the coordinator."""


@dataclass(slots=True)
class ShardReads:
    """`own`: rows of the workspace that were seen in it; `refused`: reads that found nothing, as they must; `wrong`:
    those that found something."""

    own: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


async def workers(fetch: Fetch) -> list[str]:
    """The address of each worker node, without a login."""
    return [
        f"/{DATABASE}?host={quote(row['nodename'], safe='')}&port={row['nodeport']}" for row in await fetch(WORKERS)
    ]


@asynccontextmanager
async def connected(login: str, node: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    connection = await asyncpg.connect(f"postgresql://{login}@{node}")
    try:
        await connection.execute("SET citus.override_table_visibility = off")
        yield connection
    finally:
        await connection.close()


async def counted(connection: asyncpg.Connection[Any], sql: str, *, settings: str) -> int | str:
    """What the statement counts, or the name of the error, in a transaction with these settings."""
    await connection.execute(f"BEGIN; {settings}")
    try:
        return int(await connection.fetchval(sql))
    except asyncpg.PostgresError as exc:
        return type(exc).__name__
    finally:
        await connection.execute("ROLLBACK")


async def read_shards(fetch: Fetch, login: str, workspace: object, other: object) -> ShardReads:
    """Reads each shard within the workspace, within another one, and within none."""
    reads = ShardReads()
    within, beside = (f"SET LOCAL loxodon.workspace = '{each}'" for each in (workspace, other))
    for node in await workers(fetch):
        async with connected("postgres", node) as superuser:
            shards = [row["name"] for row in await superuser.fetch(SHARDS)]
        async with connected(login, node) as connection:
            for shard in shards:
                rows = f"SELECT count(*) FROM {shard} WHERE workspace_id = '{workspace}'"
                foreign = f"SELECT count(*) FROM {shard} WHERE workspace_id <> '{workspace}'"
                visible = await counted(connection, rows, settings=within)
                reads.own += visible if isinstance(visible, int) else 0
                for sql, settings, allowed in (
                    (rows, beside, (0, "InsufficientPrivilegeError")),
                    (foreign, within, (0, "InsufficientPrivilegeError")),
                    (rows, "", REFUSALS),
                ):
                    seen = await counted(connection, sql, settings=settings)
                    common = shard.startswith("term_stat") and sql is foreign
                    if seen in allowed or common:
                        reads.refused += 1
                    else:
                        reads.wrong.append(f"{login} sees {seen} in {shard}: {settings}; {sql}")
    return reads

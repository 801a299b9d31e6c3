"""One Citus coordinator and two workers, each an embedded server on a socket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]

from bench.superuser import SUPERUSER, trusting
from service.launch.postgres import DATABASE, EmbeddedPostgres, Server
from service.postgres.roles import bootstrap_sql

SETTINGS = {
    "shared_preload_libraries": "citus",
    "citus.shard_count": "8",
    "citus.node_conninfo": "sslmode=disable",
    "citus.allow_nested_distributed_execution": "on",
    "wal_level": "logical",
    "max_logical_replication_workers": "8",
    "max_worker_processes": "24",
    "shared_buffers": "64MB",
    "max_prepared_transactions": "100",
}
"""Those of docs/citus.md, with fewer shards: the machines that run tests are small."""

Address = tuple[str, int]
"""The folder of a node's socket, and its port."""


@contextmanager
def cluster(binaries: Path, folder: Path, settings: dict[str, str], *, workers: int = 2) -> Iterator[str]:
    """Starts the nodes and yields the superuser's URL on the coordinator. `binaries`: of a Postgres that has Citus."""
    with ExitStack() as stack:
        nodes = []
        for number in range(workers + 1):
            data = folder / str(number)
            data.mkdir()
            own = settings | SETTINGS | trusting(data)
            server = EmbeddedPostgres(data, binaries=binaries, settings=own)
            nodes.append(stack.enter_context(server))
        asyncio.run(_join(nodes))
        yield nodes[0].url(SUPERUSER)


async def _join(nodes: list[Server]) -> None:
    for node in nodes:
        connection = await asyncpg.connect(plain(node.url(SUPERUSER)))
        await connection.execute(f"ALTER SYSTEM SET citus.local_hostname = '{node.socket_dir}'")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
    await _prepare(nodes[0].url(SUPERUSER), [(str(node.socket_dir), node.port) for node in nodes])


async def _prepare(url: str, nodes: list[Address]) -> None:
    """Makes the database of the coordinator's URL, which is there on each node, one of the cluster."""
    for node in nodes:
        connection = await asyncpg.connect(at(url, node))
        await connection.execute("CREATE EXTENSION citus")
        await connection.close()
    coordinator = await asyncpg.connect(plain(url))
    await coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *nodes[0])
    for node in nodes[1:]:
        await coordinator.execute("SELECT citus_add_node($1, $2)", *node)
    await coordinator.execute(bootstrap_sql())
    await coordinator.close()


async def new_database(superuser_url: str, name: str) -> str:
    """Makes a database on every node that can be migrated. Returns its superuser's URL on the coordinator."""
    url = superuser_url.replace(f"/{DATABASE}?", f"/{name}?")
    nodes = await _run_on_nodes(superuser_url, f"CREATE DATABASE {name}")
    await _prepare(url, nodes)
    return url


async def drop_database(superuser_url: str, name: str) -> None:
    await _run_on_nodes(superuser_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _run_on_nodes(url: str, statement: str) -> list[Address]:
    """Runs a statement on each node, whose addresses it returns, the coordinator's first."""
    coordinator = await asyncpg.connect(plain(url))
    rows = await coordinator.fetch("SELECT nodename, nodeport FROM pg_dist_node ORDER BY groupid")
    await coordinator.close()
    nodes = [(row["nodename"], row["nodeport"]) for row in rows]
    for node in nodes:
        connection = await asyncpg.connect(at(url, node))
        await connection.execute(statement)
        await connection.close()
    return nodes


def plain(url: str) -> str:
    return url.replace("+asyncpg", "")


def at(url: str, node: Address) -> str:
    """The URL of the same database on a node."""
    return f"{plain(url).partition('?')[0]}?host={quote(node[0], safe='')}&port={node[1]}"

"""One Citus coordinator and two workers, each an embedded server on a socket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]

from bench.superuser import SUPERUSER, trusting
from service.launch.postgres import EmbeddedPostgres, Server
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
        connection = await asyncpg.connect(plain(node))
        await connection.execute("CREATE EXTENSION citus")
        await connection.execute(f"ALTER SYSTEM SET citus.local_hostname = '{node.socket_dir}'")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
    coordinator = await asyncpg.connect(plain(nodes[0]))
    await coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *address(nodes[0]))
    for node in nodes[1:]:
        await coordinator.execute("SELECT citus_add_node($1, $2)", *address(node))
    await coordinator.execute(bootstrap_sql())
    await coordinator.close()


def plain(node: Server) -> str:
    return node.url(SUPERUSER).replace("+asyncpg", "")


def address(node: Server) -> tuple[str, int]:
    return str(node.socket_dir), node.port

"""A Citus coordinator and its workers, each an embedded server on a socket of its own.

with cluster(binaries, folder, {}) as citus: ...
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
    "output_plugin_libraries": "pgoutput, citus",
}
"""Those of docs/citus.md, with fewer shards: the machines that run tests are small."""


Address = tuple[str, int]
"""The folder of a node's socket, and its port."""

SHARD_OF = """
    SELECT s.shardid, worker_hash($1::text::uuid) AS hash, s.shardminvalue::integer AS least,
           s.shardmaxvalue::integer AS most, placed.nodename, placed.nodeport
    FROM pg_dist_shard s JOIN citus_shards placed USING (shardid)
    WHERE s.shardid = get_shard_id_for_distribution_column('memory', $1::text::uuid)
"""
# The parts of a shard that are split off onto its own node cannot be written meanwhile, so all of them go to the other.
SPLIT = """
    SELECT citus_split_shard_by_split_points($1, $2, array_fill(nodeid, ARRAY[$3::integer]), 'force_logical')
    FROM pg_dist_node WHERE nodename = $4 AND nodeport = $5
"""
OTHERS_THERE = """
    SELECT shardid FROM citus_shards WHERE table_name = 'memory'::regclass AND nodename = $2 AND nodeport = $3
    AND shardid <> get_shard_id_for_distribution_column('memory', $1::text::uuid)
"""
MOVE = "SELECT citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')"
SENT_TO = re.compile(r"\[(\d+)\] DETAIL:  on server loxodon_\w+@(.+):\d+ connectionId")
NOTES_USE = re.compile(r"\[(\d+)\] NOTICE:  issuing .*public\.api_key_")


@dataclass(frozen=True, slots=True)
class Node:
    """A server of the cluster."""

    postgres: EmbeddedPostgres
    server: Server

    @property
    def url(self) -> str:
        """The superuser's, for asyncpg."""
        return self.server.url(SUPERUSER).replace("+asyncpg", "")

    @property
    def address(self) -> Address:
        return str(self.server.socket_dir), self.server.port


@dataclass(frozen=True, slots=True)
class Cluster:
    """`nodes`: the coordinator and the workers, also those that have not joined yet."""

    nodes: list[Node]

    @property
    def url(self) -> str:
        """The superuser's on the coordinator, for SQLAlchemy."""
        return self.nodes[0].server.url(SUPERUSER)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        """A connection of the superuser to the coordinator."""
        connection = await asyncpg.connect(self.nodes[0].url)
        try:
            yield connection
        finally:
            await connection.close()

    @property
    def log(self) -> Path:
        """The coordinator's."""
        return self.nodes[0].postgres.log

    async def join(self, node: Node) -> None:
        """Makes the node a worker, with the tables that every node has a copy of."""
        async with self.connected() as coordinator:
            await coordinator.execute("SELECT citus_add_node($1, $2)", *node.address)
            await coordinator.execute("SELECT replicate_reference_tables('force_logical')")

    async def rebalance(self) -> None:
        start = "SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')"
        async with self.connected() as coordinator:
            await coordinator.execute("SELECT citus_job_wait($1)", await coordinator.fetchval(start))

    async def isolate(self, workspace: str, node: Node) -> None:
        """Splits the workspace's shard onto the node, then moves what is not the workspace's back."""
        async with self.connected() as coordinator:
            shard = await coordinator.fetchrow(SHARD_OF, workspace)
            ends = shard["hash"] - 1, shard["hash"]
            points = [str(each) for each in ends if shard["least"] <= each < shard["most"]]
            await coordinator.execute(SPLIT, shard["shardid"], points, len(points) + 1, *node.address)
            for other in await coordinator.fetch(OTHERS_THERE, workspace, *node.address):
                back = shard["nodename"], shard["nodeport"]
                await coordinator.execute(MOVE, other["shardid"], *node.address, *back)

    async def log_round_trips(self, switch: Literal["on", "off"]) -> None:
        """Lets the coordinator log what it sends to workers, or no longer."""
        level = "notice" if switch == "on" else "warning"
        async with self.connected() as coordinator:
            await coordinator.execute(f"ALTER SYSTEM SET citus.log_remote_commands = {switch}")
            await coordinator.execute(f"ALTER SYSTEM SET log_min_messages = {level}")
            await coordinator.execute("SELECT pg_reload_conf()")
        await asyncio.sleep(1)

    def round_trips(self, begin: int) -> list[str]:
        """The workers to which the coordinator sent something for the service since its log had so many bytes. What
        notes the uses of keys, now and then, is left out: every node has these."""
        lines = self.log.read_bytes()[begin:].decode(errors="replace")
        others = NOTES_USE.findall(lines)
        return [node for process, node in SENT_TO.findall(lines) if process not in others]


@contextmanager
def cluster(
    binaries: Path, folder: Path, settings: Mapping[str, str], *, workers: int = 2, spare: int = 0
) -> Iterator[Cluster]:
    """Starts the nodes. `binaries`: of a Postgres that has Citus. `spare`: nodes that have not joined."""
    with ExitStack() as stack:
        nodes = []
        for number in range(1 + workers + spare):
            data = folder / str(number)
            data.mkdir()
            postgres = EmbeddedPostgres(data, binaries=binaries, settings={**settings, **SETTINGS, **trusting(data)})
            nodes.append(Node(postgres, stack.enter_context(postgres)))
        citus = Cluster(nodes)
        asyncio.run(_prepare(citus, workers))
        yield citus


async def _prepare(citus: Cluster, workers: int) -> None:
    for node in citus.nodes:
        connection = await asyncpg.connect(node.url)
        await connection.execute("CREATE EXTENSION citus")
        await connection.execute(f"ALTER SYSTEM SET citus.local_hostname = '{node.server.socket_dir}'")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
    await unite(citus.nodes[0].url, [node.address for node in citus.nodes[: 1 + workers]])


async def unite(url: str, nodes: Sequence[Address]) -> None:
    """Makes one cluster of a database that each node has, with the extension. `url`: the coordinator's, the first."""
    coordinator = await asyncpg.connect(url)
    await coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *nodes[0])
    for node in nodes[1:]:
        await coordinator.execute("SELECT citus_add_node($1, $2)", *node)
    await coordinator.execute(bootstrap_sql())
    await coordinator.close()

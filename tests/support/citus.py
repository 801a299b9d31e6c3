"""Databases of their own on every node of a Citus cluster, and the tests that need one server."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.citus_cluster import Address, unite
from service.launch.postgres import DATABASE

PLANNED_FOR_VALUES = "Citus keeps no plan for any values: a node plans each statement for the values it has"
COUNTED_HERE = "counts the scans of the server that it asks; a node reads its shards in a session of its own"

ONE_SERVER = {
    "tests/feed/test_changes.py::test_after_a_restore_into_another_server": "a restored cluster keeps its numbers",
    "tests/http/test_replicas.py": "Citus has standbys of its own",
    "tests/intake/test_add_trips.py::test_the_trips_of_an_add": "a transaction begins with two strings on Citus",
    "tests/intake/test_consolidation_faults.py::test_a_worker_killed": "looks for a wait on the server that it asks",
    "tests/observability/test_metrics.py::test_what_is_counted": "the coordinator has no rows to count",
    "tests/runtime/test_writes.py::test_rows_of_two_tables": "inserts into tables that Citus does not know",
    "tests/search/statements/test_kept_plans.py": PLANNED_FOR_VALUES,
    "tests/search/statements/test_large.py::test_the_kept_plan": PLANNED_FOR_VALUES,
    "tests/search/statements/test_large.py::test_among_many_tenants": PLANNED_FOR_VALUES,
    "tests/search/statements/test_large.py::test_the_look_at_neighbours": PLANNED_FOR_VALUES,
    "tests/search/statements/test_large.py::test_the_functions_walk": COUNTED_HERE,
    "tests/search/statements/test_large.py::test_few_are_looked_up": COUNTED_HERE,
    "tests/search/statements/test_large.py::test_or_by_the_scope": COUNTED_HERE,
    "tests/search/statements/test_large.py::test_conditions_that_leave_many": COUNTED_HERE,
    "tests/upkeep/test_ageing.py::test_what_has_faded_is_archived_in": COUNTED_HERE,
    "tests/upkeep/test_ageing.py::test_the_removal_of_entities_goes_on": COUNTED_HERE,
    "tests/upkeep/test_embed.py::test_the_next_batch_reads_no": COUNTED_HERE,
    "tests/upkeep/test_partitions.py::test_rows_in_default": "a row is in a shard, whose name has a number",
    "tests/upkeep/test_partitions.py::test_what_is_older": "a row is in a shard, whose name has a number",
}
"""The beginnings of tests' names, and why they cannot hold on Citus. docs/citus.md"""


def skip_what_needs_one_server(tests: Sequence[pytest.Item]) -> None:
    for test in tests:
        for begin, reason in ONE_SERVER.items():
            if test.nodeid.startswith(begin):
                test.add_marker(pytest.mark.skip(reason=reason))


async def new_database(superuser_url: str, name: str) -> str:
    """Makes a database on every node that can be migrated. Returns its superuser's URL on the coordinator."""
    url = superuser_url.replace(f"/{DATABASE}?", f"/{name}?")
    nodes = await _run_on_nodes(superuser_url, f"CREATE DATABASE {name}")
    await _run_on_nodes(url, "CREATE EXTENSION citus", nodes)
    await unite(plain(url), nodes)
    return url


async def drop_database(superuser_url: str, name: str) -> None:
    await _run_on_nodes(superuser_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _run_on_nodes(url: str, statement: str, nodes: Sequence[Address] = ()) -> Sequence[Address]:
    """Runs a statement on each node, or on each of the cluster, the coordinator first; returns their addresses."""
    if not nodes:
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

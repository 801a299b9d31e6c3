"""Measures walks and shortest paths in a large graph with a hub.

    python -m bench.graph [--nodes 100000] [--edges 500000] [--hub 100000] [--rounds 200]

One user's entities and relations, and memories with edges, are written directly into the database of a service: random
pairs, and one node that is connected to all others. Then one client calls the routes, from random nodes and from the
hub.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
from collections.abc import Sequence
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]

from bench.clients import Client
from bench.numbers import Pace, table
from bench.target import started

USER = "graph-bench"

# hashint4 spreads the ends over all nodes, the same in every run.
ENTITIES = """
    INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by)
    SELECT $1, md5('n' || n)::uuid, $2, 'Node ' || n, 'node ' || n, 'concept', 'caller' FROM generate_series(0, $3) n
"""
RELATIONS = """
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by)
    SELECT $1, gen_random_uuid(), md5('n' || p.source)::uuid, 'KNOWS', 'knows', md5('n' || p.target)::uuid,
           (abs(hashint4(p.e)::bigint) % 1000) / 1000.0, 'caller'
    FROM (SELECT e, 1 + abs(hashint4(e)::bigint) % $2 AS source, 1 + abs(hashint4(-e)::bigint) % $2 AS target
          FROM generate_series(1, $3) e) p
    WHERE p.source <> p.target ON CONFLICT DO NOTHING
"""
HUB = """
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by)
    SELECT $1, gen_random_uuid(), md5('n0')::uuid, 'KNOWS', 'knows', md5('n' || n)::uuid,
           (abs(hashint4(n)::bigint) % 1000) / 1000.0, 'caller'
    FROM generate_series(1, $2) n ON CONFLICT DO NOTHING
"""
MEMORIES = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
        importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
    SELECT $1, md5('m' || n)::uuid, $2, 'Note ' || n, md5('h' || n), 'Context', 1, 'default', 0.5, 5, now(), 'stored',
           now(), now()
    FROM generate_series(0, $3) n
"""
STATS = """
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed)
    SELECT workspace_id, id, now() FROM memory WHERE workspace_id = $1 ON CONFLICT DO NOTHING
"""
MEMORY_EDGES = """
    INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id, strength)
    SELECT $1, md5('m' || p.source)::uuid, 'SIMILAR_TO', md5('m' || p.target)::uuid,
           (abs(hashint4(p.e)::bigint) % 1000) / 1000.0
    FROM (SELECT e, CASE WHEN e <= $2 THEN 0 ELSE 1 + abs(hashint4(e)::bigint) % $2 END AS source,
                 CASE WHEN e <= $2 THEN e ELSE 1 + abs(hashint4(-e)::bigint) % $2 END AS target
          FROM generate_series(1, $3) e) p
    WHERE p.source <> p.target ON CONFLICT DO NOTHING
"""


async def fill(database: str, nodes: int, edges: int, hub: int) -> None:
    """Writes the graph into the only workspace of the service."""
    connection = await asyncpg.connect(database)
    workspace = await connection.fetchval("SELECT workspace_id FROM workspace LIMIT 1")
    # skips the foreign keys of a million edges: their nodes exist
    await connection.execute("SET synchronous_commit = off; SET session_replication_role = replica")
    await connection.execute(ENTITIES, workspace, USER, nodes, timeout=600)
    await connection.execute(HUB, workspace, hub, timeout=600)
    await connection.execute(RELATIONS, workspace, nodes, edges - hub, timeout=600)
    await connection.execute(MEMORIES, workspace, USER, nodes, timeout=600)
    await connection.execute(STATS, workspace, timeout=600)
    await connection.execute(MEMORY_EDGES, workspace, hub, edges, timeout=600)
    await connection.execute("VACUUM ANALYZE", timeout=600)
    await connection.close()


def uuid_of(node: int, letter: str = "n") -> UUID:
    """Returns the id that the statements above give."""
    return UUID(hashlib.md5(f"{letter}{node}".encode(), usedforsecurity=False).hexdigest())


async def measured(client: Client, paths: Sequence[str]) -> Pace:
    times = []
    for path in paths:
        answer = await client.get(path)
        assert answer.status == 200, answer.body
        times.append(answer.ms)
    return Pace.of(times, sum(times) / 1000)


async def measure(url: str, key: str, nodes: int, rounds: int) -> str:
    """Returns the table of latencies, a row for each kind of request."""
    chance = random.Random(7)
    client = Client(url, key)

    def some() -> int:
        return chance.randint(1, nodes)

    questions: list[tuple[str, list[str]]] = [
        ("one entity", [f"/v1/entities/{uuid_of(some())}" for _ in range(rounds)])
    ]
    for depth in (1, 2, 3):
        for name, start in (("a node", some), ("the hub", lambda: 0)):
            paths = [f"/v1/entities/graph?ids={uuid_of(start())}&depth={depth}" for _ in range(rounds)]
            questions.append((f"entities, {depth} hops from {name}", paths))
    paths = [f"/v1/entities/path?source_id={uuid_of(some())}&target_id={uuid_of(some())}" for _ in range(rounds)]
    questions.append(("shortest path", paths))
    for depth in (1, 2, 3):
        for name, start in (("one", some), ("the hub", lambda: 0)):
            paths = [f"/v1/memories/{uuid_of(start(), 'm')}/related?depth={depth}" for _ in range(rounds)]
            questions.append((f"memories, {depth} hops from {name}", paths))
    rows = []
    for name, paths in questions:
        await measured(client, paths[: max(3, rounds // 10)])
        pace = await measured(client, paths)
        rows.append((name, pace.p50_ms, pace.p95_ms, pace.p99_ms))
    await client.close()
    return table(("ms", "p50", "p95", "p99"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Walks and shortest paths in a large graph with a hub.")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=500_000, help="between entities, and as many between memories")
    parser.add_argument("--hub", type=int, default=100_000, help="edges of one node, among them")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with started() as service:
        assert service.database is not None, "started() gives it"
        asyncio.run(fill(service.database, options.nodes, options.edges, min(options.hub, options.nodes)))
        print(asyncio.run(measure(service.url, service.key, options.nodes, options.rounds)))


if __name__ == "__main__":
    main()

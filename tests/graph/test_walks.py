"""Walks read the strongest edges of a node by an index, whatever its degree, as the application's role."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import text

from service.domain.relation import WalkOptions
from service.graph.entity_scope import EdgeFilter
from service.graph.statements import edges, entity_relations
from service.postgres.engine import Database

SPOKES = 20_000

FILL = """
    SET session_replication_role = replica;
    INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by)
    SELECT '{here}', md5('{here}' || n)::uuid, 'alice', 'Node ' || n, 'node ' || n, 'concept', 'caller'
    FROM generate_series(0, {spokes}) n;
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by)
    SELECT '{here}', gen_random_uuid(), md5('{here}' || 0)::uuid, 'KNOWS', 'knows', md5('{here}' || n)::uuid,
           (n % 100) / 100.0, 'caller'
    FROM generate_series(1, {spokes}) n;
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by)
    SELECT '{here}', gen_random_uuid(), md5('{here}' || n)::uuid, 'USES', 'uses', md5('{here}' || n + 1)::uuid,
           0.5, 'caller'
    FROM generate_series(1, {spokes} - 1) n;
    INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
        importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
    SELECT '{here}', md5('{here}' || n)::uuid, 'alice', 'Note ' || n, md5('h' || n), 'Context', 1, 'default', 0.5, 5,
           now(), 'stored', now(), now()
    FROM generate_series(0, {spokes}) n;
    INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id, strength)
    SELECT '{here}', md5('{here}' || 0)::uuid, 'RELATES_TO', md5('{here}' || n)::uuid, (n % 100) / 100.0
    FROM generate_series(1, {spokes}) n;
    ANALYZE entity, entity_edge, memory, memory_edge;
    SET session_replication_role = DEFAULT
"""
EMPTY = "DELETE FROM {table} WHERE workspace_id = '{here}'"


@pytest.fixture(scope="module")
async def hub(owner_url: str) -> Any:
    """A workspace whose node 0 is tied to 20,000 others; returns the workspace and that node."""
    here = uuid4()
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    await connection.execute(FILL.format(here=here, spokes=SPOKES))
    first = await connection.fetchval("SELECT md5($1 || '0')::uuid", str(here))
    yield here, first
    await connection.execute("SET session_replication_role = replica")
    for table in ("memory_edge", "memory", "entity_edge", "entity"):
        await connection.execute(EMPTY.format(table=table, here=here))
    await connection.close()


async def plan(database: Database, workspace: UUID, statement: Any, values: dict[str, Any]) -> str:
    explained = entity_relations.statement(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {statement.text}")
    async with database.begin(workspace) as session:
        rows = await session.execute(explained, {**values, "workspace": workspace})
        return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("types", [(), ("USES", "KNOWS")])
async def test_a_hub_of_entities_is_read_in_the_order_of_strength(
    database: Database, hub: tuple[UUID, UUID], types: tuple[str, ...]
) -> None:
    workspace, first = hub
    step = entity_relations.STEP_OF_TYPES if types else entity_relations.STEP_ANY
    values = {**EdgeFilter(None, types).values, "ids": [first], "seen": [first], "room": 100}
    values["fan_out"] = entity_relations.FAN_OUT
    if not types:
        del values["types"]
    found = await plan(database, workspace, step, values)
    assert "Seq Scan" not in found, found
    assert ("ix_entity_edge_source_type" if types else "ix_entity_edge_source") in found, found
    read = [float(rows) for rows in re.findall(r"ix_entity_edge_\w+ on \w+(?: \w+)? \(actual rows=([\d.]+)", found)]
    assert len(read) == 2, found
    assert max(read) <= entity_relations.FAN_OUT + 1, found


async def test_a_hub_of_memories_too(database: Database, hub: tuple[UUID, UUID]) -> None:
    workspace, first = hub
    options = WalkOptions(1, 100)
    values = {"ids": [first], "seen": [first], "room": 100, "types": None, "now": None, "fan_out": options.fan_out + 1}
    found = await plan(database, workspace, edges.STEP, {**values, "include_archived": False})
    assert "Seq Scan" not in found, found
    assert "ix_memory_edge_source_strength" in found, found


async def test_a_name_is_found_without_reading_all(database: Database, hub: tuple[UUID, UUID]) -> None:
    workspace, _ = hub
    query = "EXPLAIN SELECT e.id FROM entity e WHERE e.workspace_id = :workspace AND e.name_key = 'node 7'"
    async with database.begin(workspace) as session:
        rows = await session.execute(text(query), {"workspace": workspace})
        found = "\n".join(row[0] for row in rows)
    assert "ix_entity_name" in found, found


async def test_a_whole_walk_of_three_hops_over_the_hub_ends(database: Database, hub: tuple[UUID, UUID]) -> None:
    workspace, first = hub
    async with database.read(workspace) as session:
        found = await entity_relations.neighbourhood(session, [first], EdgeFilter(None), depth=3, limit=200)
    assert (len(found.depths), found.truncated) == (200, True)
    assert {edge.strength for edge in found.relations if first in (edge.source_id, edge.target_id)} == {0.99}

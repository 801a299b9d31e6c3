"""The vectors nearest to a given one inside a scope, where no other arm of a search is needed.

One statement with two arms, chosen by one-time filters: in a scope of more than `exact_rows` rows the generation's HNSW
graph is searched with over-fetch; in a smaller one, or if that yields fewer than `limit`, all are compared exactly.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import TextClause

from service.domain import sizes
from service.postgres import vectors
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.template import Template
from service.postgres.vectors import exact_distance, graph_distance
from service.providers.protocols import Vector

OVERFETCH = 4
"""Vectors are chosen by binary distance, or by the graph, and then compared exactly: this many times those wanted. Of a
million vectors 200 from the graph gave the same ten nearest as 400, in three quarters of the time (60 queries without a
condition and 60 that half of the rows meet)."""

MIN_CLOSE, MAX_CLOSE = 200, 800
"""The minimum and maximum number chosen by binary distance, unless more are wanted. All of the ten nearest in 3,000,
20,000 and 100,000 vectors were among the first 200, 400 and 800 (200 queries, 384 components)."""

CLOSE_LIMIT = "greatest(:min_close, least(:max_close, {rows} / 40))"
"""SQL: how many of `rows` vectors are chosen by binary distance, with the values of `close_limits`."""

MAX_FROM_GRAPH = 400
"""The maximum number that the graph returns, unless more are wanted; hnsw.ef_search on the role is as large."""


def close_limits(wanted: int) -> dict[str, int]:
    """The limits of how many vectors are chosen by binary distance."""
    return {"min_close": max(MIN_CLOSE, wanted * OVERFETCH), "max_close": MAX_CLOSE}


def graph_limit(wanted: int) -> int:
    """How many vectors the graph is asked for."""
    return min(wanted * OVERFETCH, MAX_FROM_GRAPH)


# Uses ix_memory_vector_user, _agent or _run for the scope, and ix_memory_vector_hnsw_<generation> for the first arm.
NEAREST = Template(
    """
WITH counted AS (
    SELECT count(*) AS vectors FROM (SELECT 1 FROM memory_vector v WHERE {vectors} LIMIT :exact_rows + 1) AS few
), approximate AS MATERIALIZED (
    SELECT v.memory_id, {graph_distance} AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT vectors FROM counted) > :exact_rows AND {vectors} AND {rows}
    ORDER BY {graph_distance} LIMIT :wide
), exact AS (
    SELECT v.memory_id, {exact_distance} AS distance
    FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id
    WHERE (SELECT count(*) FROM approximate) < :limit AND {vectors} AND {rows}
    ORDER BY {exact_distance} LIMIT :limit
)
SELECT memory_id, distance FROM approximate WHERE (SELECT count(*) FROM approximate) >= :limit
UNION ALL SELECT memory_id, distance FROM exact
ORDER BY distance LIMIT :limit
""",
    exact_distance=exact_distance(),
)


async def find(
    session: Session, scope: Condition, rows: Condition, vector: Vector, *, generation: int, limit: int
) -> list[tuple[UUID, float]]:
    """Memories with their cosine, nearest first: exactly min(limit, matching rows). `scope`: a condition on
    `memory_vector v`, `rows`: one on `memory m` (everything else)."""
    near = await session.execute(*statement(scope, rows, vector, generation=generation, limit=limit))
    return [(row.memory_id, 1.0 - row.distance) for row in near]


def statement(
    scope: Condition, rows: Condition, vector: Vector, *, generation: int, limit: int
) -> tuple[TextClause, dict[str, Any]]:
    """The whole statement with its values; tests/search/statements/golden has it with the values filled in."""
    in_scope = f"{scope.sql} AND v.generation = {generation} AND v.kind = 'text'"
    wide = max(limit, graph_limit(limit))
    values = {"query_vector": vector, "limit": limit, "wide": wide, "exact_rows": sizes.EXACT_ROWS}
    filled = NEAREST.fill(vectors=in_scope, rows=rows.sql, graph_distance=graph_distance(len(vector)))
    return filled, {**scope.values, **rows.values, **values}


def nearest_passing(these: str, rows: str, *, most: str, checked: str = "") -> str:
    """SQL of the ids of the nearest vectors by binary distance whose rows meet the conditions. `these`: the FROM item
    of the vectors, read from the scope's btree alone. The nearest (`checked`: a LIMIT) are checked against `rows` one
    by one in order, by their key (a range of one value, see scopes.by_key), until `most` have met them."""
    return f"""ARRAY(
        SELECT passing.id FROM (
            SELECT v.memory_id, {vectors.BINARY_DISTANCE} AS bits FROM {these}
            ORDER BY bits, v.memory_id {checked}
        ) by_bits CROSS JOIN LATERAL (
            SELECT m.id FROM memory m
            WHERE m.workspace_id = :workspace AND m.id >= by_bits.memory_id AND m.id <= by_bits.memory_id AND {rows}
            ORDER BY m.id LIMIT 1
        ) passing LIMIT {most})"""  # noqa: S608 - pieces of our own

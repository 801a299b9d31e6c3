"""Later statements about the same thing as each hit, among the candidates of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from uuid import UUID

from sqlalchemy import TextClause, text

from service.domain.memory import LaterStatement
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.scopes import by_key, type_parameters

MOST_CANDIDATES = 50
"""Candidates that are compared with the hits, nearest first: as many as the arm of vectors returns at least."""

MOST = 3
"""Statements named with a hit, latest first."""

# Each vector is found by its key and read once; the hits are compared with all candidates that were said after them.
LATER = """
WITH said AS MATERIALIZED (
    SELECT m.id, m."timestamp", v.embedding
    FROM unnest(CAST(:ids AS uuid[])) AS x (id)
    CROSS JOIN LATERAL ({memory}) m
    CROSS JOIN LATERAL ({vector_of_memory}) v
), hit AS (
    SELECT id, "timestamp", embedding FROM said WHERE id = ANY (CAST(:hits AS uuid[]))
    UNION ALL
    SELECT t.id, t."timestamp", v.embedding
    FROM unnest(CAST(:turns AS uuid[])) AS x (id)
    CROSS JOIN LATERAL ({turn}) t
    CROSS JOIN LATERAL ({vector_of_turn}) v
)
SELECT hit.id AS hit, other.id, other."timestamp"
FROM hit CROSS JOIN LATERAL (
    SELECT id, "timestamp" FROM said
    WHERE "timestamp" > hit."timestamp" AND (hit.embedding <=> embedding) <= CAST(:distance AS float8)
    ORDER BY "timestamp" DESC, id LIMIT :most
) other
ORDER BY other."timestamp" DESC, other.id
"""


async def read(
    session: Session,
    workspace_id: UUID,
    hits: Sequence[UUID],
    turns: Sequence[UUID],
    candidates: Sequence[UUID],
    generation: int,
    *,
    distance: float,
) -> Mapping[UUID, tuple[LaterStatement, ...]]:
    """At most MOST later memories by hit, a memory or one of `turns`, within a cosine distance of 0..2; hits without
    one are left out."""
    ids = list(dict.fromkeys((*hits, *candidates)))[: len(hits) + MOST_CANDIDATES]
    if len(ids) + bool(turns) < 2:
        return {}
    given = {"ids": ids, "hits": list(hits), "turns": list(turns)}
    values = {"workspace": workspace_id, **given, "distance": distance, "most": MOST}
    rows = await direct.fetch(session, _statement(generation), values)
    statements: dict[UUID, list[LaterStatement]] = {}
    for row in rows:
        statements.setdefault(row.hit, []).append(LaterStatement(row.id, row.timestamp))
    return {key: tuple(each) for key, each in statements.items()}


@lru_cache(maxsize=16)
def _statement(generation: int) -> TextClause:
    of_generation = f" AND generation = {int(generation)}"
    shape = LATER.format(
        memory=by_key("memory", "x.id"),
        vector_of_memory=by_key("memory_vector", "x.id", key="memory_id", more=of_generation + " AND kind = 'text'"),
        turn=by_key("turn", "x.id"),
        vector_of_turn=by_key("turn_vector", "x.id", key="turn_id", more=of_generation),
    )
    return type_parameters(text(shape))

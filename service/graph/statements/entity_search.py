"""Entities searched by name and by vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB

from service.domain.entity import Entity, key
from service.graph.entity_scope import EntityScope
from service.graph.statements.entities import ROW, entity_of
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.vectors import Half, cosine, exact_distance


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """An entity with how well its names fit (0..1, 0: not at all) and the cosine of its vector, None without one."""

    entity: Entity
    fit: float
    cosine: float | None


# How well a name fits the query: equal, at the beginning, at the beginning of a word, anywhere.
NAME_FIT = """
    CASE WHEN {key} = :key THEN 1.0 WHEN starts_with({key}, :key) THEN 0.9
         WHEN position(' ' || :key in {key}) > 0 THEN 0.8 WHEN position(:key in {key}) > 0 THEN 0.6 ELSE 0 END
"""
FITS = f"""
    fits AS (
        SELECT e.id, greatest({NAME_FIT.format(key="e.name_key")}, coalesce(
            (SELECT max({NAME_FIT.format(key="a.alias_key")}) FROM entity_alias a
             WHERE a.workspace_id = e.workspace_id AND a.entity_id = e.id), 0)) AS fit
        FROM entity e WHERE {{rows}}
    )
"""  # noqa: S608 - our own parts

SEARCH_NAMES = f"""
    WITH {FITS}, chosen AS (
        SELECT id FROM fits WHERE fit > 0 ORDER BY fit DESC, id LIMIT :limit
    )
    SELECT {ROW}, fits.fit, CAST(NULL AS float8) AS cosine
    FROM chosen JOIN fits USING (id) JOIN entity e ON e.workspace_id = :workspace AND e.id = chosen.id
"""  # noqa: S608 - our own parts

SEARCH_NAMES_AND_VECTORS = f"""
    WITH {FITS}, chosen AS (
        (SELECT id FROM fits WHERE fit > 0 ORDER BY fit DESC, id LIMIT :limit)
        UNION
        SELECT id FROM (
            SELECT e.id FROM entity e JOIN entity_vector v ON v.workspace_id = e.workspace_id AND v.entity_id = e.id
            WHERE {{rows}} AND v.generation = :generation ORDER BY {exact_distance()} LIMIT :limit) nearest
    )
    SELECT {ROW}, fits.fit, {cosine("v.embedding")} AS cosine
    FROM chosen JOIN fits USING (id) JOIN entity e ON e.workspace_id = :workspace AND e.id = chosen.id
    LEFT JOIN entity_vector v ON v.workspace_id = e.workspace_id AND v.entity_id = e.id AND v.generation = :generation
"""  # noqa: S608 - our own parts


async def search(
    session: Session,
    seen: EntityScope,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    kind: str | None,
    generation: int,
    limit: int,
) -> list[EntityMatch]:
    """The `limit` best by name and the `limit` nearest by vector, unordered. Substrings and vectors are compared one
    by one: entities of a scope are hundreds, seldom thousands."""
    rows = seen.rows
    if kind is not None:
        rows &= Condition("e.type = :type", {"type": kind})
    values: dict[str, Any] = {**rows.values, "key": key(query), "limit": limit}
    if vector is None:
        statement = text(SEARCH_NAMES.format(rows=rows.sql))
    else:
        statement = text(SEARCH_NAMES_AND_VECTORS.format(rows=rows.sql))
        statement = statement.bindparams(bindparam("query_vector", type_=Half()))
        values |= {"query_vector": vector.tolist(), "generation": generation}
    found = await session.execute(statement.columns(properties=JSONB()), values)
    return [
        EntityMatch(entity_of(row), float(row.fit), None if row.cosine is None else float(row.cosine)) for row in found
    ]

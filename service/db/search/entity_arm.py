"""Memories that name the entities of a query, or an entity next to one of these in the graph.

Up to three statements, so that a query that names nobody pays for one look-up: names are found by their identity
(casefolded) or as an alias, followed one step along the strongest relations, and then to the memories that name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from sqlalchemy import TextClause, text

from service.db import direct
from service.db.engine import Session
from service.db.scopes import typed
from service.db.search.plan import SearchPlan

MAX_ENTITIES = 50
"""Entities that one query can mean; several channels may know the same name."""

RELATIONS_EACH_WAY = 5
"""Relations of an entity that are followed, in each direction, the strongest first."""

MAX_LINKS = 5_000
"""An entity that more memories name is too common to help, and counting them all would take longer than the search."""

# ix_entity_name, ix_entity_alias_key, or the unique indexes that begin with the user
KNOWN = """
SELECT e.id, e.name_key, e.name_key AS named_as FROM entity e
WHERE {entity} AND e.name_key = ANY (CAST(:names AS text[]))
UNION SELECT e.id, e.name_key, a.alias_key FROM entity_alias a
JOIN entity e ON e.workspace_id = a.workspace_id AND e.id = a.entity_id
WHERE {alias} AND a.alias_key = ANY (CAST(:names AS text[]))
ORDER BY name_key, id LIMIT :most
"""

# ix_entity_edge_source, ix_entity_edge_target
NEXT = """
SELECT n.id, n.name_key, max(edge.strength) AS strength
FROM unnest(CAST(:entities AS uuid[])) AS x (id), LATERAL (
    (SELECT target_id AS other, strength FROM entity_edge f
     WHERE f.workspace_id = :workspace AND f.source_id = x.id AND {valid} ORDER BY strength DESC, target_id LIMIT :fan)
    UNION ALL
    (SELECT source_id, strength FROM entity_edge f
     WHERE f.workspace_id = :workspace AND f.target_id = x.id AND {valid} ORDER BY strength DESC, source_id LIMIT :fan)
) edge JOIN entity n ON n.workspace_id = :workspace AND n.id = edge.other
WHERE n.id <> ALL (CAST(:entities AS uuid[])) AND n.name_key <> ALL (CAST(:keys AS text[]))
GROUP BY n.id, n.name_key ORDER BY strength DESC, n.id LIMIT :most
"""

VALID = "(f.t_valid IS NULL OR f.t_valid <= :now) AND (f.t_invalid IS NULL OR f.t_invalid > :now)"

# ix_memory_entity_entity
LINKED = """
WITH linked AS (
    SELECT DISTINCT l.memory_id, x.name_key
    FROM unnest(CAST(:entities AS uuid[]), CAST(:keys AS text[])) AS x (id, name_key)
    JOIN memory_entity l ON l.workspace_id = :workspace AND l.entity_id = x.id
    JOIN memory m ON m.workspace_id = l.workspace_id AND m.id = l.memory_id
    WHERE (SELECT count(*) FROM (SELECT FROM memory_entity f
                                 WHERE f.workspace_id = :workspace AND f.entity_id = x.id LIMIT :links + 1) c) <= :links
      AND {scope} AND {rows}
), counted AS (
    SELECT name_key, count(*)::float8 AS texts FROM linked GROUP BY name_key
)
SELECT l.memory_id, array_agg(l.name_key) AS names, array_agg(c.texts) AS texts
FROM linked l JOIN counted c USING (name_key)
GROUP BY l.memory_id
ORDER BY bool_or(l.name_key = ANY (CAST(:query_keys AS text[]))) DESC, sum(1 / c.texts) DESC, l.memory_id LIMIT :arm
"""


@dataclass(frozen=True, slots=True)
class EntityMatches:
    """`memories`: the entities (by their identity) that each memory names, best first. `text_counts`: how many memories
    of the scope name an entity. `named_as`: of each entity of the query the words that named it, casefolded.
    `next_strength`: of each entity one step away the strength (0..1) of the relation. `ids`: of the entities of the
    query."""

    memories: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    text_counts: Mapping[str, float] = field(default_factory=dict)
    named_as: Mapping[str, frozenset[str]] = field(default_factory=dict)
    next_strength: Mapping[str, float] = field(default_factory=dict)
    ids: tuple[UUID, ...] = ()


async def find(session: Session, plan: SearchPlan, names: Sequence[str], *, now: datetime) -> EntityMatches:
    """The memories that name one of these entities (casefolded names or aliases), the rarest names first."""
    values = {**plan.scope.values, "names": list(names), "most": MAX_ENTITIES}
    known = await direct.fetch(session, _known(_owner(plan)), values)
    if not known:
        return EntityMatches()
    named_as: dict[str, frozenset[str]] = {}
    for row in known:
        named_as[row.name_key] = named_as.get(row.name_key, frozenset()) | {row.named_as}
    next_to = await _next_to(session, plan, known, now)
    values = {
        **plan.scope.values,
        **plan.conditions.values,
        "entities": [row.id for row in (*known, *next_to)],
        "keys": [row.name_key for row in (*known, *next_to)],
        "query_keys": list(named_as),
        "arm": plan.arm_limit,
        "links": MAX_LINKS,
    }
    memories: dict[UUID, frozenset[str]] = {}
    text_counts: dict[str, float] = {}
    for row in await direct.fetch(session, linked_statement(plan.scope.sql, plan.conditions.sql), values):
        memories[row.memory_id] = frozenset(row.names)
        text_counts |= dict(zip(row.names, row.texts, strict=True))
    ids = tuple(dict.fromkeys(row.id for row in known))
    return EntityMatches(memories, text_counts, named_as, {row.name_key: row.strength for row in next_to}, ids)


async def _next_to(
    session: Session, plan: SearchPlan, known: Sequence[direct.DriverRow], now: datetime
) -> Sequence[direct.DriverRow]:
    values = {
        "workspace": plan.workspace_id,
        "entities": [row.id for row in known],
        "keys": [row.name_key for row in known],
        "now": now,
        "fan": RELATIONS_EACH_WAY,
        "most": MAX_ENTITIES,
    }
    return await direct.fetch(session, _next(), values)


def _owner(plan: SearchPlan) -> str:
    """Whose entities they may be: the user's where every memory of the scope is, nobody's where it may be shared."""
    if "user_id" not in plan.scope.values or plan.match == "any":
        return "true"
    own = "{alias}.user_id = :user_id"
    return f"({own} OR {{alias}}.user_id IS NULL)" if plan.with_shared else own


@lru_cache(maxsize=4)
def _known(owner: str) -> TextClause:
    entity, alias = (f"{name}.workspace_id = :workspace AND {owner.format(alias=name)}" for name in "ea")
    return typed(text(KNOWN.format(entity=entity, alias=alias)))


@lru_cache(maxsize=1)
def _next() -> TextClause:
    return typed(text(NEXT.format(valid=VALID)))


@lru_cache(maxsize=256)
def linked_statement(scope: str, rows: str) -> TextClause:
    """The whole statement; tests/db/golden has it with the values filled in."""
    return typed(text(LINKED.format(scope=scope, rows=rows)))

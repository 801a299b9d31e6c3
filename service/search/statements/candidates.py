"""Candidates of a search: the memories that its scope, vectors and words find, and those that name its entities.

The size of the scope chooses how vectors are searched:

| rows of the scope | vector path | file |
|---|---|---|
| up to EXACT_ROWS | every row is read | exact.py |
| more, but few meet the conditions | these few are looked up, then read | search_plan.py, exact.py |
| up to BINARY_ROWS | the binary quantisation of every vector is read | approximate.py |
| more | the HNSW graph is walked | approximate.py |

Names of entities are found by their identity (casefolded) or as an alias, followed one step along the strongest
relations, and then to the memories that name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause

from service.domain.scope import ScopeSummary
from service.postgres import direct
from service.postgres.engine import Session, use_custom_plans, use_steady_plans
from service.postgres.scopes import Condition, by_key, by_keys, is_valid
from service.postgres.template import Template
from service.search.statements import approximate, exact, search_plan
from service.search.statements.search_plan import Candidates, SearchPlan

PREFILTER_ROWS: Final = 2_000
"""From this size of a scope on, conditions with an index are looked up before reading all rows; in a smaller one the
look-up takes as long as it saves."""

MAX_SPEAKERS: Final = 200


# ix_memory_user, _agent or _run is counted without the table, 0.1 ms per thousand rows. Speakers: one step per name
# through ix_memory_user_speaker and its likes.
SUMMARY: Final = Template("""
WITH RECURSIVE named AS (
    (SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker IS NOT NULL ORDER BY m.speaker LIMIT 1)
    UNION ALL
    SELECT next.speaker FROM named CROSS JOIN LATERAL (
        SELECT m.speaker FROM memory m WHERE {scope} AND m.speaker > named.speaker ORDER BY m.speaker LIMIT 1
    ) next
)
SELECT (SELECT count(*) FROM (SELECT FROM memory m WHERE {scope} LIMIT :most + 1) counted) AS rows,
       CAST(ARRAY(SELECT speaker FROM named LIMIT :speakers) AS text[]) AS speakers,
       EXISTS (SELECT FROM turn t WHERE {turns}) AS has_turns
""")


async def summary(session: Session, scope: Condition, turns: Condition, *, count_to: int) -> ScopeSummary:
    """The size of the scope and its speakers. `turns`: the scope as a condition on `turn t`."""
    values = {**scope.values, **turns.values, "most": count_to, "speakers": MAX_SPEAKERS}
    row = (await direct.fetch(session, SUMMARY.fill(scope=scope.sql, turns=turns.sql), values))[0]
    return ScopeSummary(row.rows, tuple(row.speakers), row.has_turns)


async def find(session: Session, plan: SearchPlan, scope_rows: int, *, binary_rows: int) -> Candidates:
    """The candidates of all arms. `scope_rows`: the rows of the scope a few seconds ago; one that has outgrown
    `exact_rows` since then is searched as a large one."""
    if scope_rows >= PREFILTER_ROWS:
        few = await search_plan.restrict(session, plan)
        if few is not None and (candidates := await exact.find(session, few)) is not None:
            return candidates
    if scope_rows <= plan.exact_rows and (candidates := await exact.find(session, plan)) is not None:
        return candidates
    await use_custom_plans(session)
    candidates = await approximate.find(session, plan, "binary" if scope_rows <= binary_rows else "hnsw")
    await use_steady_plans(session)
    return candidates


# -- memories that name entities --------------------------------------------------------------------------------------

MAX_ENTITIES = 50
"""Entities that one query can mean; several channels may know the same name."""

MAX_RELATIONS = 5
"""Relations of an entity that are followed in each direction, strongest first."""

MAX_LINKS = 200
"""An entity that more memories name is too common to help; 1,000 took an eighth of a search in 20,000 memories."""

# ix_entity_name, ix_entity_alias_key, or the unique indexes that begin with the user; then ix_entity_edge_source and
# _target, ix_memory_entity_entity. Each step begins where the last one ended (LATERAL), whatever is known of the
# tables: what the planner takes for the shortest way without statistics took ten times as long.
ENTITIES = Template(
    """
WITH known AS MATERIALIZED (
    SELECT e.id, e.name_key, e.name_key AS named_as FROM entity e
    WHERE {entity} AND e.name_key = ANY (CAST(:names AS text[]))
    UNION ALL
    SELECT e.id, e.name_key, a.alias_key FROM entity_alias a CROSS JOIN LATERAL ({alias_of}) e
    WHERE {alias} AND a.alias_key = ANY (CAST(:names AS text[]))
    LIMIT :most
), next_to AS MATERIALIZED (
    SELECT n.id, n.name_key, edge.strength
    FROM known x CROSS JOIN LATERAL (
        (SELECT target_id AS other, strength FROM entity_edge f WHERE f.workspace_id = :workspace AND f.source_id = x.id
            AND {valid} ORDER BY strength DESC, target_id LIMIT :fan)
        UNION ALL
        (SELECT source_id, strength FROM entity_edge f WHERE f.workspace_id = :workspace AND f.target_id = x.id
            AND {valid} ORDER BY strength DESC, source_id LIMIT :fan)
    ) edge CROSS JOIN LATERAL ({other}) n
    WHERE n.name_key NOT IN (SELECT name_key FROM known) ORDER BY edge.strength DESC, n.id LIMIT :most
), linked AS MATERIALIZED (
    SELECT x.name_key, x.is_named, ARRAY(
        SELECT m.id FROM ({memories}) m
        WHERE cardinality(links.ids) <= :links AND {scope} AND {rows}
    ) AS ids
    FROM (SELECT id, name_key, true AS is_named FROM known UNION ALL SELECT id, name_key, false FROM next_to) x,
    LATERAL (
        SELECT ARRAY(SELECT l.memory_id FROM memory_entity l WHERE l.workspace_id = :workspace AND l.entity_id = x.id
                     LIMIT :links + 1) AS ids OFFSET 0
    ) links
)
SELECT id, ARRAY[name_key] AS names, named_as, CAST(NULL AS float8) AS strength, CAST(NULL AS float8[]) AS texts
FROM known
UNION ALL SELECT id, ARRAY[name_key], NULL, strength, NULL FROM next_to
UNION ALL (SELECT l.id, array_agg(l.name_key), NULL, NULL, array_agg(l.texts)
    FROM (SELECT unnest(ids) AS id, name_key, is_named, texts::float8
          FROM (SELECT *, sum(cardinality(ids)) OVER (PARTITION BY name_key) AS texts FROM linked) counted) l
    GROUP BY l.id ORDER BY bool_or(l.is_named) DESC, sum(1 / l.texts) DESC, l.id LIMIT :arm)
""",
    alias_of=by_key("entity", "a.entity_id"),
    other=by_key("entity", "edge.other"),
    memories=by_keys("memory", "links.ids"),
    valid=is_valid("f"),
)


@dataclass(frozen=True, slots=True)
class EntityMatches:
    """The entities that the query names. `memories`: those (by their identity) that each memory names, best first.
    `text_counts`: how many memories of the scope name an entity. `named_as`: of each entity of the query the words that
    named it, casefolded. `next_strength`: of each entity one step away the strength (0..1) of the relation. `ids`: of
    the entities of the query."""

    memories: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    text_counts: Mapping[str, float] = field(default_factory=dict)
    named_as: Mapping[str, frozenset[str]] = field(default_factory=dict)
    next_strength: Mapping[str, float] = field(default_factory=dict)
    ids: tuple[UUID, ...] = ()


async def find_entities(session: Session, plan: SearchPlan, names: Sequence[str], *, now: datetime) -> EntityMatches:
    """The memories that name one of these entities (casefolded names or aliases), rarest names first."""
    memories, named_as = dict[UUID, frozenset[str]](), dict[str, frozenset[str]]()
    text_counts, next_strength = dict[str, float](), dict[str, float]()
    ids = dict[UUID, None]()
    for row in await direct.fetch(session, entity_statement(plan), entity_values(plan, names, now)):
        name = row.names[0]
        if row.texts is not None:
            memories[row.id] = frozenset(row.names)
            text_counts |= dict(zip(row.names, row.texts, strict=True))
        elif row.named_as is not None:
            ids[row.id] = None
            named_as[name] = named_as.get(name, frozenset()) | {row.named_as}
        else:
            next_strength[name] = max(row.strength, next_strength.get(name, 0.0))
    return EntityMatches(memories, text_counts, named_as, next_strength, tuple(ids))


def entity_statement(plan: SearchPlan) -> TextClause:
    """The whole statement; tests/search/statements/golden has it with the values filled in."""
    entity, alias = (f"{name}.workspace_id = :workspace AND {_owner(plan, name)}" for name in "ea")
    return ENTITIES.fill(entity=entity, alias=alias, scope=plan.scope.sql, rows=plan.conditions.sql)


def entity_values(plan: SearchPlan, names: Sequence[str], now: datetime) -> dict[str, Any]:
    limits = {"fan": MAX_RELATIONS, "most": MAX_ENTITIES, "links": MAX_LINKS, "arm": plan.arm_limit}
    return {**plan.values, **limits, "names": list(names), "now": now}


def _owner(plan: SearchPlan, alias: str) -> str:
    """The condition on the owner of the entities: the user if every memory of the scope is the user's, nobody if it may
    be shared."""
    if "user_id" not in plan.scope.values or plan.match == "any":
        return "true"
    own = f"{alias}.user_id = :user_id"
    return f"({own} OR {alias}.user_id IS NULL)" if plan.with_shared else own

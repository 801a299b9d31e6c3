"""Relations between entities, the memories that are evidence for them, and walks along them.

Lock order: both ends of an edge by ascending id, then several edges in the order of their keys, so that two writers
never wait for each other in a circle.

A walk reads the FAN_OUT strongest edges of each node in either direction, from indexes in that order, so a node with
100,000 edges costs no more than one with fifty.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Row, TextClause, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine
from uuid_utils.compat import uuid7

from service.domain.entity import CALLER, EntityPath, EntityRelation, Neighbourhood
from service.graph.entity_scope import EdgeFilter, EdgePlace
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.scopes import is_valid
from service.postgres.template import typed_text

COLUMNS = """{a}.id, {a}.source_id, {a}.rel_type, {a}.label, {a}.target_id, {a}.strength, {a}.confidence,
    {a}.properties, {a}.t_valid, {a}.t_invalid, {a}.extracted_by, {a}.created_at, {a}.updated_at"""

# The names of the ends, and the first memories that are evidence. Uses the primary keys.
SHOWN = f"""{COLUMNS},
    (SELECT n.name FROM entity n WHERE n.workspace_id = :workspace AND n.id = {{a}}.source_id) AS source,
    (SELECT n.name FROM entity n WHERE n.workspace_id = :workspace AND n.id = {{a}}.target_id) AS target,
    ARRAY(SELECT x.memory_id FROM entity_edge_source x WHERE x.workspace_id = :workspace AND x.edge_id = {{a}}.id
          ORDER BY x.memory_id LIMIT 5) AS memory_ids"""  # noqa: S608 - no user input

VALID = f"""(CAST(:at AS timestamptz) IS NULL OR ({is_valid("{a}", ":at")}))"""

TYPES: Mapping[str, TypeEngine[Any]] = {
    "at": DateTime(timezone=True),
    "t_valid": DateTime(timezone=True),
    "t_invalid": DateTime(timezone=True),
    "properties": JSONB(),
}


def statement(sql: str) -> TextClause:
    return typed_text(sql, **TYPES)


LOCK_ENDS = text("""
    SELECT id, user_id, channel, name FROM entity
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR KEY SHARE
""")

# uq_entity_edge_…: one edge per pair and type, with any label
PUT = statement(f"""
    INSERT INTO entity_edge AS e (workspace_id, id, source_id, rel_type, label, target_id, strength, confidence,
                                  properties, t_valid, t_invalid, extracted_by, updated_at)
    VALUES (:workspace, :id, :source_id, :type, :label, :target_id, :strength, :confidence, :properties, :t_valid,
            :t_invalid, :extracted_by, :now)
    ON CONFLICT (workspace_id, source_id, target_id, rel_type) DO UPDATE
    SET label = excluded.label, strength = excluded.strength, confidence = excluded.confidence,
        properties = excluded.properties, t_valid = excluded.t_valid, t_invalid = excluded.t_invalid,
        extracted_by = excluded.extracted_by, updated_at = excluded.updated_at
    RETURNING {COLUMNS.format(a="e")}, CAST(:source AS text) AS source, CAST(:target AS text) AS target,
        CAST('{{}}' AS uuid[]) AS memory_ids, xmax = 0 AS is_new
""")  # noqa: S608 - no user input

# A relation read from a text never changes an existing edge, whether a caller or another memory made it.
ADD_EXTRACTED = statement("""
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, confidence,
                             extracted_by, t_valid, updated_at)
    SELECT n.workspace_id, new.id, new.source_id, new.type, new.label, new.target_id, 1, new.confidence,
           new.extracted_by, NULL, :now
    FROM unnest(CAST(:ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:types AS text[]), CAST(:labels AS text[]),
                CAST(:targets AS uuid[]), CAST(:extractors AS text[]), CAST(:confidences AS float8[]))
        WITH ORDINALITY AS new (id, source_id, type, label, target_id, extracted_by, confidence, place)
    JOIN entity n ON n.workspace_id = :workspace AND n.id = new.source_id
    ORDER BY new.source_id, new.target_id, new.type, new.place
    ON CONFLICT (workspace_id, source_id, target_id, rel_type) DO NOTHING
""")

# A memory is no longer evidence for relations that the extractor no longer reads in it. LATERAL, because without
# statistics of a new table the planner joined all edges for each evidence.
EVIDENCE = text("""
    WITH given AS MATERIALIZED (
        SELECT e.id AS edge_id, s.memory_id, s.extracted_by, s.place
        FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:types AS text[]),
                    CAST(:targets AS uuid[]), CAST(:extractors AS text[]))
            WITH ORDINALITY AS s (memory_id, source_id, type, target_id, extracted_by, place)
        CROSS JOIN LATERAL (
            SELECT id FROM entity_edge WHERE workspace_id = :workspace AND source_id = s.source_id
                AND target_id = s.target_id AND rel_type = s.type LIMIT 1) e
    ), outdated AS (
        DELETE FROM entity_edge_source x USING unnest(CAST(:read AS uuid[]), CAST(:readers AS text[])) AS r (id, reader)
        WHERE x.workspace_id = :workspace AND x.memory_id = ANY (CAST(:read AS uuid[])) AND x.memory_id = r.id
          AND x.extracted_by = r.reader AND NOT EXISTS (
              SELECT FROM given WHERE given.memory_id = r.id AND given.edge_id = x.edge_id)
    ), added AS (
        INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
        SELECT DISTINCT ON (edge_id, memory_id) CAST(:workspace AS uuid), edge_id, memory_id, extracted_by
        FROM given ORDER BY edge_id, memory_id, place ON CONFLICT DO NOTHING
    )
    SELECT
""")

# A relation that was read from texts is valid as long as one of the memories that are evidence for it: until the last
# of them ends or is archived. An edge that has ended keeps its end. ARRAY for the same reason.
UPDATE_VALIDITY = statement("""
    WITH evidenced AS MATERIALIZED (
        SELECT r.id, nullif((
            SELECT max(CASE WHEN m.archived THEN least(m.t_invalid, CAST(:now AS timestamptz))
                            ELSE coalesce(m.t_invalid, 'infinity') END)
            FROM entity_edge_source o JOIN memory m ON m.workspace_id = o.workspace_id AND m.id = o.memory_id
            WHERE o.workspace_id = r.workspace_id AND o.edge_id = r.id), 'infinity') AS ended_at
        FROM entity_edge r
        WHERE r.workspace_id = :workspace AND r.extracted_by <> 'caller' AND r.id = ANY (ARRAY(
            SELECT x.edge_id FROM entity_edge_source x
            WHERE x.workspace_id = :workspace AND x.memory_id = ANY (CAST(:memory_ids AS uuid[]))))
        ORDER BY r.id FOR NO KEY UPDATE
    )
    UPDATE entity_edge e SET t_invalid = v.ended_at, updated_at = :now FROM evidenced v
    WHERE e.workspace_id = :workspace AND e.id = v.id AND e.t_invalid IS DISTINCT FROM v.ended_at
      AND (e.t_invalid IS NULL OR v.ended_at IS NULL OR e.t_invalid > :now OR v.ended_at > :now)
""")

# Locked before memories are deleted, because deleting them removes edges without other evidence.
LOCK_EVIDENCED = statement("""
    SELECT FROM entity_edge e WHERE e.workspace_id = :workspace AND e.id IN (
        SELECT x.edge_id FROM entity_edge_source x
        WHERE x.workspace_id = :workspace AND x.memory_id = ANY (CAST(:ids AS uuid[])))
    ORDER BY e.id FOR UPDATE
""")

REMOVE = text("""
    DELETE FROM entity_edge e WHERE e.workspace_id = :workspace AND e.source_id = :source_id
      AND e.target_id = :target_id AND (CAST(:type AS text) IS NULL OR e.rel_type = :type)
""")

BOTH_WAYS = """(
        SELECT source_id AS near, target_id AS far, entity_edge.* FROM entity_edge
        UNION ALL SELECT target_id, source_id, entity_edge.* FROM entity_edge
    )"""
"""Every edge as seen from each of its ends. The planner takes it apart, and merges an index of each end."""

# The edges of one or a few entities, the strongest first. ix_entity_edge_source and _target.
PAGE = statement(f"""
    SELECT {SHOWN.format(a="edges")} FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
        SELECT {COLUMNS.format(a="e")}, e.far FROM {BOTH_WAYS} e
        WHERE e.workspace_id = :workspace AND e.near = here.id AND {VALID.format(a="e")}
          AND (CAST(:types AS text[]) IS NULL OR e.rel_type = ANY (CAST(:types AS text[])))
          AND (CAST(:after_strength AS float8) IS NULL
               OR (-e.strength, e.far, e.id) > (-CAST(:after_strength AS float8), CAST(:after_far AS uuid),
                                                CAST(:after_id AS uuid)))
        ORDER BY e.strength DESC, e.far, e.id LIMIT :limit
    ) edges
    ORDER BY strength DESC, far, id LIMIT :limit
""")  # noqa: S608 - no user input


@dataclass(frozen=True, slots=True)
class ExtractedRelation:
    """A relation that was read from a memory, between existing entities. `confidence` 0..1."""

    memory_id: UUID
    source_id: UUID
    type: str
    label: str
    target_id: UUID
    extracted_by: str
    confidence: float


async def lock_ends(session: Session, ids: Sequence[UUID]) -> dict[UUID, direct.DriverRow]:
    """Locks the entities among `ids` that exist against deletion until the transaction ends; returns user_id, channel
    and name of each."""
    return {row.id: row for row in await direct.fetch(session, LOCK_ENDS, {"ids": list(ids)})}


async def put(session: Session, values: Mapping[str, Any], *, now: datetime) -> tuple[EntityRelation, bool]:
    """Stores an edge of a caller with the names of its ends; returns it, and whether it is new. An existing one gets
    the new values."""
    row = (await session.execute(PUT, {**values, "id": uuid7(), "extracted_by": CALLER, "now": now})).one()
    return relation_of(row), bool(row.is_new)


async def store_extracted(
    session: Session, relations: Sequence[ExtractedRelation], *, read: Collection[tuple[UUID, str]], now: datetime
) -> None:
    """Makes memories evidence for exactly these relations, for the extractors in `read` (memory, extractor). Lock the
    ends first."""
    values: dict[str, Any] = {
        "sources": [relation.source_id for relation in relations],
        "types": [relation.type for relation in relations],
        "targets": [relation.target_id for relation in relations],
        "extractors": [relation.extracted_by for relation in relations],
    }
    if relations:
        new = {
            "ids": [uuid7() for _ in relations],
            "labels": [relation.label for relation in relations],
            "confidences": [relation.confidence for relation in relations],
            "now": now,
        }
        await direct.fetch(session, ADD_EXTRACTED, values | new)
    evidence = {
        "memory_ids": [relation.memory_id for relation in relations],
        "read": [memory_id for memory_id, _ in read],
        "readers": [by for _, by in read],
    }
    await direct.fetch(session, EVIDENCE, values | evidence)


async def update_validity(session: Session, memory_ids: Sequence[UUID], *, now: datetime) -> None:
    """Ends or prolongs the relations for which these memories are evidence, after a change of their validity."""
    await direct.fetch(session, UPDATE_VALIDITY, {"memory_ids": list(memory_ids), "now": now})


async def lock_evidenced(session: Session, memory_ids: Sequence[UUID]) -> None:
    """Locks the edges for which these memories are evidence, by ascending id."""
    await session.execute(LOCK_EVIDENCED, {"ids": list(memory_ids)})


async def remove(session: Session, source_id: UUID, target_id: UUID, kind: str | None) -> int:
    """Removes edges from source to target, of all types if `kind` is None; returns how many."""
    values = {"source_id": source_id, "target_id": target_id, "type": kind}
    return (await session.execute(REMOVE, values)).rowcount


async def page(
    session: Session, ids: Sequence[UUID], edges: EdgeFilter, *, after: EdgePlace | None, limit: int
) -> list[EntityRelation]:
    """The edges of these entities, the strongest first."""
    place = dict(zip(("after_strength", "after_far", "after_id"), after or (None, None, None), strict=True))
    values = {**edges.values, **place, "ids": list(ids), "limit": limit}
    return await direct.page(session, PAGE, values, relation_of)


relation_of = direct.reader(EntityRelation, type=lambda row: row.rel_type)


# -- walks ------------------------------------------------------------------------------------------------------------

FAN_OUT = 50
"""Edges of a node that a walk follows, the strongest."""

# One step of a walk. Of each node FAN_OUT edges are followed and one more is read, which shows that there are more. It
# returns each new node once, with the id and other end of its strongest edge, and whether any node had too many. With
# types, each type is read by its own index (…_type) and the strongest of all are kept.
STEP = """
    WITH stepped AS MATERIALIZED (
        SELECT node.id AS near, edges.id, edges.strength, edges.far, edges.place
        FROM unnest(CAST(:ids AS uuid[])) AS node (id) CROSS JOIN LATERAL (
            SELECT strongest.*, row_number() OVER (ORDER BY strength DESC, far, strongest.id) AS place
            FROM {each_type} (
                SELECT e.id, e.strength, e.far FROM {both_ways} e
                WHERE e.workspace_id = :workspace AND e.near = node.id AND {valid} {own_type}
                ORDER BY e.strength DESC, e.far LIMIT :fan_out + 1
            ) strongest
        ) edges
        WHERE edges.place <= :fan_out + 1
    ), fresh AS (
        SELECT DISTINCT ON (far) near, id, strength, far FROM stepped
        WHERE place <= :fan_out AND NOT far = ANY (CAST(:seen AS uuid[])) ORDER BY far, strength DESC, id
    ), kept AS (
        SELECT * FROM fresh ORDER BY strength DESC, far LIMIT :room
    )
    SELECT (SELECT coalesce(max(place), 0) FROM stepped) > :fan_out AS truncated, kept.*
    FROM (SELECT true) always LEFT JOIN kept ON true
    ORDER BY kept.strength DESC, kept.far
"""


def _step(*, of_types: bool) -> TextClause:
    each_type = "unnest(CAST(:types AS text[])) AS wanted (type) CROSS JOIN LATERAL" if of_types else ""
    own_type = "AND e.rel_type = wanted.type" if of_types else ""
    valid = VALID.format(a="e")
    return statement(STEP.format(each_type=each_type, own_type=own_type, both_ways=BOTH_WAYS, valid=valid))


STEP_ANY, STEP_OF_TYPES = _step(of_types=False), _step(of_types=True)

# The edges between the nodes of a neighbourhood: for each node its strongest ones that end inside.
INSIDE = statement(f"""
    SELECT e.id FROM unnest(CAST(:ids AS uuid[])) AS node (id) CROSS JOIN LATERAL (
        SELECT o.* FROM entity_edge o
        WHERE o.workspace_id = :workspace AND o.source_id = node.id AND {VALID.format(a="o")}
          AND (CAST(:types AS text[]) IS NULL OR o.rel_type = ANY (CAST(:types AS text[])))
        ORDER BY o.strength DESC, o.target_id LIMIT :fan_out
    ) e
    WHERE e.target_id = ANY (CAST(:ids AS uuid[]))
    ORDER BY e.strength DESC, e.id LIMIT :limit
""")  # noqa: S608 - no user input

BY_IDS = statement(f"""
    SELECT {SHOWN.format(a="e")} FROM entity_edge e
    WHERE e.workspace_id = :workspace AND e.id = ANY (CAST(:ids AS uuid[]))
""")  # noqa: S608 - no user input


async def neighbourhood(
    session: Session, starts: Sequence[UUID], edges: EdgeFilter, *, depth: int, limit: int
) -> Neighbourhood:
    """The entities up to `depth` (1..3) edges away from the starts: at most `limit`, nearest first, then by the
    strength of the edge that leads to them; each once."""
    depths, walked, truncated = dict.fromkeys(starts, 0), list[UUID](), False
    frontier = list(depths)
    for hop in range(1, depth + 1):
        room = limit - len(depths)
        fresh, cut = await _advance(session, frontier, list(depths), edges, room=room + 1)
        truncated |= cut or len(fresh) > room
        frontier = [row.far for row in fresh[:room]]
        depths |= dict.fromkeys(frontier, hop)
        walked += [row.id for row in fresh[:room]]
        if not frontier:
            break
    values = {**edges.values, "ids": list(depths), "fan_out": FAN_OUT, "limit": limit * 4}
    inside = await session.scalars(INSIDE, values)
    return Neighbourhood(depths, await _read(session, [*inside, *walked]), truncated)


async def _read(session: Session, ids: Sequence[UUID]) -> tuple[EntityRelation, ...]:
    """The edges with these ids that still exist, each once, in this order."""
    by_id = {row.id: relation_of(row) for row in await session.execute(BY_IDS, {"ids": list(ids)})}
    return tuple(by_id[edge_id] for edge_id in dict.fromkeys(ids) if edge_id in by_id)


async def _advance(
    session: Session, ids: Sequence[UUID], seen: Sequence[UUID], edges: EdgeFilter, *, room: int
) -> tuple[list[Row[Any]], bool]:
    """The unseen nodes one edge further (`far`), with that edge (`id`, `near`), and whether a node had more than
    FAN_OUT."""
    values = {**edges.values, "ids": list(ids), "fan_out": FAN_OUT, "room": room}
    values["seen"] = list(seen)
    if not edges.types:
        del values["types"]
    step = STEP_OF_TYPES if edges.types else STEP_ANY
    rows = (await session.execute(step, values)).all()
    return [row for row in rows if row.far is not None], bool(rows[0].truncated)


@dataclass(slots=True)
class _Search:
    """One of two breadth-first searches that meet: from which node and by which edge each node was found, and the
    newest nodes."""

    found: dict[UUID, tuple[UUID, UUID] | None]
    frontier: list[UUID]
    depth: int = 0

    @classmethod
    def begin(cls, start: UUID) -> _Search:
        return cls({start: None}, [start])

    def path_to_start(self, node: UUID) -> list[tuple[UUID, UUID]]:
        """The path from `node` to the start of this search: each step's next node and edge."""
        steps = []
        while (step := self.found[node]) is not None:
            node = step[0]
            steps.append(step)
        return steps


async def shortest_path(
    session: Session, start: UUID, goal: UUID, edges: EdgeFilter, *, max_edges: int, max_nodes: int
) -> EntityPath:
    """A shortest path of at most `max_edges` edges; among several, the one found by the strongest edges. Each of the
    two searches looks at no more than `max_nodes` entities."""
    if start == goal:
        return EntityPath((start,), (), truncated=False)
    from_start, from_goal = _Search.begin(start), _Search.begin(goal)
    truncated = False
    while from_start.depth + from_goal.depth < max_edges and from_start.frontier and from_goal.frontier:
        side, other = (
            (from_start, from_goal) if len(from_start.frontier) <= len(from_goal.frontier) else (from_goal, from_start)
        )
        room = max_nodes - len(side.found)
        fresh, cut = await _advance(session, side.frontier, list(side.found), edges, room=max(room, 0))
        truncated |= cut or len(fresh) >= room
        side.found |= {row.far: (row.near, row.id) for row in fresh}
        side.frontier = [row.far for row in fresh]
        side.depth += 1
        meetings = [far for far in side.frontier if far in other.found]
        if meetings:  # one of them may be less deep in the other search, by an edge that its hub did not follow
            meeting = min(meetings, key=lambda far: len(other.path_to_start(far)))
            back, on = from_start.path_to_start(meeting), from_goal.path_to_start(meeting)
            nodes = [*(node for node, _ in reversed(back)), meeting, *(node for node, _ in on)]
            ways = [*(edge for _, edge in reversed(back)), *(edge for _, edge in on)]
            return EntityPath(tuple(nodes), await _read(session, ways), truncated)
    return EntityPath((), (), truncated=truncated)

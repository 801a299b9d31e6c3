"""How do entities stand to each other, who says so, and where does that lead?

Whoever writes an edge first locks both ends, in the order of their ids, and several edges in the order of their keys:
two writers never wait for each other in a circle. A walk reads of each node the FAN_OUT strongest edges in either
direction, by the indexes that hold them in that order, so a node with 100,000 edges costs what one with fifty does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.selectable import TextualSelect
from sqlalchemy.types import TypeEngine
from uuid_utils.compat import uuid7

from service.db import direct
from service.db.conditions import typed
from service.db.engine import Session
from service.domain.entity import EntityPath, EntityRelation, Neighbourhood, ReachedEntity

FAN_OUT = 50
"""Edges of a node that a walk follows, the strongest (decisions C)."""

PAIRS = 5_000
"""Pairs of ends that are looked up at once while two searches close in on each other; some 10 ms."""

COLUMNS = """{a}.id, {a}.source_id, {a}.rel_type, {a}.label, {a}.target_id, {a}.strength, {a}.confidence,
    {a}.properties, {a}.t_valid, {a}.t_invalid, {a}.extracted_by, {a}.created_at, {a}.updated_at"""

HOLDS = """(CAST(:at AS timestamptz) IS NULL
    OR (({a}.t_valid IS NULL OR {a}.t_valid <= :at) AND ({a}.t_invalid IS NULL OR {a}.t_invalid > :at)))"""

TYPES: Mapping[str, TypeEngine[Any]] = {
    "at": DateTime(timezone=True),
    "t_valid": DateTime(timezone=True),
    "t_invalid": DateTime(timezone=True),
    "properties": JSONB(),
}


def statement(sql: str) -> TextClause:
    """The text, with the types of those values that the driver would guess wrong."""
    bound = [bindparam(name, type_=kind) for name, kind in TYPES.items() if f":{name}" in sql]
    return typed(text(sql)).bindparams(*bound)


LOCK_ENDS = text("""
    SELECT id, user_id, channel, name FROM entity
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR KEY SHARE
""")

# uq_entity_edge_…: one edge per pair and type, however it was called (R8.04)
PUT = statement(f"""
    INSERT INTO entity_edge AS e (workspace_id, id, source_id, rel_type, label, target_id, strength, confidence,
                                  properties, t_valid, t_invalid, extracted_by, updated_at)
    VALUES (:workspace, :id, :source_id, :type, :label, :target_id, :strength, :confidence, :properties, :t_valid,
            :t_invalid, :extracted_by, :now)
    ON CONFLICT (workspace_id, source_id, target_id, rel_type) DO UPDATE
    SET label = excluded.label, strength = excluded.strength, confidence = excluded.confidence,
        properties = excluded.properties, t_valid = excluded.t_valid, t_invalid = excluded.t_invalid,
        extracted_by = excluded.extracted_by, updated_at = excluded.updated_at
    RETURNING {COLUMNS.format(a="e")}, xmax = 0 AS is_new
""").columns(properties=JSONB())  # noqa: S608 - our own parts

# What a text says never changes an edge that is there: neither a caller's words nor those of another memory.
SAID = statement("""
    INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, confidence,
                             extracted_by, t_valid, updated_at)
    SELECT :workspace, said.id, said.source_id, said.type, said.label, said.target_id, 1, said.confidence,
           said.extracted_by, NULL, :now
    FROM unnest(CAST(:ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:types AS text[]), CAST(:labels AS text[]),
                CAST(:targets AS uuid[]), CAST(:extractors AS text[]), CAST(:confidences AS float8[]))
        WITH ORDINALITY AS said (id, source_id, type, label, target_id, extracted_by, confidence, place)
    ORDER BY said.source_id, said.target_id, said.type, said.place
    ON CONFLICT (workspace_id, source_id, target_id, rel_type) DO NOTHING
""")

EVIDENCE = text("""
    WITH said AS MATERIALIZED (
        SELECT s.memory_id, s.extracted_by, s.place, e.id
        FROM unnest(CAST(:memory_ids AS uuid[]), CAST(:sources AS uuid[]), CAST(:types AS text[]),
                    CAST(:targets AS uuid[]), CAST(:extractors AS text[]))
            WITH ORDINALITY AS s (memory_id, source_id, type, target_id, extracted_by, place)
        JOIN entity_edge e ON e.workspace_id = :workspace AND e.source_id = s.source_id
            AND e.target_id = s.target_id AND e.rel_type = s.type
    ), unsaid AS (
        DELETE FROM entity_edge_source x
        USING unnest(CAST(:read AS uuid[]), CAST(:readers AS text[])) AS r (memory_id, extracted_by)
        WHERE x.workspace_id = :workspace AND x.memory_id = r.memory_id AND x.extracted_by = r.extracted_by
          AND NOT EXISTS (SELECT FROM said WHERE said.memory_id = x.memory_id AND said.id = x.edge_id)
    )
    INSERT INTO entity_edge_source (workspace_id, edge_id, memory_id, extracted_by)
    SELECT DISTINCT ON (id, memory_id) :workspace, id, memory_id, extracted_by
    FROM said ORDER BY id, memory_id, place ON CONFLICT DO NOTHING
""")

# What was read in texts holds as long as one of the memories that tell it: until the last of them ends or is archived.
# An edge that is over already stays over since then.
# Step by step, because the planner, while it knows nothing of a young table, read all edges for each edge.
AS_TOLD = statement("""
    WITH here AS MATERIALIZED (
        SELECT DISTINCT x.edge_id FROM entity_edge_source x
        WHERE x.workspace_id = :workspace AND x.memory_id = ANY (CAST(:memory_ids AS uuid[]))
    ), told AS MATERIALIZED (
        SELECT r.id, nullif((
            SELECT max(CASE WHEN m.archived THEN least(m.t_invalid, CAST(:now AS timestamptz))
                            ELSE coalesce(m.t_invalid, 'infinity') END)
            FROM entity_edge_source o JOIN memory m ON m.workspace_id = o.workspace_id AND m.id = o.memory_id
            WHERE o.workspace_id = r.workspace_id AND o.edge_id = r.id), 'infinity') AS over
        FROM here JOIN entity_edge r ON r.workspace_id = :workspace AND r.id = here.edge_id
        WHERE r.extracted_by <> 'caller' ORDER BY r.id FOR NO KEY UPDATE OF r
    )
    UPDATE entity_edge e SET t_invalid = told.over, updated_at = :now FROM told
    WHERE e.workspace_id = :workspace AND e.id = told.id AND e.t_invalid IS DISTINCT FROM told.over
      AND (e.t_invalid IS NULL OR told.over IS NULL OR e.t_invalid > :now OR told.over > :now)
""")

# Behind this lock a memory can go: its edges are the next thing its deletion touches.
LOCK_SAID = statement("""
    SELECT FROM entity_edge e WHERE e.workspace_id = :workspace AND e.id IN (
        SELECT x.edge_id FROM entity_edge_source x
        WHERE x.workspace_id = :workspace AND x.memory_id = ANY (CAST(:ids AS uuid[])))
    ORDER BY e.id FOR UPDATE
""")

TOLD_BY = text("""
    SELECT here.id, told.memory_id FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
        SELECT x.memory_id FROM entity_edge_source x WHERE x.workspace_id = :workspace AND x.edge_id = here.id
        ORDER BY x.memory_id LIMIT :each) told
""")

REMOVE = text("""
    DELETE FROM entity_edge e WHERE e.workspace_id = :workspace AND e.source_id = :source_id
      AND e.target_id = :target_id AND (CAST(:type AS text) IS NULL OR e.rel_type = :type)
""")

# A page of one or a few nodes' edges, both directions, the strongest first. ix_entity_edge_source and _target.
SIDE = """
    (SELECT {columns}, CAST('{way}' AS text) AS way, e.{far} AS far FROM entity_edge e
     WHERE e.workspace_id = :workspace AND e.{near} = here.id AND {holds}
       AND (CAST(:types AS text[]) IS NULL OR e.rel_type = ANY (CAST(:types AS text[])))
       AND (CAST(:after_strength AS float8) IS NULL
            OR (-e.strength, e.{far}, e.id) > (-CAST(:after_strength AS float8), CAST(:after_far AS uuid),
                                               CAST(:after_id AS uuid)))
     ORDER BY e.strength DESC, e.{far}, e.id LIMIT :limit)
"""


def _side(way: str, near: str, far: str) -> str:
    return SIDE.format(columns=COLUMNS.format(a="e"), way=way, near=near, far=far, holds=HOLDS.format(a="e"))


PAGE = statement(f"""
    SELECT both_ways.* FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
        {_side("out", "source_id", "target_id")} UNION ALL {_side("in", "target_id", "source_id")}
    ) both_ways
    ORDER BY strength DESC, far, id LIMIT :limit
""").columns(properties=JSONB())  # noqa: S608 - our own parts

# One step of a walk. Of each node FAN_OUT edges are followed and one more is read, which tells that there are more.
# What comes back is each new node once, by its strongest edge, and whether any node was cut. With types, each type is
# read by its own index (…_type) and the strongest of all are kept.
STEP_SIDE = """
    (SELECT e.id, e.strength, e.{far} AS far FROM entity_edge e
     WHERE e.workspace_id = :workspace AND e.{near} = here.id AND {holds} {typed}
     ORDER BY e.strength DESC, e.{far} LIMIT :fan_out + 1)
"""
STEP = """
    WITH stepped AS MATERIALIZED (
        SELECT edges.id, edges.strength, edges.far, edges.place
        FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
            SELECT both_ways.*, row_number() OVER (ORDER BY strength DESC, far, both_ways.id) AS place
            FROM {each_type} ({out} UNION ALL {back}) both_ways
        ) edges
        WHERE edges.place <= :fan_out + 1
    ), fresh AS (
        SELECT DISTINCT ON (far) id, strength, far FROM stepped
        WHERE place <= :fan_out AND NOT far = ANY (CAST(:seen AS uuid[])) ORDER BY far, strength DESC, id
    ), kept AS (
        SELECT * FROM fresh ORDER BY strength DESC, far LIMIT :room
    )
    SELECT (SELECT coalesce(max(place), 0) FROM stepped) > :fan_out AS cut, kept.far, {columns}
    FROM (SELECT true) always LEFT JOIN kept ON true
    LEFT JOIN entity_edge e ON e.workspace_id = :workspace AND e.id = kept.id
    ORDER BY kept.strength DESC, kept.far
"""


def _step(*, of_types: bool) -> TextualSelect:
    each_type = "unnest(CAST(:types AS text[])) AS wanted (type) CROSS JOIN LATERAL" if of_types else ""
    own_type = "AND e.rel_type = wanted.type" if of_types else ""
    sides = {
        name: STEP_SIDE.format(near=near, far=far, holds=HOLDS.format(a="e"), typed=own_type)
        for name, near, far in (("out", "source_id", "target_id"), ("back", "target_id", "source_id"))
    }
    filled = STEP.format(each_type=each_type, columns=COLUMNS.format(a="e"), **sides)
    return statement(filled).columns(properties=JSONB())


STEP_ANY, STEP_OF_TYPES = _step(of_types=False), _step(of_types=True)

# The edges between the nodes of a neighbourhood: of each its strongest that end inside.
INSIDE = statement(f"""
    SELECT {COLUMNS.format(a="e")} FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
        SELECT o.* FROM entity_edge o
        WHERE o.workspace_id = :workspace AND o.source_id = here.id AND {HOLDS.format(a="o")}
          AND (CAST(:types AS text[]) IS NULL OR o.rel_type = ANY (CAST(:types AS text[])))
        ORDER BY o.strength DESC, o.target_id LIMIT :fan_out
    ) e
    WHERE e.target_id = ANY (CAST(:ids AS uuid[]))
    ORDER BY e.strength DESC, e.id LIMIT :limit
""").columns(properties=JSONB())  # noqa: S608 - our own parts

# Any edge between one node of each side, by uq_entity_edge_…: exact also where a hub's fifty strongest leave it out.
CLOSING = statement(f"""
    SELECT {COLUMNS.format(a="e")}, pair.near, pair.far FROM (
        SELECT a.id AS near, b.id AS far FROM unnest(CAST(:ids AS uuid[])) AS a (id)
        CROSS JOIN unnest(CAST(:others AS uuid[])) AS b (id)
    ) pair CROSS JOIN LATERAL (
        SELECT o.* FROM entity_edge o
        WHERE o.workspace_id = :workspace AND o.source_id = pair.near AND o.target_id = pair.far
        UNION ALL
        SELECT i.* FROM entity_edge i
        WHERE i.workspace_id = :workspace AND i.source_id = pair.far AND i.target_id = pair.near
    ) e
    WHERE {HOLDS.format(a="e")}
      AND (CAST(:types AS text[]) IS NULL OR e.rel_type = ANY (CAST(:types AS text[])))
    ORDER BY e.strength DESC, e.id LIMIT 1
""").columns(properties=JSONB())  # noqa: S608 - our own parts


@dataclass(frozen=True, slots=True)
class Way:
    """Which edges count: those that hold `at` a moment (None: all), of these types (none: all)."""

    at: datetime | None
    types: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        return {"at": self.at, "types": list(self.types) or None, "fan_out": FAN_OUT}


@dataclass(frozen=True, slots=True)
class Said:
    """A relation that a memory tells, between entities that there are. `extracted_by`: who read that in it, and how
    sure (0..1)."""

    memory_id: UUID
    source_id: UUID
    type: str
    label: str
    target_id: UUID
    extracted_by: str
    confidence: float


@dataclass(frozen=True, slots=True)
class End:
    """An end of an edge, locked."""

    user_id: str | None
    channel: str
    name: str


async def lock_ends(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> dict[UUID, End]:
    """The entities among `ids` that there are; they cannot go before the transaction ends."""
    rows = await direct.fetch(session, LOCK_ENDS, {"workspace": workspace_id, "ids": list(ids)})
    return {row.id: End(row.user_id, row.channel, row.name) for row in rows}


async def put(
    session: Session, workspace_id: UUID, relation: EntityRelation, *, now: datetime
) -> tuple[EntityRelation, bool]:
    """The edge as stored, and whether it is new: the same pair and type again takes the new values (R8.04)."""
    values = {
        "workspace": workspace_id,
        "id": relation.id,
        "source_id": relation.source_id,
        "type": relation.type,
        "label": relation.label,
        "target_id": relation.target_id,
        "strength": relation.strength,
        "confidence": relation.confidence,
        "properties": dict(relation.properties),
        "t_valid": relation.t_valid,
        "t_invalid": relation.t_invalid,
        "extracted_by": relation.extracted_by,
        "now": now,
    }
    row = (await session.execute(PUT, values)).one()
    return _relation(row), bool(row.is_new)


async def say(
    session: Session, workspace_id: UUID, told: Sequence[Said], *, read: Collection[tuple[UUID, str]], now: datetime
) -> None:
    """Makes memories tell exactly these relations, as far as those who `read` them are concerned (memory and
    extractor). The ends are locked."""
    values: dict[str, Any] = {
        "workspace": workspace_id,
        "sources": [each.source_id for each in told],
        "types": [each.type for each in told],
        "targets": [each.target_id for each in told],
        "extractors": [each.extracted_by for each in told],
    }
    if told:
        made = {
            "ids": [uuid7() for _ in told],
            "labels": [each.label for each in told],
            "confidences": [each.confidence for each in told],
            "now": now,
        }
        await direct.fetch(session, SAID, values | made)
    of = {
        "memory_ids": [each.memory_id for each in told],
        "read": [memory_id for memory_id, _ in read],
        "readers": [by for _, by in read],
    }
    await direct.fetch(session, EVIDENCE, values | of)


async def hold_as_told(session: Session, workspace_id: UUID, memory_ids: Sequence[UUID], *, now: datetime) -> None:
    """Makes the relations that these memories tell hold as long as the memories that tell them."""
    await direct.fetch(session, AS_TOLD, {"workspace": workspace_id, "memory_ids": list(memory_ids), "now": now})


async def lock_said(session: Session, workspace_id: UUID, memory_ids: Sequence[UUID]) -> None:
    await session.execute(LOCK_SAID, {"workspace": workspace_id, "ids": list(memory_ids)})


async def remove(session: Session, workspace_id: UUID, source_id: UUID, target_id: UUID, kind: str | None) -> int:
    """How many edges from source to target went; all types when `kind` is None."""
    values = {"workspace": workspace_id, "source_id": source_id, "target_id": target_id, "type": kind}
    return (await session.execute(REMOVE, values)).rowcount


async def evidence(
    session: Session, workspace_id: UUID, edge_ids: Sequence[UUID], *, each: int
) -> dict[UUID, list[UUID]]:
    """Of each edge up to `each` memories that tell of it."""
    found: dict[UUID, list[UUID]] = {}
    for row in await session.execute(TOLD_BY, {"workspace": workspace_id, "ids": list(edge_ids), "each": each}):
        found.setdefault(row.id, []).append(row.memory_id)
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: strength, other end and id of its last edge."""

    strength: float
    far: UUID
    id: UUID


async def page(
    session: Session, workspace_id: UUID, ids: Sequence[UUID], way: Way, *, after: Place | None, limit: int
) -> list[tuple[EntityRelation, str]]:
    """The edges of these entities, the strongest first, each with its direction seen from them: out or in."""
    values = {
        **way.values,
        "workspace": workspace_id,
        "ids": list(ids),
        "after_strength": after.strength if after else None,
        "after_far": after.far if after else None,
        "after_id": after.id if after else None,
        "limit": limit,
    }
    del values["fan_out"]
    return [(_relation(row), row.way) for row in await session.execute(PAGE, values)]


async def around(
    session: Session, workspace_id: UUID, starts: Sequence[UUID], way: Way, *, depth: int, limit: int
) -> Neighbourhood:
    """What lies up to `depth` (1..3) edges around the starts: at most `limit` entities, the near ones first, then by
    the strength of the edge that leads to them; each once."""
    reached = [ReachedEntity(each, 0, None) for each in dict.fromkeys(starts)]
    frontier = [each.entity_id for each in reached]
    truncated = False
    for hop in range(1, depth + 1):
        room = limit - len(reached)
        seen = [each.entity_id for each in reached]
        fresh, cut = await _stepped(session, workspace_id, frontier, seen, way, room=room + 1)
        truncated |= cut or len(fresh) > room
        found = [ReachedEntity(far, hop, by) for far, by in fresh[:room]]
        reached += found
        frontier = [each.entity_id for each in found]
        if not frontier:
            break
    ids = [each.entity_id for each in reached]
    values = {**way.values, "workspace": workspace_id, "ids": ids, "limit": limit * 4}
    inside = {edge.id: edge for edge in map(_relation, await session.execute(INSIDE, values))}
    for each in reached:
        if each.via is not None:
            inside.setdefault(each.via.id, each.via)
    return Neighbourhood(tuple(reached), tuple(inside.values()), truncated)


async def _stepped(
    session: Session, workspace_id: UUID, ids: Sequence[UUID], seen: Sequence[UUID], way: Way, *, room: int
) -> tuple[list[tuple[UUID, EntityRelation]], bool]:
    """The nodes one edge on that were not seen, with that edge, and whether a node had more than FAN_OUT."""
    values = {**way.values, "workspace": workspace_id, "ids": list(ids), "seen": list(seen), "room": room}
    if not way.types:
        del values["types"]
    step = STEP_OF_TYPES if way.types else STEP_ANY
    rows = (await session.execute(step, values)).all()
    return [(row.far, _relation(row)) for row in rows if row.far is not None], bool(rows[0].cut)


@dataclass(slots=True)
class _Search:
    """One of two searches that close in on each other: by which edge each node was found, and the newest nodes."""

    found: dict[UUID, EntityRelation | None]
    frontier: list[UUID]
    depth: int = 0

    @classmethod
    def begin(cls, start: UUID) -> _Search:
        return cls({start: None}, [start])

    def back(self, node: UUID) -> list[tuple[UUID, EntityRelation]]:
        """The way from `node` to the start of this search: each step's next node and edge."""
        steps = []
        while (by := self.found[node]) is not None:
            node = by.other_end(node)
            steps.append((node, by))
        return steps


async def route(
    session: Session, workspace_id: UUID, start: UUID, goal: UUID, way: Way, *, max_edges: int, max_nodes: int
) -> EntityPath:
    """A shortest way of at most `max_edges` edges; of several the one that was found by the strongest edges. Each
    side looks at `max_nodes` entities at most."""
    if start == goal:
        return EntityPath((start,), (), truncated=False)
    here, there = _Search.begin(start), _Search.begin(goal)
    truncated = False
    while here.depth + there.depth < max_edges and here.frontier and there.frontier:
        if len(here.frontier) * len(there.frontier) <= PAIRS:
            closing = await _closing(session, workspace_id, here.frontier, there.frontier, way)
            if closing is not None:
                return _joined(here, there, *closing, truncated=truncated)
            if here.depth + there.depth + 1 == max_edges:
                break
        side, other = (here, there) if len(here.frontier) <= len(there.frontier) else (there, here)
        room = max_nodes - len(side.found)
        fresh, cut = await _stepped(session, workspace_id, side.frontier, list(side.found), way, room=max(room, 0))
        truncated |= cut or len(fresh) >= room
        met = next(((far, by) for far, by in fresh if far in other.found), None)
        side.found |= dict(fresh)
        side.frontier = [far for far, _ in fresh]
        side.depth += 1
        if met is not None:
            meeting = met[0]
            ends = here.back(meeting), there.back(meeting)
            return _told(meeting, *ends, truncated=truncated)
    return EntityPath((), (), truncated=truncated)


async def _closing(
    session: Session, workspace_id: UUID, ids: Sequence[UUID], others: Sequence[UUID], way: Way
) -> tuple[UUID, UUID, EntityRelation] | None:
    values = {**way.values, "workspace": workspace_id, "ids": list(ids), "others": list(others)}
    del values["fan_out"]
    row = (await session.execute(CLOSING, values)).one_or_none()
    return None if row is None else (row.near, row.far, _relation(row))


def _joined(here: _Search, there: _Search, near: UUID, far: UUID, by: EntityRelation, *, truncated: bool) -> EntityPath:
    return _told(near, here.back(near), [(far, by), *there.back(far)], truncated=truncated)


def _told(
    meeting: UUID,
    back: Sequence[tuple[UUID, EntityRelation]],
    on: Sequence[tuple[UUID, EntityRelation]],
    *,
    truncated: bool,
) -> EntityPath:
    nodes = [*(node for node, _ in reversed(back)), meeting, *(node for node, _ in on)]
    edges = [*(edge for _, edge in reversed(back)), *(edge for _, edge in on)]
    return EntityPath(tuple(nodes), tuple(edges), truncated)


def _relation(row: Any) -> EntityRelation:
    return EntityRelation(
        row.id,
        row.source_id,
        row.rel_type,
        row.label,
        row.target_id,
        row.strength,
        row.confidence,
        row.properties,
        row.t_valid,
        row.t_invalid,
        row.extracted_by,
        row.created_at,
        row.updated_at,
    )

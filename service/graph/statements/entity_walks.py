"""Walks along the relations between entities: neighbourhoods, and shortest paths between two entities.

A walk reads the FAN_OUT strongest edges of each node in either direction, from indexes in that order, so a node with
100,000 edges costs no more than one with fifty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.selectable import TextualSelect

from service.domain.entity import EntityPath, EntityRelation, Neighbourhood
from service.graph.entity_scope import EdgeFilter
from service.graph.statements.entity_relations import BOTH_WAYS, COLUMNS, VALID, relation_of, statement
from service.postgres.engine import Session

FAN_OUT = 50
"""Edges of a node that a walk follows, the strongest."""

# One step of a walk. Of each node FAN_OUT edges are followed and one more is read, which shows that there are more. It
# returns each new node once, by its strongest edge, and whether any node had too many. With types, each type is read by
# its own index (…_type) and the strongest of all are kept.
STEP = """
    WITH stepped AS MATERIALIZED (
        SELECT edges.id, edges.strength, edges.far, edges.place
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
        SELECT DISTINCT ON (far) id, strength, far FROM stepped
        WHERE place <= :fan_out AND NOT far = ANY (CAST(:seen AS uuid[])) ORDER BY far, strength DESC, id
    ), kept AS (
        SELECT * FROM fresh ORDER BY strength DESC, far LIMIT :room
    )
    SELECT (SELECT coalesce(max(place), 0) FROM stepped) > :fan_out AS truncated, kept.far, {columns}
    FROM (SELECT true) always LEFT JOIN kept ON true
    LEFT JOIN entity_edge e ON e.workspace_id = :workspace AND e.id = kept.id
    ORDER BY kept.strength DESC, kept.far
"""


def _step(*, of_types: bool) -> TextualSelect:
    each_type = "unnest(CAST(:types AS text[])) AS wanted (type) CROSS JOIN LATERAL" if of_types else ""
    own_type = "AND e.rel_type = wanted.type" if of_types else ""
    valid, columns = VALID.format(a="e"), COLUMNS.format(a="e")
    filled = STEP.format(each_type=each_type, own_type=own_type, both_ways=BOTH_WAYS, valid=valid, columns=columns)
    return statement(filled).columns(properties=JSONB())


STEP_ANY, STEP_OF_TYPES = _step(of_types=False), _step(of_types=True)

# The edges between the nodes of a neighbourhood: for each node its strongest ones that end inside.
INSIDE = statement(f"""
    SELECT {COLUMNS.format(a="e")} FROM unnest(CAST(:ids AS uuid[])) AS node (id) CROSS JOIN LATERAL (
        SELECT o.* FROM entity_edge o
        WHERE o.workspace_id = :workspace AND o.source_id = node.id AND {VALID.format(a="o")}
          AND (CAST(:types AS text[]) IS NULL OR o.rel_type = ANY (CAST(:types AS text[])))
        ORDER BY o.strength DESC, o.target_id LIMIT :fan_out
    ) e
    WHERE e.target_id = ANY (CAST(:ids AS uuid[]))
    ORDER BY e.strength DESC, e.id LIMIT :limit
""").columns(properties=JSONB())  # noqa: S608 - our own parts


async def neighbourhood(
    session: Session, starts: Sequence[UUID], edges: EdgeFilter, *, depth: int, limit: int
) -> Neighbourhood:
    """The entities up to `depth` (1..3) edges away from the starts: at most `limit`, nearest first, then by the
    strength of the edge that leads to them; each once."""
    depths, ways, truncated = dict.fromkeys(starts, 0), list[EntityRelation](), False
    frontier = list(depths)
    for hop in range(1, depth + 1):
        room = limit - len(depths)
        fresh, cut = await _advance(session, frontier, list(depths), edges, room=room + 1)
        truncated |= cut or len(fresh) > room
        frontier = [far for far, _ in fresh[:room]]
        depths |= dict.fromkeys(frontier, hop)
        ways += [edge for _, edge in fresh[:room]]
        if not frontier:
            break
    values = {**edges.values, "ids": list(depths), "fan_out": FAN_OUT, "limit": limit * 4}
    inside = [*map(relation_of, await session.execute(INSIDE, values)), *ways]
    return Neighbourhood(depths, tuple({edge.id: edge for edge in inside}.values()), truncated)


async def _advance(
    session: Session, ids: Sequence[UUID], seen: Sequence[UUID], edges: EdgeFilter, *, room: int
) -> tuple[list[tuple[UUID, EntityRelation]], bool]:
    """The unseen nodes one edge further, with that edge, and whether a node had more than FAN_OUT."""
    values = {**edges.values, "ids": list(ids), "fan_out": FAN_OUT, "room": room}
    values["seen"] = list(seen)
    if not edges.types:
        del values["types"]
    step = STEP_OF_TYPES if edges.types else STEP_ANY
    rows = (await session.execute(step, values)).all()
    return [(row.far, relation_of(row)) for row in rows if row.far is not None], bool(rows[0].truncated)


@dataclass(slots=True)
class _Search:
    """One of two breadth-first searches that meet: the edge by which each node was found, and the newest nodes."""

    found: dict[UUID, EntityRelation | None]
    frontier: list[UUID]
    depth: int = 0

    @classmethod
    def begin(cls, start: UUID) -> _Search:
        return cls({start: None}, [start])

    def path_to_start(self, node: UUID) -> list[tuple[UUID, EntityRelation]]:
        """The path from `node` to the start of this search: each step's next node and edge."""
        steps = []
        while (by := self.found[node]) is not None:
            node = by.other_end(node)
            steps.append((node, by))
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
        side.found |= dict(fresh)
        side.frontier = [far for far, _ in fresh]
        side.depth += 1
        meetings = [far for far in side.frontier if far in other.found]
        if meetings:  # one of them may be less deep in the other search, by an edge that its hub did not follow
            meeting = min(meetings, key=lambda far: len(other.path_to_start(far)))
            back, on = from_start.path_to_start(meeting), from_goal.path_to_start(meeting)
            nodes = [*(node for node, _ in reversed(back)), meeting, *(node for node, _ in on)]
            ways = [*(edge for _, edge in reversed(back)), *(edge for _, edge in on)]
            return EntityPath(tuple(nodes), tuple(ways), truncated)
    return EntityPath((), (), truncated=truncated)

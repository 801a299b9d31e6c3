"""What leads from a memory to others?

Whoever adds or removes an edge first locks both memories, in the order of their ids: so a snapshot of a memory that is
locked for a change holds exactly the edges it has (B7), and two writers never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, or_, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from service.db.engine import Session
from service.db.tables import MemoryEdge as Table
from service.domain.relation import Relation, RelationType, Step, Walk
from service.domain.scope import Scope

LOCK_ENDS = text("""
    SELECT id, user_id, agent_id, run_id, channel FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) AND (expires_at IS NULL OR expires_at > :now)
    ORDER BY id FOR KEY SHARE
""")

# Both directions of each node, each by its own index (pk_memory_edge, ix_memory_edge_target), the strongest first. A
# node whose edges are cut off says so by one edge too many.
HOP = text("""
    SELECT here.id AS near, e.far, e.source_id, e.rel_type, e.target_id, e.strength, e.properties, e.t_valid,
           e.t_invalid, e.created_at
    FROM unnest(CAST(:ids AS uuid[])) AS here (id) CROSS JOIN LATERAL (
        SELECT both_ways.* FROM (
            SELECT o.*, o.target_id AS far FROM memory_edge o
            WHERE o.workspace_id = :workspace AND o.source_id = here.id
            UNION ALL
            SELECT i.*, i.source_id AS far FROM memory_edge i
            WHERE i.workspace_id = :workspace AND i.target_id = here.id
        ) both_ways
        JOIN memory m ON m.workspace_id = :workspace AND m.id = both_ways.far
        WHERE (CAST(:types AS text[]) IS NULL OR both_ways.rel_type = ANY (CAST(:types AS text[])))
          AND (both_ways.t_valid IS NULL OR both_ways.t_valid <= :now)
          AND (both_ways.t_invalid IS NULL OR both_ways.t_invalid > :now)
          AND (m.expires_at IS NULL OR m.expires_at > :now) AND (:include_archived OR NOT m.archived)
        ORDER BY both_ways.strength DESC, both_ways.far, both_ways.rel_type
        LIMIT :fan_out
    ) e
    ORDER BY e.strength DESC, e.far, e.rel_type
""").columns(properties=JSONB())


@dataclass(frozen=True, slots=True)
class Way:
    """How to walk: at most `depth` edges far (1..3), over `fan_out` edges per node, to `limit` memories."""

    depth: int
    limit: int
    fan_out: int = 50
    types: tuple[RelationType, ...] = ()
    include_archived: bool = False


async def lock_ends(session: Session, workspace_id: UUID, ids: Sequence[UUID], *, now: datetime) -> dict[UUID, Scope]:
    """The scopes of the memories among `ids` that there are; they cannot go before the transaction ends."""
    rows = await session.execute(LOCK_ENDS, {"workspace": workspace_id, "ids": list(ids), "now": now})
    return {row.id: Scope(workspace_id, row.user_id, row.agent_id, row.run_id, row.channel) for row in rows}


async def put(session: Session, workspace_id: UUID, relation: Relation) -> tuple[Relation, bool]:
    """The edge as stored, and whether it is new: the same triple again takes the new strength, properties and times."""
    values = {
        "strength": relation.strength,
        "properties": dict(relation.properties),
        "t_valid": relation.t_valid,
        "t_invalid": relation.t_invalid,
    }
    key = {
        "workspace_id": workspace_id,
        "source_id": relation.source_id,
        "rel_type": str(relation.type),
        "target_id": relation.target_id,
    }
    made = upsert(Table).values(**key, **values)
    made = made.on_conflict_do_update(constraint="pk_memory_edge", set_=values)
    row = (await session.execute(made.returning(*COLUMNS, text("xmax = 0 AS is_new")))).one()
    return _relation(row), bool(row.is_new)


async def remove(
    session: Session, workspace_id: UUID, source_id: UUID, target_id: UUID, kind: RelationType | None
) -> int:
    """How many edges from source to target went; all types when `kind` is None."""
    here = delete(Table).where(
        Table.workspace_id == workspace_id, Table.source_id == source_id, Table.target_id == target_id
    )
    if kind is not None:
        here = here.where(Table.rel_type == str(kind))
    return (await session.execute(here)).rowcount


async def of_memory(session: Session, workspace_id: UUID, memory_id: UUID, *, limit: int) -> list[Relation]:
    """The edges from and to a memory, the strongest first."""
    rows = await session.execute(
        select(*COLUMNS)
        .where(Table.workspace_id == workspace_id, or_(Table.source_id == memory_id, Table.target_id == memory_id))
        .order_by(Table.strength.desc(), Table.source_id, Table.rel_type, Table.target_id)
        .limit(limit)
    )
    return [_relation(row) for row in rows]


async def sources_of(session: Session, workspace_id: UUID, kind: RelationType, *, target_id: UUID) -> list[UUID]:
    """The memories that have an edge of this kind to `target_id`. Uses ix_memory_edge_target."""
    found = await session.scalars(
        select(Table.source_id)
        .where(Table.workspace_id == workspace_id, Table.target_id == target_id, Table.rel_type == str(kind))
        .order_by(Table.source_id)
    )
    return list(found)


async def walk(session: Session, workspace_id: UUID, start: UUID, way: Way, *, now: datetime) -> Walk:
    """Memories around `start`, the near ones first, then by strength; each once, by its strongest edge."""
    seen = {start}
    frontier = [start]
    steps: list[Step] = []
    truncated = False
    for depth in range(1, way.depth + 1):
        rows = await _hop(session, workspace_id, frontier, way, now)
        truncated |= any(len(of_node) > way.fan_out for of_node in _by_node(rows).values())
        fresh: dict[UUID, Step] = {}
        for row in (row for of_node in _by_node(rows).values() for row in of_node[: way.fan_out]):
            if row.far not in seen:
                known = fresh.get(row.far)
                if known is None or row.strength > known.by.strength:
                    fresh[row.far] = Step(row.far, depth, _relation(row))
        steps.extend(sorted(fresh.values(), key=lambda step: (-step.by.strength, str(step.memory_id))))
        seen |= fresh.keys()
        frontier = list(fresh)
        if not frontier or len(steps) > way.limit:
            break
    return Walk(tuple(steps[: way.limit]), truncated or len(steps) > way.limit)


async def around(
    session: Session, workspace_id: UUID, ids: Sequence[UUID], *, each: int, now: datetime
) -> Mapping[UUID, list[Step]]:
    """For each memory its `each` strongest neighbours."""
    if not ids:
        return {}
    rows = await _hop(session, workspace_id, ids, Way(1, each, each), now)
    return {
        near: [Step(row.far, 1, _relation(row)) for row in of_node[:each]] for near, of_node in _by_node(rows).items()
    }


async def _hop(session: Session, workspace_id: UUID, ids: Sequence[UUID], way: Way, now: datetime) -> Sequence[Any]:
    values = {
        "workspace": workspace_id,
        "ids": list(ids),
        "types": [str(each) for each in way.types] or None,
        "now": now,
        "include_archived": way.include_archived,
        "fan_out": way.fan_out + 1,
    }
    return (await session.execute(HOP, values)).all()


def _by_node(rows: Sequence[Any]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for row in rows:
        found.setdefault(row.near, []).append(row)
    return found


COLUMNS = (
    Table.source_id,
    Table.rel_type,
    Table.target_id,
    Table.strength,
    Table.properties,
    Table.t_valid,
    Table.t_invalid,
    Table.created_at,
)


def _relation(row: Any) -> Relation:
    return Relation(
        row.source_id,
        RelationType(row.rel_type),
        row.target_id,
        row.strength,
        row.properties,
        row.t_valid,
        row.t_invalid,
        row.created_at,
    )

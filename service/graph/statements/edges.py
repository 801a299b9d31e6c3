"""Relations between memories, and walks along them.

Lock order: adding or removing an edge locks both memories first, by ascending id. So a snapshot of a memory that is
locked for a change has exactly its edges, and two writers never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import delete, or_, select, text
from sqlalchemy.dialects import postgresql

from service.domain.entity import RULES
from service.domain.relation import Relation, RelationType, Walk, WalkOptions, WalkStep
from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition, is_valid
from service.postgres.tables import MEMORY_EDGE
from service.postgres.template import Template, typed_text

LOCK_ENDS = text("""
    SELECT workspace_id, id, user_id, agent_id, run_id, channel FROM memory
    WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) AND (expires_at IS NULL OR expires_at > :now)
      AND review_status IS NULL
    ORDER BY id FOR KEY SHARE
""")

DRAWN = """
    unnest(CAST(:sources AS uuid[]), CAST(:types AS text[]), CAST(:targets AS uuid[]), CAST(:strengths AS float8[]))
        AS d (source_id, rel_type, target_id, strength)
"""
DRAW = text(f"""
    WITH undrawn AS (
        DELETE FROM memory_edge e WHERE e.workspace_id = :workspace AND e.source_id = ANY (CAST(:memory_ids AS uuid[]))
          AND e.rel_type = 'SIMILAR_TO' AND e.properties ->> 'extracted_by' = :extracted_by
          AND NOT EXISTS (SELECT FROM {DRAWN} WHERE d.source_id = e.source_id AND d.rel_type = e.rel_type
                          AND d.target_id = e.target_id)
    ), added AS (
        INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id, strength, properties)
        SELECT m.workspace_id, d.source_id, d.rel_type, d.target_id, d.strength,
               jsonb_build_object('extracted_by', CAST(:extracted_by AS text))
        FROM {DRAWN} JOIN memory m ON m.workspace_id = :workspace AND m.id = d.source_id
        ON CONFLICT DO NOTHING
    )
    SELECT
""")  # noqa: S608 - no user input

# The strongest edges of each node in both directions, merged from two indexes in the order of strength
# (ix_memory_edge_source_strength, ix_memory_edge_target_strength). `fan_out`: one more than is followed, which shows
# that there are more.
STRONGEST = f"""
    unnest(CAST(:ids AS uuid[])) AS node (id) CROSS JOIN LATERAL (
        SELECT both_directions.*, row_number() OVER (ORDER BY strength DESC, far, rel_type) AS place
        FROM (
            SELECT source_id AS near, target_id AS far, memory_edge.* FROM memory_edge
            UNION ALL SELECT target_id, source_id, memory_edge.* FROM memory_edge
        ) both_directions JOIN memory m ON m.workspace_id = both_directions.workspace_id AND m.id = far
        WHERE both_directions.workspace_id = :workspace AND near = node.id
          AND (CAST(:types AS text[]) IS NULL OR rel_type = ANY (CAST(:types AS text[])))
          AND {is_valid("both_directions")}
          AND (m.expires_at IS NULL OR m.expires_at > :now) AND (:include_archived OR NOT m.archived)
        ORDER BY strength DESC, far, rel_type LIMIT :fan_out
    ) e
"""  # noqa: S608 - no user input
EDGE = "e.source_id, e.rel_type, e.target_id, e.strength, e.properties, e.t_valid, e.t_invalid, e.created_at"

NEIGHBOURS = typed_text(f"""
    SELECT node.id AS near, e.far, {EDGE}
    FROM {STRONGEST}
    ORDER BY e.strength DESC, e.far, e.rel_type
    """)  # noqa: S608 - no user input

# One step of a walk: each new memory once, by its strongest edge, and whether a node had more edges than are followed.
STEP = typed_text(f"""
    WITH stepped AS MATERIALIZED (
        SELECT e.place, e.far, {EDGE}
        FROM {STRONGEST}
    ), fresh AS (
        SELECT DISTINCT ON (far) * FROM stepped
        WHERE place < :fan_out AND NOT far = ANY (CAST(:seen AS uuid[])) ORDER BY far, strength DESC, rel_type
    ), kept AS (
        SELECT * FROM fresh ORDER BY strength DESC, far LIMIT :room
    )
    SELECT (SELECT coalesce(max(place), 0) FROM stepped) >= :fan_out AS truncated, kept.*
    FROM (SELECT true) always LEFT JOIN kept ON true ORDER BY kept.strength DESC, kept.far
    """)  # noqa: S608 - no user input

# A bulk delete, which takes no scope lock, may be erasing the older memories.
MARK_MAY_OUTDATE = text("""
    INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id)
    SELECT m.workspace_id, pair.newer, 'MAY_OUTDATE', m.id
    FROM unnest(CAST(:newer AS uuid[]), CAST(:older AS uuid[])) AS pair (newer, older)
    JOIN memory m ON m.workspace_id = :workspace AND m.id = pair.older
    WHERE m.id <> pair.newer
    ORDER BY m.id FOR KEY SHARE OF m
    ON CONFLICT DO NOTHING
""")

COPIED = "copied"
"""Property of a PROMOTED_FROM edge: the source was made as a copy of the target, and is deleted with it."""

SPARE = 4
"""Factor by which more edges are read if some may lead to memories that must not be shown."""


async def lock_ends(session: Session, ids: Sequence[UUID], *, now: datetime) -> dict[UUID, Scope]:
    """Locks the visible memories among `ids` against deletion until the transaction ends; returns their scopes."""
    rows = await session.execute(LOCK_ENDS, {"ids": list(ids), "now": now})
    return {row.id: scopes.of_row(row) for row in rows}


async def put(session: Session, relation: Relation, *, kept: Collection[str] = ()) -> tuple[Relation, bool]:
    """Stores an edge; returns it, and whether it is new. An existing triple gets the new values but for `kept`."""
    values = {name: getattr(relation, name) for name in ("strength", "properties", "t_valid", "t_invalid")}
    key = {
        "workspace_id": session.workspace_id,
        "source_id": relation.source_id,
        "rel_type": str(relation.type),
        "target_id": relation.target_id,
    }
    made = postgresql.insert(MEMORY_EDGE).values(**key, **values)
    changed = {name: value for name, value in values.items() if name not in kept}
    made = made.on_conflict_do_update(constraint="pk_memory_edge", set_=changed)
    row = (await session.execute(made.returning(*COLUMNS, text("xmax = 0 AS is_new")))).one()
    return _relation(row), bool(row.is_new)


async def draw(session: Session, memory_ids: Sequence[UUID], relations: Sequence[Relation]) -> None:
    """Replaces the edges that the rules drew at these memories; those of callers stay. The caller has locked the
    ends."""
    drawn = sorted(relations, key=lambda each: (str(each.source_id), str(each.type), str(each.target_id)))
    values = {
        "memory_ids": list(memory_ids),
        "extracted_by": RULES,
        "sources": [relation.source_id for relation in drawn],
        "types": [str(relation.type) for relation in drawn],
        "targets": [relation.target_id for relation in drawn],
        "strengths": [relation.strength for relation in drawn],
    }
    await direct.fetch(session, DRAW, values)


async def mark_may_outdate(session: Session, pairs: Sequence[tuple[UUID, UUID]]) -> None:
    """Draws MAY_OUTDATE from the newer memory of each pair to the older one, if that still exists."""
    newer, older = map(list, zip(*pairs, strict=True))
    await direct.fetch(session, MARK_MAY_OUTDATE, {"newer": newer, "older": older})


async def remove(session: Session, source_id: UUID, target_id: UUID, relation_type: RelationType | None) -> int:
    """Removes edges from source to target, of all types if `relation_type` is None; returns how many."""
    statement = delete(MEMORY_EDGE).where(
        MEMORY_EDGE.c.workspace_id == session.workspace_id,
        MEMORY_EDGE.c.source_id == source_id,
        MEMORY_EDGE.c.target_id == target_id,
    )
    if relation_type is not None:
        statement = statement.where(MEMORY_EDGE.c.rel_type == str(relation_type))
    return (await session.execute(statement)).rowcount


async def of_memory(session: Session, memory_id: UUID, *, skip: int = 0, limit: int) -> list[Relation]:
    """The edges from and to a memory after the first `skip`, strongest first."""
    columns = MEMORY_EDGE.c
    conditions = (
        columns.workspace_id == session.workspace_id,
        or_(columns.source_id == memory_id, columns.target_id == memory_id),
    )
    order = columns.strength.desc(), columns.source_id, columns.rel_type, columns.target_id
    query = select(*COLUMNS).where(*conditions).order_by(*order).offset(skip).limit(limit)
    return await direct.page(session, query, None, _relation)


async def copies_of(session: Session, memory_id: UUID) -> list[UUID]:
    """The memories promoted from this one. Uses ix_memory_edge_target."""
    columns = MEMORY_EDGE.c
    of_memory = columns.workspace_id == session.workspace_id, columns.target_id == memory_id
    promoted = columns.rel_type == str(RelationType.PROMOTED_FROM)
    query = select(columns.source_id).where(*of_memory, promoted).order_by(columns.source_id)
    return list(await session.scalars(query))


async def walk(session: Session, start: UUID, options: WalkOptions, *, now: datetime) -> Walk:
    """The memories near `start` by edges: the nearest first, then by strength; each once, by its strongest edge."""
    frontier, steps, truncated = [start], list[WalkStep](), False
    for depth in range(1, options.depth + 1):
        room = options.limit - len(steps)
        values = {
            **_values(session.workspace_id, frontier, options, now),
            "seen": [start, *(step.memory_id for step in steps)],
            "room": room + 1,
        }
        rows = (await session.execute(STEP, values)).all()
        reached = [WalkStep(row.far, depth, _relation(row)) for row in rows if row.far is not None]
        truncated |= bool(rows[0].truncated) or len(reached) > room
        steps += reached[:room]
        frontier = [step.memory_id for step in reached[:room]]
        if not frontier or (len(steps) >= options.limit and truncated):
            break
    return Walk(tuple(steps), truncated)


AMONG = Template("SELECT m.id FROM memory m WHERE {rows} AND m.id = ANY (CAST(:ends AS uuid[]))")


async def read_connected(
    session: Session, ids: Sequence[UUID], rows: Condition, *, each: int, now: datetime
) -> Mapping[UUID, list[WalkStep]]:
    """For every memory the `each` most strongly connected ones, without repetition, that meet `rows`, a condition on
    `memory m`. Reads SPARE times as many edges."""
    if not each or not ids:
        return {}
    options = WalkOptions(1, each * SPARE, each * SPARE - 1)
    strongest = (await session.execute(NEIGHBOURS, _values(session.workspace_id, ids, options, now))).all()
    ends = list({row.far for row in strongest})
    seen = set(await session.scalars(AMONG.fill(rows=rows.sql), {**rows.values, "ends": ends})) if ends else set()
    kept: dict[UUID, dict[UUID, WalkStep]] = {}
    for row in strongest:
        if row.far in seen:
            kept.setdefault(row.near, {}).setdefault(row.far, WalkStep(row.far, 1, _relation(row)))
    return {near: list(once.values())[:each] for near, once in kept.items()}


def _values(workspace_id: UUID, ids: Sequence[UUID], options: WalkOptions, now: datetime) -> dict[str, Any]:
    return {
        "workspace": workspace_id,
        "ids": list(ids),
        "types": [str(relation_type) for relation_type in options.types] or None,
        "now": now,
        "include_archived": options.include_archived,
        "fan_out": options.fan_out + 1,
    }


COLUMNS = [MEMORY_EDGE.c["rel_type" if field.name == "type" else field.name] for field in fields(Relation)]

_relation = direct.reader(Relation, type=lambda row: RelationType(row.rel_type))

"""Statements on goals, the edges between them, and the memories tied to them.

Edges change under one advisory lock per workspace, taken alone and before any row lock: two writers that each see no
cycle could otherwise close one together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import TableClause, delete, func, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert

from service.cognition.values import Goal, GoalDetails, GoalStatus
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import GOAL, GOAL_EDGE, GOAL_MEMORY, GOAL_VECTOR, MEMORY
from service.providers.protocols import Vector
from service.runtime.statements.deferred_vectors import DeferredVectors

SUBGOAL_OF, BLOCKED_BY = "SUBGOAL_OF", "BLOCKED_BY"
LINKS: Mapping[str, tuple[TableClause, str, str, Mapping[str, str]]] = {
    "parent_id": (GOAL_EDGE, "source_id", "target_id", {"rel_type": SUBGOAL_OF}),
    "blocked_by": (GOAL_EDGE, "source_id", "target_id", {"rel_type": BLOCKED_BY}),
    "memory_ids": (GOAL_MEMORY, "goal_id", "memory_id", {}),
}
"""The table of each field that links a goal to others, its columns for the goal and the other end, and the type."""

MAX_SHOWN = 100
"""The most subgoals that are shown with a goal."""

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('goals:' || CAST(:workspace AS text), 0))")

# From the targets along edges of one kind, by pk_goal_edge. UNION drops goals that were seen, so the walk ends.
REACHES_SOURCE = text("""
    WITH RECURSIVE reached AS (
        SELECT id FROM unnest(CAST(:targets AS uuid[])) AS first (id)
        UNION
        SELECT e.target_id FROM reached r
        JOIN goal_edge e ON e.workspace_id = :workspace AND e.source_id = r.id AND e.rel_type = :rel_type
    )
    SELECT EXISTS (SELECT FROM reached WHERE id = :source)
""")


_goal = direct.reader(
    Goal,
    scope=scopes.of_row,
    blocked_by=lambda row: tuple(row.blocked_by),
    memory_ids=lambda row: tuple(row.memory_ids),
)


# pk_goal_edge, pk_goal_memory
TARGETS = """SELECT e.target_id FROM goal_edge e
    WHERE e.workspace_id = goal.workspace_id AND e.source_id = goal.id AND e.rel_type = '{}'"""
MEMORIES = "SELECT m.memory_id FROM goal_memory m WHERE m.workspace_id = goal.workspace_id AND m.goal_id = goal.id"

GOALS = select(
    *GOAL.c,
    literal_column(f"({TARGETS.format(SUBGOAL_OF)})").label("parent_id"),
    literal_column(f"ARRAY({TARGETS.format(BLOCKED_BY)} ORDER BY 1)").label("blocked_by"),
    literal_column(f"ARRAY({MEMORIES} ORDER BY 1)").label("memory_ids"),
)


async def lock_edges(session: Session) -> None:
    """Makes this transaction the only one that changes edges in the workspace. Alone in its statement."""
    await session.execute(LOCK, {"workspace": str(session.workspace_id)})


async def get(session: Session, goal_id: UUID) -> Goal | None:
    return (await get_many(session, [goal_id])).get(goal_id)


async def get_many(session: Session, ids: Collection[UUID]) -> dict[UUID, Goal]:
    """The goals that exist among the ids."""
    if not ids:
        return {}
    conditions = GOAL.c.workspace_id == session.workspace_id, GOAL.c.id.in_(ids)
    return {row.id: _goal(row) for row in await session.execute(GOALS.where(*conditions))}


async def lock(session: Session, goal_id: UUID) -> Goal | None:
    """The goal, locked against changes until the transaction ends."""
    conditions = GOAL.c.workspace_id == session.workspace_id, GOAL.c.id == goal_id
    if (await session.scalar(select(GOAL.c.id).where(*conditions).with_for_update())) is None:
        return None
    return await get(session, goal_id)


async def details(session: Session, goal: Goal, now: datetime) -> GoalDetails:
    """The goal with its parent and at most MAX_SHOWN subgoals."""
    ends_here = GOAL_EDGE.c.workspace_id == session.workspace_id, GOAL_EDGE.c.target_id == goal.id
    subgoals = select(GOAL_EDGE.c.source_id).where(*ends_here, GOAL_EDGE.c.rel_type == SUBGOAL_OF)
    ids = list(await session.scalars(subgoals.order_by(GOAL_EDGE.c.source_id).limit(MAX_SHOWN)))
    known = await get_many(session, [*ids, *([goal.parent_id] if goal.parent_id else [])])
    parent = known.get(goal.parent_id) if goal.parent_id else None
    return GoalDetails(goal, parent, tuple(known[key] for key in ids if key in known), now)


async def page(
    session: Session, scope: Scope, status: GoalStatus | None, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[Goal]:
    """Goals of the scope with this status (None: any), newest first. Uses ix_goal_user, _agent or _run."""
    query = GOALS.where(scopes.readable("goal", scope.private).clause)
    if status is not None:
        query = query.where(GOAL.c.status == status)
    key = GOAL.c.created_at, GOAL.c.id
    return await direct.newest(session, query, key, _goal, after=after, limit=limit)


async def active(session: Session, scope: Scope, *, limit: int) -> list[Goal]:
    """The active goals of a scope: by priority, then by deadline, then the newest."""
    conditions = scopes.readable("goal", scope.private).clause, GOAL.c.status == "active"
    order = GOAL.c.priority.desc(), GOAL.c.deadline.asc().nulls_last(), GOAL.c.created_at.desc(), GOAL.c.id
    return [_goal(row) for row in await session.execute(GOALS.where(*conditions).order_by(*order).limit(limit))]


async def add(
    session: Session, scope: Scope, goal_id: UUID, columns: Mapping[str, Any], vector: Vector | None, *, generation: int
) -> None:
    """Inserts an active goal and its vector, without edges and memories."""
    values = {**scope.columns, **columns, "id": goal_id, "status": "active"}
    await session.execute(insert(GOAL).values(**values, updated_at=func.now()))  # equals created_at
    await LATE_VECTORS.put(session, goal_id, vector, generation=generation)


async def change(session: Session, goal: Goal, values: Mapping[str, Any], *, now: datetime) -> None:
    """Sets those of the values that are columns, and increments the version."""
    conditions = GOAL.c.workspace_id == goal.scope.workspace_id, GOAL.c.id == goal.id
    columns = {name: value for name, value in values.items() if name in GOAL.c}
    counted = {"version": GOAL.c.version + 1, "updated_at": now}
    await session.execute(update(GOAL).where(*conditions).values(**columns, **counted))


async def lock_scopes(
    session: Session, table: TableClause, ids: Collection[UUID], *, now: datetime
) -> dict[UUID, Scope]:
    """The scopes of the existing, unexpired rows of GOAL or MEMORY among the ids, locked against deletion until the
    transaction ends; in ascending order, so that two transactions cannot deadlock."""
    if not ids:
        return {}
    c = table.c
    columns = c.id, c.workspace_id, c.user_id, c.agent_id, c.run_id, c.channel
    query = select(*columns).where(c.workspace_id == session.workspace_id, c.id.in_(ids)).order_by(c.id)
    if table is MEMORY:
        query = query.where(c.expires_at.is_(None) | (c.expires_at > now))
    rows = await session.execute(query.with_for_update(key_share=True, read=True))
    return {row.id: scopes.of_row(row) for row in rows}


async def would_close_cycle(session: Session, goal_id: UUID, field: str, targets: Collection[UUID]) -> bool:
    """Whether edges of this field from the goal to the targets would close a cycle. The caller holds `lock_edges`."""
    values = {"source": goal_id, "targets": list(targets), **LINKS[field][3]}
    return bool(await session.scalar(REACHES_SOURCE, values))


async def set_links(session: Session, goal_id: UUID, field: str, ids: Collection[UUID]) -> None:
    """Replaces the goal's links of this field by those to the ids."""
    table, start, end, kind = LINKS[field]
    key = {"workspace_id": session.workspace_id, start: goal_id, **kind}
    conditions = [table.c[name] == value for name, value in key.items()]
    await session.execute(delete(table).where(*conditions, table.c[end].not_in(ids)))
    if ids:
        fresh = insert(table).on_conflict_do_nothing(index_elements=[*key, end])  # a hidden parent stays a conflict
        await session.execute(fresh, [{**key, end: row_id} for row_id in sorted(ids)])


LATE_VECTORS = DeferredVectors("goals", GOAL, GOAL_VECTOR, "goal_id", lambda row: CleanText(row.description))

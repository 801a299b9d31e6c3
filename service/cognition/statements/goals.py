"""Statements on goals, the edges between them, the memories tied to them, and their history.

Edges change under one advisory lock per workspace, taken alone and before any row lock: two writers that each see no
cycle could otherwise close one together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import TableClause, and_, cast, delete, func, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by, insert

from service.cognition.statements import records
from service.cognition.values import Goal, GoalChange, GoalDetails, GoalEvent, GoalFilter, GoalStatus
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import GOAL, GOAL_EDGE, GOAL_HISTORY, GOAL_MEMORY, GOAL_VECTOR, MEMORY
from service.providers.protocols import Vector
from service.runtime.statements.deferred_vectors import DeferredVectors

SUBGOAL_OF, BLOCKED_BY = "SUBGOAL_OF", "BLOCKED_BY"
MAX_SHOWN = 100
"""The most subgoals, blockers and memories that are shown with a goal."""

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
    scope=records.scope_of,
    status=lambda row: GoalStatus(row.status),
    blocked_by=lambda row: tuple(row.blocked_by),
)


def _targets(column: Any, rel_type: str) -> Any:
    """A subquery over the edges of one kind that start at the goal of the outer query."""
    starts_here = GOAL_EDGE.c.workspace_id == GOAL.c.workspace_id, GOAL_EDGE.c.source_id == GOAL.c.id
    return select(column).where(*starts_here, GOAL_EDGE.c.rel_type == rel_type).correlate(GOAL).scalar_subquery()


GOALS = select(
    *GOAL.c,
    _targets(GOAL_EDGE.c.target_id, SUBGOAL_OF).label("parent_id"),
    _targets(
        func.coalesce(
            func.array_agg(aggregate_order_by(GOAL_EDGE.c.target_id, GOAL_EDGE.c.target_id)),
            cast([], ARRAY(GOAL_EDGE.c.target_id.type)),
        ),
        BLOCKED_BY,
    ).label("blocked_by"),
)


async def lock_edges(session: Session, workspace_id: UUID) -> None:
    """Makes this transaction the only one that changes edges in the workspace. Alone in its statement."""
    await session.execute(LOCK, {"workspace": str(workspace_id)})


async def get(session: Session, workspace_id: UUID, goal_id: UUID) -> Goal | None:
    return (await get_many(session, workspace_id, [goal_id])).get(goal_id)


async def get_many(session: Session, workspace_id: UUID, ids: Collection[UUID]) -> dict[UUID, Goal]:
    """The goals that exist among the ids."""
    if not ids:
        return {}
    conditions = GOAL.c.workspace_id == workspace_id, GOAL.c.id.in_(ids)
    return {row.id: _goal(row) for row in await session.execute(GOALS.where(*conditions))}


async def lock(session: Session, workspace_id: UUID, goal_id: UUID) -> Goal | None:
    """The goal, locked against changes until the transaction ends."""
    conditions = GOAL.c.workspace_id == workspace_id, GOAL.c.id == goal_id
    if (await session.scalar(select(GOAL.c.id).where(*conditions).with_for_update())) is None:
        return None
    return await get(session, workspace_id, goal_id)


async def details(session: Session, workspace_id: UUID, goal: Goal) -> GoalDetails:
    """The goal with its parent, blockers, subgoals and memories; at most MAX_SHOWN of each."""
    subgoals = _subgoal_ids(workspace_id, goal.id).order_by(GOAL_EDGE.c.source_id)
    subgoal_ids = list(await session.scalars(subgoals.limit(MAX_SHOWN)))
    related = {*subgoal_ids, *goal.blocked_by, *([goal.parent_id] if goal.parent_id else [])}
    known = await get_many(session, workspace_id, related)
    tied = select(GOAL_MEMORY.c.memory_id).where(
        GOAL_MEMORY.c.workspace_id == workspace_id, GOAL_MEMORY.c.goal_id == goal.id
    )
    memory_ids = await session.scalars(tied.order_by(GOAL_MEMORY.c.memory_id).limit(MAX_SHOWN))
    return GoalDetails(
        goal,
        known.get(goal.parent_id) if goal.parent_id else None,
        tuple(known[each] for each in goal.blocked_by[:MAX_SHOWN] if each in known),
        tuple(known[subgoal_id] for subgoal_id in subgoal_ids if subgoal_id in known),
        tuple(memory_ids),
    )


async def page(
    session: Session, scope: Scope, wanted: GoalFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[Goal]:
    """Goals of the scope, newest first. Uses ix_goal_user, _agent or _run."""
    conditions: list[Any] = [scopes.matching("goal", scope.private).clause]
    if wanted.status is not None:
        conditions.append(GOAL.c.status == str(wanted.status))
    if wanted.due_before is not None:
        conditions.append(and_(GOAL.c.deadline.is_not(None), GOAL.c.deadline < wanted.due_before))
    if wanted.parent_id is not None:
        conditions.append(GOAL.c.id.in_(_subgoal_ids(scope.workspace_id, wanted.parent_id)))
    return await records.newest(session, GOALS.where(*conditions), GOAL, _goal, after=after, limit=limit)


async def active(session: Session, scope: Scope, *, limit: int) -> list[Goal]:
    """The active goals of a scope: by priority, then by deadline, then the newest."""
    conditions = scopes.matching("goal", scope.private).clause, GOAL.c.status == str(GoalStatus.ACTIVE)
    order = GOAL.c.priority.desc(), GOAL.c.deadline.asc().nulls_last(), GOAL.c.created_at.desc(), GOAL.c.id
    return [_goal(row) for row in await session.execute(GOALS.where(*conditions).order_by(*order).limit(limit))]


async def add(session: Session, goal: Goal, vector: Vector | None, *, generation: int) -> None:
    """Inserts a goal and its vector, without edges, memories or history."""
    await session.execute(
        insert(GOAL).values(
            **records.scope_columns(goal.scope),
            id=goal.id,
            description=goal.description,
            status=str(goal.status),
            priority=goal.priority,
            deadline=goal.deadline,
            updated_at=func.now(),  # equals created_at
        )
    )
    await records.put_vector(session, LATE_VECTORS, goal.scope.workspace_id, goal.id, vector, generation=generation)


async def change(session: Session, goal: Goal, values: Mapping[str, Any], *, now: datetime) -> None:
    """Sets columns and increments the version."""
    conditions = GOAL.c.workspace_id == goal.scope.workspace_id, GOAL.c.id == goal.id
    counted = {"version": GOAL.c.version + 1, "updated_at": now}
    await session.execute(update(GOAL).where(*conditions).values(**values, **counted))


async def replace_vector(session: Session, goal: Goal, vector: Vector | None, *, generation: int) -> None:
    """Replaces the vector after a new description; None (no embedder) removes the outdated one."""
    workspace_id = goal.scope.workspace_id
    conditions = GOAL_VECTOR.c.workspace_id == workspace_id, GOAL_VECTOR.c.goal_id == goal.id
    await session.execute(delete(GOAL_VECTOR).where(*conditions))
    await records.put_vector(session, LATE_VECTORS, workspace_id, goal.id, vector, generation=generation)


async def lock_scopes(session: Session, workspace_id: UUID, ids: Collection[UUID]) -> dict[UUID, Scope]:
    """The scopes of the existing goals among the ids, locked against deletion until the transaction ends."""
    return await _lock_scopes(session, GOAL, workspace_id, ids)


async def lock_memory_scopes(
    session: Session, workspace_id: UUID, ids: Collection[UUID], *, now: datetime
) -> dict[UUID, Scope]:
    """The scopes of the existing, unexpired memories among the ids, locked like goals in `lock_scopes`."""
    expires_at = MEMORY.c.expires_at
    return await _lock_scopes(session, MEMORY, workspace_id, ids, expires_at.is_(None) | (expires_at > now))


async def _lock_scopes(
    session: Session, table: TableClause, workspace_id: UUID, ids: Collection[UUID], *conditions: Any
) -> dict[UUID, Scope]:
    """Locks rows in ascending order of their ids, so that two transactions cannot deadlock."""
    if not ids:
        return {}
    c = table.c
    columns = c.id, c.workspace_id, c.user_id, c.agent_id, c.run_id, c.channel
    query = select(*columns).where(c.workspace_id == workspace_id, c.id.in_(ids), *conditions).order_by(c.id)
    rows = await session.execute(query.with_for_update(key_share=True, read=True))
    return {row.id: records.scope_of(row) for row in rows}


async def would_close_cycle(
    session: Session, workspace_id: UUID, goal_id: UUID, rel_type: str, targets: Collection[UUID]
) -> bool:
    """Whether edges of this kind from the goal to the targets would close a cycle. The caller holds `lock_edges`."""
    values = {"workspace": workspace_id, "source": goal_id, "rel_type": rel_type, "targets": list(targets)}
    return bool(await session.scalar(REACHES_SOURCE, values))


async def set_edges(
    session: Session, workspace_id: UUID, goal_id: UUID, rel_type: str, targets: Collection[UUID]
) -> None:
    """Replaces the goal's edges of this kind by edges to the targets."""
    conditions = (
        GOAL_EDGE.c.workspace_id == workspace_id,
        GOAL_EDGE.c.source_id == goal_id,
        GOAL_EDGE.c.rel_type == rel_type,
    )
    await session.execute(delete(GOAL_EDGE).where(*conditions, GOAL_EDGE.c.target_id.not_in(targets)))
    if targets:
        start = {"workspace_id": workspace_id, "source_id": goal_id, "rel_type": rel_type}
        rows = [{**start, "target_id": target} for target in sorted(targets)]
        await session.execute(insert(GOAL_EDGE).values(rows).on_conflict_do_nothing())


async def tie_memories(session: Session, workspace_id: UUID, goal_id: UUID, ids: Collection[UUID]) -> None:
    if ids:
        rows = [{"workspace_id": workspace_id, "goal_id": goal_id, "memory_id": key} for key in sorted(ids)]
        await session.execute(insert(GOAL_MEMORY).values(rows).on_conflict_do_nothing())


async def untie_memory(session: Session, workspace_id: UUID, goal_id: UUID, memory_id: UUID) -> bool:
    """Unties a memory from a goal; False if it was not tied."""
    conditions = (
        GOAL_MEMORY.c.workspace_id == workspace_id,
        GOAL_MEMORY.c.goal_id == goal_id,
        GOAL_MEMORY.c.memory_id == memory_id,
    )
    return bool((await session.execute(delete(GOAL_MEMORY).where(*conditions))).rowcount)


async def append_history(
    session: Session, workspace_id: UUID, goal_id: UUID, version: int, event: GoalEvent, changes: Mapping[str, Any]
) -> None:
    """Records one change; `changes`: for each field [before, after], as JSON."""
    values = {"version": version, "event": str(event), "changes": dict(changes)}
    await session.execute(insert(GOAL_HISTORY).values(workspace_id=workspace_id, goal_id=goal_id, **values))


async def history(session: Session, workspace_id: UUID, goal_id: UUID, *, skip: int, limit: int) -> list[GoalChange]:
    """The changes after the first `skip`, oldest first."""
    conditions = GOAL_HISTORY.c.workspace_id == workspace_id, GOAL_HISTORY.c.goal_id == goal_id
    columns = GOAL_HISTORY.c.version, GOAL_HISTORY.c.event, GOAL_HISTORY.c.changes, GOAL_HISTORY.c.recorded_at
    query = select(*columns).where(*conditions).order_by(GOAL_HISTORY.c.version).offset(skip).limit(limit)
    change = direct.reader(GoalChange, event=lambda row: GoalEvent(row.event))
    return await direct.page(session, query, None, change)


async def remove(session: Session, workspace_id: UUID, goal_id: UUID) -> None:
    """Deletes the goal with its edges, vector and history."""
    await records.remove(session, GOAL, workspace_id, goal_id)


def _subgoal_ids(workspace_id: UUID, goal_id: UUID) -> Any:
    ends_here = GOAL_EDGE.c.workspace_id == workspace_id, GOAL_EDGE.c.target_id == goal_id
    return select(GOAL_EDGE.c.source_id).where(*ends_here, GOAL_EDGE.c.rel_type == SUBGOAL_OF)


LATE_VECTORS = DeferredVectors(GOAL, GOAL_VECTOR, "goal_id", lambda row: CleanText(row.description))

"""Which goals are there, how do they hang together, and what became of them?

Edges are changed under one lock per workspace, taken alone before anything else: two writers that each see no cycle
could otherwise make one together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, cast, delete, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert

from service.db import idempotency, scopes
from service.db.engine import Session
from service.db.jobs.late_vectors import LateVectors
from service.db.tables import Goal as Table
from service.db.tables import GoalEdge, GoalHistory, GoalMemory, GoalVector, Memory
from service.domain.goal import Goal, GoalChange, GoalDetails, GoalEvent, GoalFilter, GoalStatus
from service.domain.scope import Scope
from service.domain.text import CleanText

SUBGOAL_OF, BLOCKED_BY = "SUBGOAL_OF", "BLOCKED_BY"
SHOWN = 100
"""Subgoals, blockers and memories that are shown with a goal."""

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('goals:' || CAST(:workspace AS text), 0))")

# From the targets along edges of one kind, by pk_goal_edge. UNION drops what was seen, so it ends whatever there is.
LEADS_BACK = text("""
    WITH RECURSIVE reached AS (
        SELECT id FROM unnest(CAST(:targets AS uuid[])) AS first (id)
        UNION
        SELECT e.target_id FROM reached r
        JOIN goal_edge e ON e.workspace_id = :workspace AND e.source_id = r.id AND e.rel_type = :rel_type
    )
    SELECT EXISTS (SELECT FROM reached WHERE id = :source)
""")


def _parent() -> Any:
    return (
        select(GoalEdge.target_id)
        .where(
            GoalEdge.workspace_id == Table.workspace_id,
            GoalEdge.source_id == Table.id,
            GoalEdge.rel_type == SUBGOAL_OF,
        )
        .correlate(Table)
        .scalar_subquery()
    )


def _blockers() -> Any:
    found = func.array_agg(aggregate_order_by(GoalEdge.target_id, GoalEdge.target_id))
    return (
        select(func.coalesce(found, cast([], ARRAY(GoalEdge.target_id.type))))
        .where(
            GoalEdge.workspace_id == Table.workspace_id,
            GoalEdge.source_id == Table.id,
            GoalEdge.rel_type == BLOCKED_BY,
        )
        .correlate(Table)
        .scalar_subquery()
    )


GOALS = select(*Table.__table__.columns, _parent().label("parent_id"), _blockers().label("blocked_by"))


async def lock_edges(session: Session, workspace_id: UUID) -> None:
    """The turn to change what hangs together in this workspace. Alone in its statement, and before any row."""
    await session.execute(LOCK, {"workspace": str(workspace_id)})


async def get(session: Session, workspace_id: UUID, goal_id: UUID) -> Goal | None:
    found = await get_many(session, workspace_id, [goal_id])
    return found.get(goal_id)


async def get_many(session: Session, workspace_id: UUID, ids: Collection[UUID]) -> dict[UUID, Goal]:
    """Those among the ids that there are."""
    if not ids:
        return {}
    rows = await session.execute(GOALS.where(Table.workspace_id == workspace_id, Table.id.in_(ids)))
    return {row.id: _goal(row) for row in rows}


async def lock(session: Session, workspace_id: UUID, goal_id: UUID) -> Goal | None:
    """The goal, which nobody else changes before the transaction ends."""
    here = select(Table.id).where(Table.workspace_id == workspace_id, Table.id == goal_id)
    if (await session.scalar(here.with_for_update())) is None:
        return None
    return await get(session, workspace_id, goal_id)


async def details(session: Session, workspace_id: UUID, goal: Goal) -> GoalDetails:
    """The goal with what it hangs on and what hangs on it; at most SHOWN of each."""
    parts = select(GoalEdge.source_id).where(
        GoalEdge.workspace_id == workspace_id, GoalEdge.target_id == goal.id, GoalEdge.rel_type == SUBGOAL_OF
    )
    children = list(await session.scalars(parts.order_by(GoalEdge.source_id).limit(SHOWN)))
    near = {*children, *goal.blocked_by, *([goal.parent_id] if goal.parent_id else [])}
    known = await get_many(session, workspace_id, near)
    tied = select(GoalMemory.memory_id).where(GoalMemory.workspace_id == workspace_id, GoalMemory.goal_id == goal.id)
    memories = await session.scalars(tied.order_by(GoalMemory.memory_id).limit(SHOWN))
    return GoalDetails(
        goal,
        known.get(goal.parent_id) if goal.parent_id else None,
        tuple(known[each] for each in goal.blocked_by[:SHOWN] if each in known),
        tuple(known[each] for each in children if each in known),
        tuple(memories),
    )


async def page(
    session: Session, scope: Scope, wanted: GoalFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[Goal]:
    """Goals of the scope, newest first. Uses ix_goal_user, _agent or _run."""
    here: list[Any] = [scopes.matching("goal", scope).clause]
    if wanted.status is not None:
        here.append(Table.status == str(wanted.status))
    if wanted.due_before is not None:
        here.append(and_(Table.deadline.is_not(None), Table.deadline < wanted.due_before))
    if wanted.parent_id is not None:
        parts = select(GoalEdge.source_id).where(
            GoalEdge.workspace_id == scope.workspace_id,
            GoalEdge.target_id == wanted.parent_id,
            GoalEdge.rel_type == SUBGOAL_OF,
        )
        here.append(Table.id.in_(parts))
    if after is not None:
        here.append(tuple_(Table.created_at, Table.id) < tuple_(*after))
    rows = await session.execute(GOALS.where(*here).order_by(Table.created_at.desc(), Table.id.desc()).limit(limit))
    return [_goal(row) for row in rows]


async def active(session: Session, scope: Scope, *, limit: int) -> list[Goal]:
    """What is worked on in a scope, for a bundle: by priority, then by deadline, then the newest."""
    here = scopes.matching("goal", scope).clause
    order = Table.priority.desc(), Table.deadline.asc().nulls_last(), Table.created_at.desc(), Table.id
    rows = await session.execute(
        GOALS.where(here, Table.status == str(GoalStatus.ACTIVE)).order_by(*order).limit(limit)
    )
    return [_goal(row) for row in rows]


async def add(session: Session, goal: Goal, vector: NDArray[np.float32] | None, *, generation: int) -> None:
    """A new goal with its vector and the first line of its history; edges are `tie`d."""
    scope = goal.scope
    await session.execute(
        upsert(Table).values(
            workspace_id=scope.workspace_id,
            id=goal.id,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            run_id=scope.run_id,
            channel=scope.channel,
            description=goal.description,
            status=str(goal.status),
            priority=goal.priority,
            deadline=goal.deadline,
            updated_at=func.now(),  # as created_at
        )
    )
    await _vector(session, scope.workspace_id, goal.id, vector, generation)


async def change(
    session: Session,
    goal: Goal,
    values: Mapping[str, Any],
    *,
    now: datetime,
) -> None:
    """Columns take new values, and the version counts up."""
    here = Table.workspace_id == goal.scope.workspace_id, Table.id == goal.id
    await session.execute(update(Table).where(*here).values(**values, version=Table.version + 1, updated_at=now))


async def set_vector(session: Session, goal: Goal, vector: NDArray[np.float32] | None, *, generation: int) -> None:
    """The vector of a new description; None (no embedder) leaves none, rather than that of the old one."""
    here = GoalVector.workspace_id == goal.scope.workspace_id, GoalVector.goal_id == goal.id
    await session.execute(delete(GoalVector).where(*here))
    await _vector(session, goal.scope.workspace_id, goal.id, vector, generation)


async def _vector(
    session: Session, workspace_id: UUID, goal_id: UUID, vector: NDArray[np.float32] | None, generation: int
) -> None:
    if vector is not None:
        row = {"workspace_id": workspace_id, "goal_id": goal_id, "generation": generation, "embedding": vector}
        await session.execute(upsert(GoalVector).values(**row))


async def ends(session: Session, workspace_id: UUID, ids: Collection[UUID]) -> dict[UUID, Scope]:
    """Whose the goals among the ids are; they cannot go before the transaction ends."""
    if not ids:
        return {}
    columns = Table.id, Table.user_id, Table.agent_id, Table.run_id, Table.channel
    here = select(*columns).where(Table.workspace_id == workspace_id, Table.id.in_(ids)).order_by(Table.id)
    rows = await session.execute(here.with_for_update(key_share=True, read=True))
    return {row.id: Scope(workspace_id, row.user_id, row.agent_id, row.run_id, row.channel) for row in rows}


async def leads_back(
    session: Session, workspace_id: UUID, goal_id: UUID, rel_type: str, targets: Collection[UUID]
) -> bool:
    """Would edges of this kind from the goal to the targets close a circle? `lock_edges` comes first."""
    values = {"workspace": workspace_id, "source": goal_id, "rel_type": rel_type, "targets": list(targets)}
    return bool(await session.scalar(LEADS_BACK, values))


async def tie(session: Session, workspace_id: UUID, goal_id: UUID, rel_type: str, targets: Collection[UUID]) -> None:
    """The goal's edges of this kind lead to the targets and nowhere else."""
    here = GoalEdge.workspace_id == workspace_id, GoalEdge.source_id == goal_id, GoalEdge.rel_type == rel_type
    await session.execute(delete(GoalEdge).where(*here, GoalEdge.target_id.not_in(targets)))
    if targets:
        rows = [
            {"workspace_id": workspace_id, "source_id": goal_id, "rel_type": rel_type, "target_id": each}
            for each in sorted(targets)
        ]
        await session.execute(upsert(GoalEdge).values(rows).on_conflict_do_nothing())


async def memories(session: Session, workspace_id: UUID, ids: Collection[UUID], *, now: datetime) -> dict[UUID, Scope]:
    """Whose the memories among the ids are, by ascending id; they cannot go before the transaction ends."""
    columns = Memory.id, Memory.user_id, Memory.agent_id, Memory.run_id, Memory.channel
    alive = (Memory.expires_at.is_(None)) | (Memory.expires_at > now)
    here = select(*columns).where(Memory.workspace_id == workspace_id, Memory.id.in_(ids), alive).order_by(Memory.id)
    rows = await session.execute(here.with_for_update(key_share=True, read=True))
    return {row.id: Scope(workspace_id, row.user_id, row.agent_id, row.run_id, row.channel) for row in rows}


async def tie_memories(session: Session, workspace_id: UUID, goal_id: UUID, ids: Collection[UUID]) -> None:
    if ids:
        rows = [{"workspace_id": workspace_id, "goal_id": goal_id, "memory_id": each} for each in sorted(ids)]
        await session.execute(upsert(GoalMemory).values(rows).on_conflict_do_nothing())


async def untie_memory(session: Session, workspace_id: UUID, goal_id: UUID, memory_id: UUID) -> bool:
    """Was it tied?"""
    here = GoalMemory.workspace_id == workspace_id, GoalMemory.goal_id == goal_id, GoalMemory.memory_id == memory_id
    return bool((await session.execute(delete(GoalMemory).where(*here))).rowcount)


async def append_history(
    session: Session, workspace_id: UUID, goal_id: UUID, version: int, event: GoalEvent, changes: Mapping[str, Any]
) -> None:
    """One line of the goal's history."""
    values = {"version": version, "event": str(event), "changes": dict(changes)}
    await session.execute(upsert(GoalHistory).values(workspace_id=workspace_id, goal_id=goal_id, **values))


async def history(session: Session, workspace_id: UUID, goal_id: UUID, *, limit: int) -> list[GoalChange]:
    """Every change, oldest first."""
    here = GoalHistory.workspace_id == workspace_id, GoalHistory.goal_id == goal_id
    columns = GoalHistory.version, GoalHistory.event, GoalHistory.changes, GoalHistory.recorded_at
    rows = await session.execute(select(*columns).where(*here).order_by(GoalHistory.version).limit(limit))
    return [GoalChange(row.version, GoalEvent(row.event), row.changes, row.recorded_at) for row in rows]


async def remove(session: Session, workspace_id: UUID, goal_id: UUID) -> bool:
    """Was there such a goal? Edges, vector and history go with it."""
    here = Table.workspace_id == workspace_id, Table.id == goal_id
    return bool((await session.execute(delete(Table).where(*here))).rowcount)


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """How many goals went, of all that have every given id (and the channel), with answers that were kept of them."""
    gone = delete(Table).where(scopes.owned("goal", scope, channel).clause).returning(Table.id)
    ids: Sequence[UUID] = list(await session.scalars(gone))
    await idempotency.forget_shown(session, scope.workspace_id, ids)
    return len(ids)


def _goal(row: Any) -> Goal:
    return Goal(
        row.id,
        Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel),
        CleanText(row.description),
        GoalStatus(row.status),
        row.priority,
        row.deadline,
        row.result,
        row.parent_id,
        tuple(row.blocked_by),
        row.version,
        row.created_at,
        row.updated_at,
        row.completed_at,
    )


LATE_VECTORS = LateVectors(Table, GoalVector, "goal_id", lambda row: CleanText(row.description))

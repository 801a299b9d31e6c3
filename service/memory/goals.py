"""How is a goal set, changed and closed?

Words are redacted and embedded with nothing held. Then one transaction: the goal, its edges, its vector, a line of its
history, the audit and the answer. Whatever changes edges takes the workspace's goal lock first, so that no two
requests close a circle together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from service.db import idempotency
from service.db.cognition import goals
from service.db.cognition.goals import BLOCKED_BY, SUBGOAL_OF
from service.db.engine import Session
from service.domain.audit import Operation
from service.domain.goal import Goal, GoalDetails, GoalEvent, GoalStatus
from service.domain.request import Request
from service.domain.revision import Expected
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.errors import Conflict, EmbeddingError, InvalidInput, NotFound, PreconditionFailed
from service.memory import catch_up
from service.memory.transactions import keep, note, plain_transaction
from service.pipeline import pii
from service.providers.protocols import Vector
from service.resources import Resources

Named = Literal["description", "priority", "deadline", "parent_id", "blocked_by", "status"]

EVENT_OF: Mapping[GoalStatus, GoalEvent] = {
    GoalStatus.ACTIVE: GoalEvent.REOPEN,
    GoalStatus.COMPLETED: GoalEvent.COMPLETE,
    GoalStatus.ABANDONED: GoalEvent.ABANDON,
    GoalStatus.BLOCKED: GoalEvent.BLOCK,
}
OPERATION: Mapping[GoalEvent, Operation] = {
    GoalEvent.ADD: "goal_add",
    GoalEvent.UPDATE: "goal_update",
    GoalEvent.COMPLETE: "goal_complete",
    GoalEvent.ABANDON: "goal_abandon",
    GoalEvent.BLOCK: "goal_block",
    GoalEvent.REOPEN: "goal_reopen",
}


@dataclass(frozen=True, slots=True)
class NewGoal:
    """A goal as asked for."""

    scope: Scope
    description: str
    priority: int = 0
    deadline: datetime | None = None
    parent_id: UUID | None = None
    blocked_by: tuple[UUID, ...] = ()
    memory_ids: tuple[UUID, ...] = ()


async def add(asked: NewGoal, res: Resources, request: Request) -> GoalDetails:
    """The new goal. Raises NotFound naming the parent, blocker or memory that is not there or another's."""
    scope, now = asked.scope, res.clock()
    words = await pii.clean_words(asked.description, "description", res)
    vector = await _vector(scope.workspace_id, words, res)
    goal = Goal(
        uuid7(),
        scope,
        words,
        GoalStatus.ACTIVE,
        asked.priority,
        asked.deadline,
        None,
        asked.parent_id,
        tuple(sorted(set(asked.blocked_by))),
        1,
        now,
        now,
        None,
    )
    async with plain_transaction(scope.workspace_id, res, request) as session:
        await _check_ends(session, goal, [asked.parent_id] if asked.parent_id else [], "parent_id")
        await _check_ends(session, goal, goal.blocked_by, "blocked_by")
        await _check_memories(session, goal, asked.memory_ids, res)
        await goals.add(session, goal, vector, generation=res.generation)
        if vector is None:
            await catch_up.embed_later(session, scope.workspace_id, catch_up.GOALS)
        await goals.tie(session, scope.workspace_id, goal.id, SUBGOAL_OF, [asked.parent_id] if asked.parent_id else [])
        await goals.tie(session, scope.workspace_id, goal.id, BLOCKED_BY, goal.blocked_by)
        await goals.tie_memories(session, scope.workspace_id, goal.id, set(asked.memory_ids))
        await goals.append_history(
            session, scope.workspace_id, goal.id, 1, GoalEvent.ADD, {"description": [None, words]}
        )
        made = await goals.get(session, scope.workspace_id, goal.id)
        assert made is not None, "it was just written"
        return await _end(session, made, "goal_add", res, request)


async def revise(
    workspace_id: UUID,
    goal_id: UUID,
    named: Mapping[Named, Any],
    res: Resources,
    request: Request,
    *,
    expected: Expected | None = None,
) -> GoalDetails:
    """The goal with what is named in place of what was; what is equal is no change. `status` may only be active, for
    one that is blocked. Raises NotFound, Conflict for a circle or a goal that is over, or PreconditionFailed."""
    values: dict[str, Any] = {str(name): value for name, value in named.items()}
    vector: Vector | None = None
    if "description" in values:
        values["description"] = await pii.clean_words(values["description"], "description", res)
        vector = await _vector(workspace_id, values["description"], res)
    if "blocked_by" in values:
        values["blocked_by"] = tuple(sorted(set(values["blocked_by"])))
    async with plain_transaction(workspace_id, res, request) as session:
        if {"parent_id", "blocked_by"} & values.keys():
            await goals.lock_edges(session, workspace_id)
        goal = await _locked(session, workspace_id, goal_id, expected)
        changed = {name: value for name, value in values.items() if value != getattr(goal, name)}
        if not changed:
            return await _end(session, goal, None, res, request)
        if "status" in changed and goal.status is not GoalStatus.BLOCKED:
            raise Conflict(f"status: the goal is {goal.status} and stays so.", field="status")
        if "parent_id" in changed:
            await _tie(session, goal, SUBGOAL_OF, [changed["parent_id"]] if changed["parent_id"] else [], "parent_id")
        if "blocked_by" in changed:
            await _tie(session, goal, BLOCKED_BY, changed["blocked_by"], "blocked_by")
        columns = {name: value for name, value in changed.items() if name not in ("parent_id", "blocked_by")}
        await goals.change(session, goal, columns, now=res.clock())
        if "description" in changed:
            await goals.set_vector(session, goal, vector, generation=res.generation)
            if vector is None:
                await catch_up.embed_later(session, workspace_id, catch_up.GOALS)
        event = GoalEvent.REOPEN if "status" in changed else GoalEvent.UPDATE
        return await _told(session, goal, event, changed, res, request)


async def close(
    workspace_id: UUID,
    goal_id: UUID,
    status: GoalStatus,
    res: Resources,
    request: Request,
    *,
    result: str | None = None,
    blocked_by: Collection[UUID] = (),
    expected: Expected | None = None,
) -> GoalDetails:
    """The goal completed, abandoned or blocked, with what came of it. The same again changes nothing; `blocked_by` adds
    to what it waits for. Raises NotFound, PreconditionFailed, or Conflict when it is over with another status."""
    words = await pii.clean_words(result, "result", res) if result is not None else None
    async with plain_transaction(workspace_id, res, request) as session:
        if blocked_by:
            await goals.lock_edges(session, workspace_id)
        goal = await _locked(session, workspace_id, goal_id, expected)
        if goal.status.is_over and goal.status is not status:
            raise Conflict(f"The goal is {goal.status} already.", field="status")
        changed: dict[str, Any] = {}
        waits = tuple(sorted({*goal.blocked_by, *blocked_by}))
        if waits != goal.blocked_by:
            await _tie(session, goal, BLOCKED_BY, waits, "blocked_by")
            changed["blocked_by"] = waits
        if goal.status is not status:
            changed["status"] = status
        if words is not None and not goal.status.is_over and words != goal.result:
            changed["result"] = words
        if not changed:
            return await _end(session, goal, None, res, request)
        columns = {name: value for name, value in changed.items() if name != "blocked_by"}
        if status.is_over:
            columns["completed_at"] = res.clock()
        await goals.change(session, goal, columns, now=res.clock())
        return await _told(session, goal, EVENT_OF[status], changed, res, request)


async def tie_memories(
    workspace_id: UUID, goal_id: UUID, ids: Collection[UUID], res: Resources, request: Request
) -> GoalDetails:
    """The goal with these memories tied to it too. Raises NotFound naming the goal or memory_ids."""
    async with plain_transaction(workspace_id, res, request) as session:
        goal = await _locked(session, workspace_id, goal_id, None)
        await _check_memories(session, goal, ids, res)
        await goals.tie_memories(session, workspace_id, goal_id, set(ids))
        return await _end(session, goal, "goal_tie", res, request, memories=len(set(ids)))


async def untie_memory(workspace_id: UUID, goal_id: UUID, memory_id: UUID, res: Resources, request: Request) -> int:
    """How many memories were untied: 0 or 1."""
    async with plain_transaction(workspace_id, res, request) as session:
        goal = await _locked(session, workspace_id, goal_id, None)
        gone = int(await goals.untie_memory(session, workspace_id, goal_id, memory_id))
        if gone:
            await _note(session, "goal_untie", goal, request, res)
        await keep(session, workspace_id, gone, request)
        return gone


async def remove(
    workspace_id: UUID, goal_id: UUID, res: Resources, request: Request, *, expected: Expected | None = None
) -> int:
    """1; the goal is gone with edges, vector and history, its parts stay. Raises NotFound or PreconditionFailed."""
    async with plain_transaction(workspace_id, res, request) as session:
        goal = await _locked(session, workspace_id, goal_id, expected)
        await goals.remove(session, workspace_id, goal_id)
        await idempotency.forget_shown(session, workspace_id, [goal_id])
        await _note(session, "goal_delete", goal, request, res)
        await keep(session, workspace_id, 1, request)
        return 1


def missing(field_name: str = "id") -> NotFound:
    return NotFound("There is no goal with this id.", field=field_name)


def goal_id(given: str) -> UUID:
    """The id; NotFound for anything that is no UUID."""
    try:
        return UUID(given)
    except ValueError:
        raise missing() from None


async def _vector(workspace_id: UUID, words: CleanText, res: Resources) -> Vector | None:
    try:
        return (await res.embedder.embed(workspace_id, [words]))[0]
    except EmbeddingError:
        return None


async def _locked(session: Session, workspace_id: UUID, wanted: UUID, expected: Expected | None) -> Goal:
    goal = await goals.lock(session, workspace_id, wanted)
    if goal is None:
        raise missing()
    if expected is not None and not expected.meets(goal.version):
        raise PreconditionFailed("The goal has changed since: read it again.", field="If-Match")
    return goal


async def _tie(session: Session, goal: Goal, kind: str, targets: Sequence[UUID], field_name: str) -> None:
    """Raises InvalidInput for the goal itself, NotFound, or Conflict where the edges would lead back to the goal."""
    if goal.id in targets:
        raise InvalidInput(f"{field_name}: a goal cannot be its own.", field=field_name)
    await _check_ends(session, goal, targets, field_name)
    if await goals.leads_back(session, goal.scope.workspace_id, goal.id, kind, targets):
        raise Conflict(f"{field_name}: that would close a circle.", field=field_name)
    await goals.tie(session, goal.scope.workspace_id, goal.id, kind, targets)


async def _check_ends(session: Session, goal: Goal, ids: Collection[UUID], field_name: str) -> None:
    found = await goals.ends(session, goal.scope.workspace_id, ids)
    if any(each not in found or not _may_meet(goal.scope, found[each]) for each in ids):
        raise NotFound(f"{field_name}: there is no goal with this id.", field=field_name)


async def _check_memories(session: Session, goal: Goal, ids: Collection[UUID], res: Resources) -> None:
    found = await goals.memories(session, goal.scope.workspace_id, ids, now=res.clock()) if ids else {}
    if any(each not in found or not _may_meet(goal.scope, found[each]) for each in ids):
        raise NotFound("memory_ids: there is no memory with this id.", field="memory_ids")


def _may_meet(one: Scope, other: Scope) -> bool:
    """Nothing leads from one user to another, or from one agent to another (R2.03)."""
    pairs = (one.user_id, other.user_id), (one.agent_id, other.agent_id)
    return all(here is None or there is None or here == there for here, there in pairs)


async def _told(
    session: Session,
    goal: Goal,
    event: GoalEvent,
    changed: Mapping[str, Any],
    res: Resources,
    request: Request,
) -> GoalDetails:
    told = {name: [_plain(getattr(goal, name)), _plain(value)] for name, value in changed.items()}
    workspace_id = goal.scope.workspace_id
    await goals.append_history(session, workspace_id, goal.id, goal.version + 1, event, told)
    now = await goals.get(session, workspace_id, goal.id)
    assert now is not None, "its row is locked"
    return await _end(session, now, OPERATION[event], res, request, fields=sorted(changed))


async def _end(
    session: Session, goal: Goal, operation: Operation | None, res: Resources, request: Request, **metadata: Any
) -> GoalDetails:
    found = await goals.details(session, goal.scope.workspace_id, goal)
    if operation is not None:
        await _note(session, operation, goal, request, res, **metadata)
    await keep(session, goal.scope.workspace_id, found, request)
    return found


async def _note(
    session: Session, operation: Operation, goal: Goal, request: Request, res: Resources, **metadata: Any
) -> None:
    await note(session, operation, goal.scope, [goal.id], request, res, kind="goal", **metadata)


def _plain(value: Any) -> Any:
    """As JSON holds it."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [str(each) for each in value]
    return str(value) if isinstance(value, UUID | GoalStatus) else value

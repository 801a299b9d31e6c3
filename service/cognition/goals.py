"""Setting, changing, closing and deleting goals.

Texts are redacted and embedded before the transaction. The transaction then writes the goal, its edges, its vector, the
audit entry and the answer. Every change of edges first takes the workspace's edge lock, so that two requests cannot
close a cycle together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.cognition.statements import goals, records
from service.cognition.statements.goals import LINKS
from service.cognition.values import Goal, GoalDetails, GoalStatus
from service.domain.errors import Conflict, InvalidInput, NotFound
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.postgres.engine import Session
from service.postgres.tables import GOAL, MEMORY
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction


async def add_goal(scope: Scope, new: Mapping[str, Any], res: Resources, call: Call) -> GoalDetails:
    """The new goal with the given fields, of which only `description` is required. Raises NotFound naming the parent,
    blocker or memory that does not exist or belongs to another."""
    workspace_id, goal_id, links = scope.workspace_id, uuid7(), _links(new)
    description = await pii.clean_words(new["description"], "description", res)
    vector = await res.embed_now(workspace_id, description)
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        for field, ids in links.items():
            await _check_links(session, scope, field, ids, res)
        columns = {"description": description, "priority": new.get("priority", 0), "deadline": new.get("deadline")}
        await goals.add(session, scope, goal_id, columns, vector, generation=res.generation)
        for field, ids in links.items():
            await goals.set_links(session, goal_id, field, ids)
        return await _record(write, goal_id, "goal_add")


async def revise_goal(
    workspace_id: UUID, goal_id: UUID, fields: Mapping[str, Any], res: Resources, call: Call
) -> GoalDetails:
    """The goal with the given fields changed; an unchanged value is not a change. `status`: active or blocked. Raises
    NotFound, Conflict for a cycle or a closed goal, or PreconditionFailed."""
    values, vector = dict(fields), None
    if "description" in values:
        values["description"] = await pii.clean_words(values["description"], "description", res)
        vector = await res.embed_now(workspace_id, values["description"])
    for name in ("blocked_by", "memory_ids"):
        if name in values:
            values[name] = tuple(sorted(set(values[name])))
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        if {"parent_id", "blocked_by"} & values.keys():
            await goals.lock_edges(session)
        goal = await _lock(write, goal_id)
        changed = {name: value for name, value in values.items() if value != getattr(goal, name)}
        if not changed:
            return await _answer(write, goal)
        if "status" in changed and goal.is_over:
            raise Conflict(f"status: the goal is {goal.status}, which is final.", field="status")
        if "description" in changed:
            await goals.LATE_VECTORS.replace(session, goal_id, vector, generation=res.generation)
        for field, ids in _links(changed).items():
            await _replace_links(session, goal, field, ids, res)
        await goals.change(session, goal, changed, now=res.clock())
        return await _record(write, goal_id, "goal_update", fields=sorted(changed))


async def close_goal(
    workspace_id: UUID, goal_id: UUID, status: GoalStatus, result: str | None, res: Resources, call: Call
) -> GoalDetails:
    """Completes or abandons a goal, with its result. Safe to repeat. Raises NotFound, PreconditionFailed, or Conflict
    if it is closed with the other status."""
    clean_result = await pii.clean_words(result, "result", res) if result is not None else None
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        goal = await _lock(write, goal_id)
        if goal.status == status:
            return await _answer(write, goal)
        if goal.is_over:
            raise Conflict(f"The goal is already {goal.status}.", field="status")
        columns = {"status": status, "result": clean_result, "completed_at": res.clock()}
        await goals.change(session, goal, columns, now=res.clock())
        return await _record(write, goal_id, "goal_complete", status=status)


async def remove_goal(workspace_id: UUID, goal_id: UUID, res: Resources, call: Call) -> int:
    """Deletes the goal with its edges and vector, and returns 1; its subgoals stay. Raises NotFound or
    PreconditionFailed."""
    async with plain_transaction(workspace_id, res, call) as write:
        goal = await _lock(write, goal_id)
        await records.remove(write.session, GOAL, goal_id)
        await write.audit("goal_delete", goal.scope, [goal_id], subject="goal")
        return await write.answer(1)


find = goals.get


async def read_goal(workspace_id: UUID, goal_id: UUID, res: Resources) -> GoalDetails:
    """A goal with its parent and subgoals. Raises NotFound."""
    async with res.db.snapshot(workspace_id) as session:
        goal = await goals.get(session, goal_id)
        if goal is None:
            raise NotFound.of("goal")
        return await goals.details(session, goal, res.clock())


async def list_goals(
    scope: Scope, status: GoalStatus | None, res: Resources, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[Goal]:
    """Goals of the scope with this status (None: any), newest first."""
    async with res.db.read(scope.workspace_id) as session:
        return await goals.page(session, scope, status, after=after, limit=limit)


async def _lock(write: Write, goal_id: UUID) -> Goal:
    goal = await goals.lock(write.session, goal_id)
    if goal is None:
        raise NotFound.of("goal")
    write.check_version(goal.version, "goal")
    return goal


def _links(fields: Mapping[str, Any]) -> dict[str, Collection[UUID]]:
    """The goals and memories that the given fields link to, by field."""
    given = {field: fields[field] for field in LINKS if field in fields}
    return {field: [ids] if isinstance(ids, UUID) else ids or () for field, ids in given.items()}


async def _replace_links(session: Session, goal: Goal, field: str, ids: Collection[UUID], res: Resources) -> None:
    """Raises InvalidInput for the goal itself, NotFound, or Conflict for a cycle."""
    if goal.id in ids:
        raise InvalidInput(f"{field}: a goal cannot be its own.", field=field)
    await _check_links(session, goal.scope, field, ids, res)
    if field != "memory_ids" and await goals.would_close_cycle(session, goal.id, field, ids):
        raise Conflict(f"{field}: that would close a cycle.", field=field)
    await goals.set_links(session, goal.id, field, ids)


async def _check_links(session: Session, scope: Scope, field: str, ids: Collection[UUID], res: Resources) -> None:
    """Raises NotFound if a goal or memory with one of the ids does not exist or belongs to another."""
    table, kind = (MEMORY, "memory") if field == "memory_ids" else (GOAL, "goal")
    scopes = await goals.lock_scopes(session, table, ids, now=res.clock())
    if any(key not in scopes or not scope.may_link_to(scopes[key]) for key in ids):
        raise NotFound(f"{field}: there is no {kind} with this id.", field=field)


async def _record(write: Write, goal_id: UUID, operation: Operation, **metadata: Any) -> GoalDetails:
    """Adds the change to the audit log; returns the goal as it is now."""
    current = await goals.get(write.session, goal_id)
    assert current is not None, "its row was written or locked in this transaction"
    await write.audit(operation, current.scope, [goal_id], subject="goal", **metadata)
    return await _answer(write, current)


async def _answer(write: Write, goal: Goal) -> GoalDetails:
    return await write.answer(await goals.details(write.session, goal, write.res.clock()))

"""Goals over HTTP: set, list, change, close, tie memories to them."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from service.api import cursors, errors
from service.api.deps import AgentId, CallerOf, Deleter, Reader, ResourcesOf, RunId, ScopeOf, UserId, Writer, scope_of
from service.api.goal_models import (
    AbandonGoalRequest,
    BlockGoalRequest,
    CompleteGoalRequest,
    CreateGoalRequest,
    GoalDetailsResponse,
    GoalHistoryItem,
    GoalHistoryResponse,
    GoalPage,
    GoalResponse,
    StatusName,
    TieMemoriesRequest,
    UpdateGoalRequest,
)
from service.api.preconditions import ExpectedOf
from service.api.schemas import DeletedCountResponse, Id, Time
from service.api.writes import WriteOf, answer, send
from service.db.cognition import goals as rows
from service.domain.access import Caller
from service.domain.goal import Goal, GoalDetails, GoalFilter, GoalStatus
from service.domain.request import StoredAnswer, WriteContext
from service.memory import goals
from service.memory.goals import NewGoal, goal_id, missing
from service.memory.transactions import memory_id
from service.resources import Resources

router = APIRouter(prefix="/v1/goals", tags=["goals"])


async def belongs(
    id: str, who: CallerOf, res: ResourcesOf, user_id: UserId = None, agent_id: AgentId = None, run_id: RunId = None
) -> None:
    """Ids of a scope are not needed here; one that is given must be the goal's own, else it is not found."""
    given = (user_id, agent_id, run_id)
    if not any(given):
        return
    async with res.db.read(who.workspace_id) as session:
        found = await rows.get(session, who.workspace_id, goal_id(id))
    own = (found.scope.user_id, found.scope.agent_id, found.scope.run_id) if found else given
    if any(wanted is not None and wanted != there for wanted, there in zip(given, own, strict=True)):
        raise missing()


OWN = [Depends(belongs)]
CHANGE = errors.documented(400, 401, 403, 404, 409, 412, 413, 422, 503)


@router.post(
    "",
    operation_id="create_goal",
    summary="Set a goal",
    status_code=201,
    response_model=GoalDetailsResponse,
    responses=errors.documented(400, 401, 403, 404, 409, 413, 422, 503),
)
async def create_goal(body: CreateGoalRequest, who: Writer, res: ResourcesOf, write: WriteOf) -> Response:
    """It is active. While it is, its memories and those near to its words rank higher in searches of its scope."""
    scope = scope_of(who, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)
    asked = NewGoal(
        scope,
        body.description,
        body.priority,
        body.deadline,
        body.parent_id,
        tuple(body.blocked_by),
        tuple(body.memory_ids),
    )
    shown = partial(full_answer, now=res.clock(), status=201)
    return send(shown(await goals.add(asked, res, write.answered_by(shown))))


@router.get(
    "",
    operation_id="list_goals",
    summary="The goals of a scope",
    response_model=GoalPage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_goals(
    who: Reader,
    scope: ScopeOf,
    res: ResourcesOf,
    status: Annotated[StatusName | None, Query(description="Only these")] = None,
    parent_id: Annotated[Id | None, Query(description="Only parts of this goal")] = None,
    due_before: Annotated[Time | None, Query(description="Only those with a deadline before it")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> GoalPage:
    """Those of the active channel and of _global, newest first."""
    wanted = GoalFilter(GoalStatus(status) if status else None, parent_id, due_before)
    async with res.db.read(who.workspace_id) as session:
        found = await rows.page(session, scope, wanted, after=cursors.decode(cursor), limit=limit + 1)
    more = found[limit - 1] if len(found) > limit else None
    now = res.clock()
    return GoalPage(
        results=[shown(each, now) for each in found[:limit]],
        next_cursor=cursors.encode(more.created_at, more.id) if more else None,
    )


@router.get(
    "/{id}",
    operation_id="get_goal",
    summary="A goal with its parent, blockers, parts and memories",
    response_model=GoalDetailsResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
    dependencies=OWN,
)
async def get_goal(id: str, who: Reader, res: ResourcesOf) -> Response:
    """At most 100 parts and memories of it. The ETag is what If-Match wants."""
    async with res.db.snapshot(who.workspace_id) as session:
        found = await rows.get(session, who.workspace_id, goal_id(id))
        if found is None:
            raise missing()
        around = await rows.details(session, who.workspace_id, found)
    return send(full_answer(around, now=res.clock()))


@router.patch(
    "/{id}",
    operation_id="update_goal",
    summary="Change a goal",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=OWN,
)
async def update_goal(
    id: str,
    body: UpdateGoalRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """Edges that would lead back to the goal are refused (409). What is over is closed for good, but may be edited."""
    given: dict[goals.Changeable, Any] = {name: getattr(body, name) for name in body.model_fields_set}  # type: ignore[misc]
    if "status" in given:
        given["status"] = GoalStatus.ACTIVE
    shown = partial(full_answer, now=res.clock())
    goal = await goals.revise(who.workspace_id, goal_id(id), given, res, write.answered_by(shown), expected=expected)
    return send(shown(goal))


@router.delete(
    "/{id}",
    operation_id="delete_goal",
    summary="Delete a goal for good",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 412, 503),
    dependencies=OWN,
)
async def delete_goal(id: str, who: Deleter, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """With its edges, its vector and its history. Its parts and its memories stay."""
    count = await goals.remove(who.workspace_id, goal_id(id), res, write.answered_by(gone), expected=expected)
    return send(gone(count))


@router.get(
    "/{id}/history",
    operation_id="get_goal_history",
    summary="Every change of a goal",
    response_model=GoalHistoryResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
    dependencies=OWN,
)
async def get_goal_history(
    id: str, who: Reader, res: ResourcesOf, limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000
) -> GoalHistoryResponse:
    """Oldest first, with the values before and after."""
    async with res.db.read(who.workspace_id) as session:
        found = await rows.history(session, who.workspace_id, goal_id(id), limit=limit)
    if not found:
        raise missing()
    return GoalHistoryResponse(
        results=[
            GoalHistoryItem(
                version=each.version, event=each.event.value, changes=dict(each.changes), timestamp=each.recorded_at
            )
            for each in found
        ]
    )


@router.post(
    "/{id}/complete",
    operation_id="complete_goal",
    summary="The goal is reached, or given up",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=OWN,
)
async def complete_goal(
    id: str,
    body: CompleteGoalRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """Again is fine and changes nothing; 409 when it is over with the other status."""
    return await _closed(id, GoalStatus(body.status), who, res, write, expected=expected, result=body.result)


@router.post(
    "/{id}/abandon",
    operation_id="abandon_goal",
    summary="The goal is given up",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=OWN,
)
async def abandon_goal(
    id: str,
    body: AbandonGoalRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """Again is fine and changes nothing; 409 when it is completed."""
    return await _closed(id, GoalStatus.ABANDONED, who, res, write, expected=expected, result=body.result)


@router.post(
    "/{id}/block",
    operation_id="block_goal",
    summary="The goal waits for something",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=OWN,
)
async def block_goal(
    id: str,
    body: BlockGoalRequest,
    who: Writer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """It stays blocked until a PATCH makes it active again, also when what it waited for is reached."""
    return await _closed(
        id,
        GoalStatus.BLOCKED,
        who,
        res,
        write,
        expected=expected,
        result=body.result,
        blocked_by=tuple(body.blocked_by),
    )


@router.post(
    "/{id}/memories",
    operation_id="tie_memories_to_goal",
    summary="Tie memories to a goal",
    response_model=GoalDetailsResponse,
    responses=errors.documented(400, 401, 403, 404, 409, 413, 503),
    dependencies=OWN,
)
async def tie_memories_to_goal(
    id: str, body: TieMemoriesRequest, who: Writer, res: ResourcesOf, write: WriteOf
) -> Response:
    """Those that are tied already stay so."""
    shown = partial(full_answer, now=res.clock())
    goal = await goals.tie_memories(who.workspace_id, goal_id(id), body.memory_ids, res, write.answered_by(shown))
    return send(shown(goal))


@router.delete(
    "/{id}/memories/{memory}",
    operation_id="untie_memory_from_goal",
    summary="Untie a memory from a goal",
    response_model=DeletedCountResponse,
    responses=errors.documented(400, 401, 403, 404, 503),
    dependencies=OWN,
)
async def untie_memory_from_goal(id: str, memory: str, who: Writer, res: ResourcesOf, write: WriteOf) -> Response:
    """When it is not tied, that is fine."""
    context = write.answered_by(gone)
    count = await goals.untie_memory(who.workspace_id, goal_id(id), memory_id(memory), res, context)
    return send(gone(count))


async def _closed(
    id: str, status: GoalStatus, who: Caller, res: Resources, write: WriteContext, **more: Any
) -> Response:
    shown = partial(full_answer, now=res.clock())
    goal = await goals.close(who.workspace_id, goal_id(id), status, res, write.answered_by(shown), **more)
    return send(shown(goal))


def full_answer(found: GoalDetails, *, now: datetime, status: int = 200) -> StoredAnswer:
    return answer(status, full(found, now))


def gone(count: int) -> StoredAnswer:
    return answer(200, DeletedCountResponse(deleted=count))


def shown(goal: Goal, now: datetime) -> GoalResponse:
    return GoalResponse(**_fields(goal, now))


def full(found: GoalDetails, now: datetime) -> GoalDetailsResponse:
    return GoalDetailsResponse(
        **_fields(found.goal, now),
        parent=shown(found.parent, now) if found.parent else None,
        blockers=[shown(each, now) for each in found.blockers],
        subgoals=[shown(each, now) for each in found.subgoals],
        memory_ids=list(found.memory_ids),
    )


def _fields(goal: Goal, now: datetime) -> dict[str, Any]:
    return {
        "id": goal.id,
        "description": goal.description,
        "status": goal.status.value,
        "priority": goal.priority,
        "user_id": goal.scope.user_id,
        "agent_id": goal.scope.agent_id,
        "run_id": goal.scope.run_id,
        "channel": goal.scope.channel,
        "parent_id": goal.parent_id,
        "blocked_by": list(goal.blocked_by),
        "deadline": goal.deadline,
        "overdue": goal.is_overdue(now),
        "result": goal.result,
        "version": goal.version,
        "created_at": goal.created_at,
        "updated_at": goal.updated_at,
        "completed_at": goal.completed_at,
    }

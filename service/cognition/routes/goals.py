"""Routes for goals: create, list, change, close, tie to memories."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from service.cognition import goals
from service.cognition.goals import Changeable, NewGoal, missing
from service.cognition.routes.goal_models import (
    AbandonGoalRequest,
    BlockGoalRequest,
    CompleteGoalRequest,
    CreateGoalRequest,
    GoalDetailsResponse,
    GoalHistoryItem,
    GoalHistoryResponse,
    GoalPage,
    StatusName,
    TieMemoriesRequest,
    UpdateGoalRequest,
    goal_details_response,
    goal_response,
)
from service.cognition.values import GoalDetails, GoalFilter, GoalStatus
from service.domain.access import Caller
from service.domain.request import StoredAnswer, WriteContext
from service.http import cursors, errors
from service.http.deps import Changer, Deleter, ListScopeOf, Reader, ResourcesOf, Writer, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf, in_scope, uuid_of
from service.http.reads import ReadOn
from service.http.schemas import DeletedCountResponse, Id, Time
from service.http.writes import WriteOf, answer, answer_count, send
from service.runtime.resources import Resources
from service.runtime.transactions import parse_id

router = APIRouter(prefix="/v1/goals", tags=["goals"], route_class=JsonRoute)


IN_SCOPE = [in_scope(goals.find, missing)]
CHANGE = errors.keyed(400, 404, 409, 412, 413, 422)


@router.post(
    "",
    summary="Set a goal",
    status_code=201,
    response_model=GoalDetailsResponse,
    responses=errors.keyed(400, 404, 409, 413, 422),
)
async def create_goal(body: CreateGoalRequest, caller: Writer, res: ResourcesOf, write: WriteOf) -> Response:
    """A goal starts active. While it is active, memories tied or similar to it rank higher in searches of its scope."""
    scope = scope_of(caller, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)
    new = NewGoal(
        scope,
        body.description,
        body.priority,
        body.deadline,
        body.parent_id,
        tuple(body.blocked_by),
        tuple(body.memory_ids),
    )
    serialize = partial(_details, now=res.clock(), status=201)
    return send(serialize(await goals.add_goal(new, res, write.answered_by(serialize))))


@router.get("", summary="List the goals of a scope", responses=errors.keyed(400))
async def list_goals(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    status: Annotated[StatusName | None, Query(description="Only goals with this status")] = None,
    parent_id: Annotated[Id | None, Query(description="Only subgoals of this goal")] = None,
    due_before: Annotated[Time | None, Query(description="Only goals with an earlier deadline")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> GoalPage:
    """Newest first; with `channel`, those of that channel and of _global."""
    wanted = GoalFilter(GoalStatus(status) if status else None, parent_id, due_before)
    listed = await goals.list_goals(scope, wanted, res, after=cursors.decode(cursor), limit=limit + 1)
    page, last = cursors.cut(listed, limit)
    now = res.clock()
    return GoalPage(
        results=[goal_response(goal, now) for goal in page],
        next_cursor=cursors.encode(last.created_at, last.id) if last else None,
    )


@router.get(
    "/{id}",
    summary="Get a goal with its parent, blockers, subgoals and memories",
    response_model=GoalDetailsResponse,
    responses=errors.keyed(400, 404),
    dependencies=IN_SCOPE,
)
async def get_goal(id: str, caller: Reader, res: ResourcesOf) -> Response:
    """Returns the goal with at most 100 subgoals and memories. The ETag is for If-Match."""
    return send(_details(await goals.read_goal(caller.workspace_id, uuid_of(id, missing), res), now=res.clock()))


@router.patch(
    "/{id}", summary="Change a goal", response_model=GoalDetailsResponse, responses=CHANGE, dependencies=IN_SCOPE
)
async def update_goal(
    id: str, body: UpdateGoalRequest, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """A change that would create a cycle of goals is rejected (409). A closed goal can be edited, not reopened."""
    given: dict[Changeable, Any] = {name: getattr(body, name) for name in body.model_fields_set}  # type: ignore[misc]
    if "status" in given:
        given["status"] = GoalStatus.ACTIVE
    serialize = partial(_details, now=res.clock())
    goal = await goals.revise_goal(
        caller.workspace_id, uuid_of(id, missing), given, res, write.answered_by(serialize), expected=expected
    )
    return send(serialize(goal))


@router.delete(
    "/{id}",
    summary="Delete a goal",
    response_model=DeletedCountResponse,
    responses=errors.keyed(400, 404, 412),
    dependencies=IN_SCOPE,
)
async def delete_goal(id: str, caller: Deleter, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """Also deletes its edges, vector and history. Its subgoals and memories stay."""
    count = await goals.remove_goal(
        caller.workspace_id, uuid_of(id, missing), res, write.answered_by(answer_count), expected=expected
    )
    return send(answer_count(count))


@router.get(
    "/{id}/history", summary="List the changes of a goal", responses=errors.keyed(400, 404), dependencies=IN_SCOPE
)
async def get_goal_history(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    cursor: ReadOn = None,
) -> GoalHistoryResponse:
    """Oldest first, with the values before and after each change."""
    wanted, before = uuid_of(id, missing), cursors.counts(cursor)
    changes = await goals.read_history(caller.workspace_id, wanted, res, skip=before[0], limit=limit + 1)
    (page,), more = cursors.cut_each(before, limit, changes)
    return GoalHistoryResponse(
        results=[
            GoalHistoryItem.of(each, event=each.event.value, changes=dict(each.changes), timestamp=each.recorded_at)
            for each in page
        ],
        next_cursor=more,
    )


@router.post(
    "/{id}/complete",
    summary="Complete or abandon a goal",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=IN_SCOPE,
)
async def complete_goal(
    id: str, body: CompleteGoalRequest, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """Repeating the request changes nothing; 409 if the goal is closed with the other status."""
    return await _close(id, GoalStatus(body.status), caller, res, write, expected=expected, result=body.result)


@router.post(
    "/{id}/abandon",
    summary="Abandon a goal",
    response_model=GoalDetailsResponse,
    responses=CHANGE,
    dependencies=IN_SCOPE,
)
async def abandon_goal(
    id: str, body: AbandonGoalRequest, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """Repeating the request changes nothing; 409 if the goal is completed."""
    return await _close(id, GoalStatus.ABANDONED, caller, res, write, expected=expected, result=body.result)


@router.post(
    "/{id}/block", summary="Block a goal", response_model=GoalDetailsResponse, responses=CHANGE, dependencies=IN_SCOPE
)
async def block_goal(
    id: str, body: BlockGoalRequest, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """It stays blocked until a PATCH makes it active again, even after the goals it waits for are completed."""
    return await _close(
        id,
        GoalStatus.BLOCKED,
        caller,
        res,
        write,
        expected=expected,
        result=body.result,
        blocked_by=tuple(body.blocked_by),
    )


@router.post(
    "/{id}/memories",
    summary="Tie memories to a goal",
    response_model=GoalDetailsResponse,
    responses=errors.keyed(400, 404, 409, 413),
    dependencies=IN_SCOPE,
)
async def tie_memories_to_goal(
    id: str, body: TieMemoriesRequest, caller: Changer, res: ResourcesOf, write: WriteOf
) -> Response:
    """Adds to the memories that are already tied to it."""
    serialize = partial(_details, now=res.clock())
    goal = await goals.tie_memories(
        caller.workspace_id, uuid_of(id, missing), body.memory_ids, res, write.answered_by(serialize)
    )
    return send(serialize(goal))


@router.delete(
    "/{id}/memories/{memory}",
    summary="Untie a memory from a goal",
    response_model=DeletedCountResponse,
    responses=errors.keyed(400, 404),
    dependencies=IN_SCOPE,
)
async def untie_memory_from_goal(id: str, memory: str, caller: Writer, res: ResourcesOf, write: WriteOf) -> Response:
    """Returns 0 if the memory is not tied."""
    context = write.answered_by(answer_count)
    count = await goals.untie_memory(caller.workspace_id, uuid_of(id, missing), parse_id(memory), res, context)
    return send(answer_count(count))


async def _close(
    id: str, status: GoalStatus, caller: Caller, res: Resources, write: WriteContext, **more: Any
) -> Response:
    serialize = partial(_details, now=res.clock())
    goal = await goals.close_goal(
        caller.workspace_id, uuid_of(id, missing), status, res, write.answered_by(serialize), **more
    )
    return send(serialize(goal))


def _details(goal: GoalDetails, *, now: datetime, status: int = 200) -> StoredAnswer:
    return answer(status, goal_details_response(goal, now))

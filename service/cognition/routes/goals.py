"""Routes for goals: create, list, change, close, delete."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from service.cognition import goals
from service.cognition.goals import Changeable
from service.cognition.routes.goal_models import (
    CompleteGoalRequest,
    CreateGoalRequest,
    GoalDetailsResponse,
    GoalPage,
    StatusName,
    UpdateGoalRequest,
    goal_details_response,
    goal_response,
)
from service.cognition.values import GoalDetails, GoalStatus
from service.domain.request import StoredAnswer
from service.http import cursors, errors
from service.http.deps import Changer, Deleter, ListScopeOf, Reader, ResourcesOf, Writer, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf, in_scope, uuid_of
from service.http.schemas import DeletedCountResponse
from service.http.writes import CallOf, answer, answer_count, send

router = APIRouter(prefix="/v1/goals", tags=["goals"], route_class=JsonRoute)


IN_SCOPE = [in_scope(goals.find, "goal")]


@router.post(
    "", summary="Set a goal", status_code=201, response_model=GoalDetailsResponse, responses=errors.document(404)
)
async def create_goal(body: CreateGoalRequest, caller: Writer, res: ResourcesOf, call: CallOf) -> Response:
    """A goal starts active. While it is active, memories tied or similar to it rank higher in searches of its scope."""
    scope = scope_of(caller, body.scope_ids, body.channel)
    serialize = partial(_details, now=res.clock(), status=201)
    return send(serialize(await goals.add_goal(scope, dict(body), res, call.with_serializer(serialize))))


@router.get("", summary="List the goals of a scope")
async def list_goals(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    status: Annotated[StatusName | None, Query(description="Only goals with this status")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> GoalPage:
    """Newest first; with `channel`, those of that channel and of _global."""
    wanted = GoalStatus(status) if status else None
    found = await goals.list_goals(scope, wanted, res, after=cursors.decode(cursor), limit=limit + 1)
    page, last = cursors.cut(found, limit)
    now = res.clock()
    return GoalPage(
        results=[goal_response(goal, now) for goal in page],
        next_cursor=cursors.pack(last.created_at, last.id) if last else None,
    )


@router.get(
    "/{id}",
    summary="Get a goal with its parent, subgoals and memories",
    response_model=GoalDetailsResponse,
    dependencies=IN_SCOPE,
)
async def get_goal(id: str, caller: Reader, res: ResourcesOf) -> Response:
    """Returns the goal with at most 100 subgoals. The ETag is for If-Match."""
    return send(_details(await goals.read_goal(caller.workspace_id, uuid_of(id, "goal"), res), now=res.clock()))


@router.patch("/{id}", summary="Change a goal", response_model=GoalDetailsResponse, dependencies=IN_SCOPE)
async def update_goal(
    id: str, body: UpdateGoalRequest, caller: Changer, res: ResourcesOf, call: CallOf, expected: ExpectedOf
) -> Response:
    """A change that would create a cycle of goals is rejected (409). A closed goal can be edited, not reopened. A
    blocked one stays blocked until its status is set to active, even after the goals it waits for are completed."""
    given: dict[Changeable, Any] = {name: getattr(body, name) for name in body.model_fields_set}  # type: ignore[misc]
    if body.status is not None:
        given["status"] = GoalStatus(body.status)
    serialize = partial(_details, now=res.clock())
    goal = await goals.revise_goal(
        caller.workspace_id,
        uuid_of(id, "goal"),
        given,
        res,
        call.with_serializer(serialize),
        expected=expected,
    )
    return send(serialize(goal))


@router.delete("/{id}", summary="Delete a goal", response_model=DeletedCountResponse, dependencies=IN_SCOPE)
async def delete_goal(id: str, caller: Deleter, res: ResourcesOf, call: CallOf, expected: ExpectedOf) -> Response:
    """Also deletes its edges and its vector. Its subgoals and memories stay."""
    count = await goals.remove_goal(
        caller.workspace_id, uuid_of(id, "goal"), res, call.with_serializer(answer_count), expected=expected
    )
    return send(answer_count(count))


@router.post(
    "/{id}/complete", summary="Complete or abandon a goal", response_model=GoalDetailsResponse, dependencies=IN_SCOPE
)
async def complete_goal(
    id: str, body: CompleteGoalRequest, caller: Changer, res: ResourcesOf, call: CallOf, expected: ExpectedOf
) -> Response:
    """Repeating the request changes nothing; 409 if the goal is closed with the other status."""
    wanted, status = uuid_of(id, "goal"), GoalStatus(body.status)
    serialize = partial(_details, now=res.clock())
    call = call.with_serializer(serialize)
    goal = await goals.close_goal(caller.workspace_id, wanted, status, body.result, res, call, expected=expected)
    return send(serialize(goal))


def _details(goal: GoalDetails, *, now: datetime, status: int = 200) -> StoredAnswer:
    return answer(status, goal_details_response(goal, now))

"""Routes for goals: create, list, change, close, delete."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from service.cognition import goals
from service.cognition.values import Goal, GoalDetails, GoalStatus
from service.http import errors
from service.http.deps import Changer, CursorOf, Deleter, ListScopeOf, Reader, ResourcesOf, Writer, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, in_scope, uuid_of
from service.http.schemas import (
    ChangeModel,
    Filled,
    Id,
    NextCursor,
    OfAgent,
    OfChannel,
    OfRun,
    OfUser,
    RequestModel,
    ResponseModel,
    ScopeFields,
    Time,
    example,
)
from service.http.writes import CallOf, count_response, sends

GoalText = Annotated[Filled, Field(min_length=1, max_length=4_000)]
Priority = Annotated[int, Field(ge=-1_000, le=1_000, description="Greater comes first")]
Ids = Annotated[list[Id], Field(max_length=100)]


class CreateGoalRequest(ScopeFields):
    """At least one of user_id, agent_id, run_id."""

    model_config = example(user_id="alice", description="Move to Oslo before autumn", priority=5)

    description: GoalText = Field(description="What to achieve")
    priority: Priority = 0
    deadline: Time | None = Field(None, description="A goal still open after it is overdue; default: no deadline")
    parent_id: Id | None = Field(None, description="UUID of the parent goal; default: none")
    blocked_by: Ids = Field(default_factory=list, description="Goals that must be completed first")
    memory_ids: Ids = Field(
        default_factory=list, description="Memories to tie to it; they rank higher while it is active"
    )


class UpdateGoalRequest(ChangeModel):
    """Only the given fields change. Lists replace the stored ones; deadline and parent_id may be null."""

    model_config = example(priority=9, deadline=None)
    nullable = frozenset({"deadline", "parent_id"})

    description: GoalText | None = Field(None, description="What to achieve")
    priority: Priority | None = Field(None, description="Greater comes first")
    deadline: Time | None = Field(None, description="Deadline; null: none")
    parent_id: Id | None = Field(None, description="UUID of the parent goal; null: none")
    blocked_by: Ids | None = Field(None, description="Replaces the list of goals it waits for")
    memory_ids: Ids | None = Field(None, description="Replaces the list of memories tied to it")
    status: Literal["active", "blocked"] | None = Field(
        None, description="blocked: it waits for something, until it is set to active again"
    )


class CompleteGoalRequest(RequestModel):
    """How a goal ended."""

    model_config = example(result="The lease is signed.")

    status: Literal["completed", "abandoned"] = Field("completed", description="abandoned: given up")
    result: GoalText | None = Field(None, description="How it ended")


class GoalResponse(ResponseModel):
    """A goal."""

    id: Id = Field(description="UUID")
    description: str = Field(description="What to achieve, redacted")
    status: GoalStatus = Field(description="completed and abandoned are final")
    priority: int = Field(description="-1,000..1,000, default 0; greater comes first")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    parent_id: Id | None = Field(description="UUID of the parent goal; null: none")
    blocked_by: list[Id] = Field(description="UUIDs of the goals it waits for, including completed ones")
    deadline: Time | None = Field(description="Deadline; null: none")
    overdue: bool = Field(description="Whether it is active or blocked and its deadline has passed")
    result: str | None = Field(description="How it ended; null: unknown")
    version: int = Field(description="Starts at 1, incremented by each change; the ETag")
    created_at: Time = Field(description="When it was set")
    updated_at: Time = Field(description="When it was last changed")
    completed_at: Time | None = Field(description="When it was completed or abandoned; null: still open")


class GoalDetailsResponse(GoalResponse):
    """A goal with its parent, its memories and at most 100 subgoals."""

    parent: GoalResponse | None = Field(description="The parent goal; null: none")
    subgoals: list[GoalResponse] = Field(description="Its subgoals")
    memory_ids: list[Id] = Field(description="UUIDs of the memories tied to it")


class GoalPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[GoalResponse] = Field(description="At most `limit` goals")
    next_cursor: NextCursor = None


def goal_response(goal: Goal, now: datetime) -> GoalResponse:
    return GoalResponse.of(goal, overdue=goal.is_overdue(now))


def goal_details_response(details: GoalDetails) -> GoalDetailsResponse:
    now = details.now
    return GoalDetailsResponse.of(
        details.goal,
        overdue=details.goal.is_overdue(now),
        parent=goal_response(details.parent, now) if details.parent else None,
        subgoals=[goal_response(subgoal, now) for subgoal in details.subgoals],
    )


router = APIRouter(prefix="/v1/goals", tags=["goals"], route_class=JsonRoute)

IN_SCOPE = [in_scope(goals.find, "goal")]


@router.post("", summary="Set a goal", status_code=201, responses=errors.document(404))
@sends(goal_details_response, 201)
async def create_goal(body: CreateGoalRequest, caller: Writer, res: ResourcesOf, call: CallOf) -> GoalDetails:
    """A goal starts active. While it is active, memories tied or similar to it rank higher in searches of its scope."""
    return await goals.add_goal(scope_of(caller, body.scope_ids, body.channel), dict(body), res, call)


@router.get("", summary="List the goals of a scope")
async def list_goals(
    caller: Reader,
    scope: ListScopeOf,
    res: ResourcesOf,
    cursor: CursorOf,
    status: Annotated[GoalStatus | None, Query(description="Only goals with this status")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> GoalPage:
    """Newest first; with `channel`, those of that channel and of _global."""
    newest = await goals.list_goals(scope, status, res, after=cursor.moment_and_id(), limit=limit + 1)
    page, more = cursor.cut(newest, limit, "created_at", "id")
    now = res.clock()
    return GoalPage(
        results=[goal_response(goal, now) for goal in page],
        next_cursor=more,
    )


@router.get("/{id}", summary="Get a goal with its parent, subgoals and memories", dependencies=IN_SCOPE)
@sends(goal_details_response)
async def get_goal(id: str, caller: Reader, res: ResourcesOf) -> GoalDetails:
    """Returns the goal with at most 100 subgoals. The ETag is for If-Match."""
    return await goals.read_goal(caller.workspace_id, uuid_of(id, "goal"), res)


@router.patch("/{id}", summary="Change a goal", dependencies=IN_SCOPE)
@sends(goal_details_response)
async def update_goal(
    id: str, body: UpdateGoalRequest, caller: Changer, res: ResourcesOf, call: VersionedCallOf
) -> GoalDetails:
    """A change that would create a cycle of goals is rejected (409). A closed goal can be edited, not reopened. A
    blocked one stays blocked until its status is set to active, even after the goals it waits for are completed."""
    values = {name: getattr(body, name) for name in body.model_fields_set}  # a dump has times as texts
    return await goals.revise_goal(caller.workspace_id, uuid_of(id, "goal"), values, res, call)


@router.delete("/{id}", summary="Delete a goal", dependencies=IN_SCOPE)
@sends(count_response)
async def delete_goal(id: str, caller: Deleter, res: ResourcesOf, call: VersionedCallOf) -> int:
    """Also deletes its edges and its vector. Its subgoals and memories stay."""
    return await goals.remove_goal(caller.workspace_id, uuid_of(id, "goal"), res, call)


@router.post("/{id}/complete", summary="Complete or abandon a goal", dependencies=IN_SCOPE)
@sends(goal_details_response)
async def complete_goal(
    id: str, body: CompleteGoalRequest, caller: Changer, res: ResourcesOf, call: VersionedCallOf
) -> GoalDetails:
    """Repeating the request changes nothing; 409 if the goal is closed with the other status."""
    return await goals.close_goal(caller.workspace_id, uuid_of(id, "goal"), body.status, body.result, res, call)

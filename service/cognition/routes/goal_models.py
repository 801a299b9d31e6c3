"""Request and response models for goals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from service.cognition.values import Goal, GoalDetails
from service.http.schemas import (
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
    check_null,
    example,
    refuse_null,
)

GoalText = Annotated[Filled, Field(min_length=1, max_length=4_000)]
Priority = Annotated[int, Field(ge=-1_000, le=1_000, description="Greater comes first")]
Ids = Annotated[list[Id], Field(max_length=100)]
StatusName = Literal["active", "completed", "abandoned", "blocked"]


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


NULLABLE = frozenset({"deadline", "parent_id"})
"""Fields that an update may set to null."""


def _update_rules(schema: JsonDict) -> None:
    refuse_null(schema, but=NULLABLE)
    schema["examples"] = [{"priority": 9, "deadline": None}]


class UpdateGoalRequest(RequestModel):
    """Only the given fields change. Lists replace the stored ones; deadline and parent_id may be null."""

    model_config = ConfigDict(json_schema_extra=_update_rules)

    description: GoalText | None = Field(None, description="What to achieve")
    priority: Priority | None = Field(None, description="Greater comes first")
    deadline: Time | None = Field(None, description="Deadline; null: none")
    parent_id: Id | None = Field(None, description="UUID of the parent goal; null: none")
    blocked_by: Ids | None = Field(None, description="Replaces the list of goals it waits for")
    memory_ids: Ids | None = Field(None, description="Replaces the list of memories tied to it")
    status: Literal["active", "blocked"] | None = Field(
        None, description="blocked: it waits for something, until it is set to active again"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_null(self, but=NULLABLE)
        return self


class CompleteGoalRequest(RequestModel):
    """How a goal ended."""

    model_config = example(result="The lease is signed.")

    status: Literal["completed", "abandoned"] = Field("completed", description="abandoned: given up")
    result: GoalText | None = Field(None, description="How it ended")


class GoalResponse(ResponseModel):
    """A goal."""

    id: Id = Field(description="UUID")
    description: str = Field(description="What to achieve, redacted")
    status: StatusName = Field(description="completed and abandoned are final")
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
    return GoalResponse.of(goal, status=goal.status.value, overdue=goal.is_overdue(now))


def goal_details_response(goal: GoalDetails, now: datetime) -> GoalDetailsResponse:
    return GoalDetailsResponse.of(
        goal.goal,
        status=goal.goal.status.value,
        overdue=goal.goal.is_overdue(now),
        parent=goal_response(goal.parent, now) if goal.parent else None,
        subgoals=[goal_response(subgoal, now) for subgoal in goal.subgoals],
        memory_ids=list(goal.goal.memory_ids),
    )

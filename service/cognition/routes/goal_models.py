"""Request and response models for goals."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

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
    """Only the given fields change. `blocked_by` replaces the list; deadline and parent_id may be null."""

    model_config = ConfigDict(json_schema_extra=_update_rules)

    description: GoalText | None = Field(None, description="What to achieve")
    priority: Priority | None = Field(None, description="Greater comes first")
    deadline: Time | None = Field(None, description="Deadline; null: none")
    parent_id: Id | None = Field(None, description="UUID of the parent goal; null: none")
    blocked_by: Ids | None = Field(None, description="Replaces the list of goals it waits for")
    status: Literal["active"] | None = Field(None, description="Reopens a blocked goal")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        check_null(self, but=NULLABLE)
        return self


class CompleteGoalRequest(RequestModel):
    """How a goal ended."""

    model_config = example(result="The lease is signed.")

    status: Literal["completed", "abandoned"] = Field("completed", description="abandoned: given up")
    result: GoalText | None = Field(None, description="How it ended")


class AbandonGoalRequest(RequestModel):
    """How an abandoned goal ended."""

    model_config = example(result="The offer was withdrawn.")

    result: GoalText | None = Field(None, description="How it ended")


class BlockGoalRequest(RequestModel):
    """`blocked_by` adds to the goals it waits for."""

    model_config = example(result="Waits for the visa.")

    result: GoalText | None = Field(None, description="What it waits for")
    blocked_by: Ids = Field(default_factory=list, description="More goals it waits for")


class TieMemoriesRequest(RequestModel):
    """Memories to tie to a goal."""

    model_config = example(memory_ids=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"])

    memory_ids: Annotated[
        list[Id],
        Field(
            min_length=1,
            max_length=100,
            description="UUIDs of memories of the goal's scope",
            examples=[["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]],
        ),
    ]


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
    result: str | None = Field(description="How it ended, or what it waits for; null: unknown")
    version: int = Field(description="Starts at 1, incremented by each change; the ETag")
    created_at: Time = Field(description="When it was set")
    updated_at: Time = Field(description="When it was last changed")
    completed_at: Time | None = Field(description="When it was completed or abandoned; null: still open")


class GoalDetailsResponse(GoalResponse):
    """A goal with its parent, blockers, subgoals and memories; at most 100 of each."""

    parent: GoalResponse | None = Field(description="The parent goal; null: none")
    blockers: list[GoalResponse] = Field(description="Goals it waits for")
    subgoals: list[GoalResponse] = Field(description="Its subgoals")
    memory_ids: list[Id] = Field(description="UUIDs of the memories tied to it")


class GoalPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[GoalResponse] = Field(description="At most `limit` goals")
    next_cursor: NextCursor = None


class GoalHistoryItem(ResponseModel):
    """One change of a goal."""

    version: int = Field(description="Version of the goal after this change")
    event: Literal["ADD", "UPDATE", "COMPLETE", "ABANDON", "BLOCK", "REOPEN"] = Field(
        description="What happened; REOPEN: a blocked goal became active"
    )
    changes: dict[str, list[Any]] = Field(description="By field, [before, after]")
    timestamp: Time = Field(description="When")


class GoalHistoryResponse(ResponseModel):
    """Oldest first."""

    results: list[GoalHistoryItem] = Field(description="At most `limit` changes")
    next_cursor: NextCursor = None


def goal_response(goal: Goal, now: datetime) -> GoalResponse:
    return GoalResponse.of(goal, status=goal.status.value, overdue=goal.is_overdue(now))


def goal_details_response(goal: GoalDetails, now: datetime) -> GoalDetailsResponse:
    return GoalDetailsResponse.of(
        goal.goal,
        status=goal.goal.status.value,
        overdue=goal.goal.is_overdue(now),
        parent=goal_response(goal.parent, now) if goal.parent else None,
        blockers=[goal_response(blocker, now) for blocker in goal.blockers],
        subgoals=[goal_response(subgoal, now) for subgoal in goal.subgoals],
        memory_ids=list(goal.memory_ids),
    )

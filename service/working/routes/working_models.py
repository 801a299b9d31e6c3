"""Request and response models for working memory."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from service.http.free_json import Payload
from service.http.schemas import Id, Name, RequestModel, ResponseModel, Role, Speaker, Text, Time, example
from service.working.values import WorkingEntry

Ttl = Annotated[
    int | None,
    Field(ge=1, le=604_800, description="Lifetime in seconds, at most a week; default: the service's setting (3600)"),
]


class SetWorkingItemRequest(RequestModel):
    """A JSON value to store under a key, replacing the previous value."""

    model_config = example(value={"step": 3}, ttl_seconds=600)

    value: Payload = Field(description="Any JSON; 64 kB at most")
    ttl_seconds: Ttl = None


class AddWorkingTurnRequest(RequestModel):
    """A turn to keep in working memory only, not in the conversation."""

    model_config = example(role="user", content="Book the night train.")

    role: Role = Field(description="user, assistant, system or tool")
    content: Text = Field(description="What was said")
    name: Annotated[Speaker, Field(min_length=1)] | None = Field(None, description="Name of the speaker")
    timestamp: Time | None = Field(None, description="When it was said")
    ttl_seconds: Ttl = None


class PushThoughtRequest(RequestModel):
    """A thought to keep."""

    model_config = example(thought="Ask for the passport number last.")

    thought: Text = Field(description="The agent's thought")
    ttl_seconds: Ttl = None


class SetActiveGoalRequest(RequestModel):
    """The goal of the session: a description, the id of a goal, or both."""

    model_config = example(description="Plan the trip to Oslo")

    goal_id: Id | None = Field(None, description="UUID of a goal")
    description: Text | None = Field(None, description="What the session is working on")
    ttl_seconds: Ttl = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.goal_id is None and self.description is None:
            raise ValueError("description: give a description, a goal_id or both")
        return self


class WorkingEntryResponse(ResponseModel):
    """Common fields of all entries of working memory."""

    version: int = Field(description="Incremented by every change in working memory, never reused; the ETag")
    created_at: Time = Field(description="When it was first set")
    expires_at: Time = Field(description="When it expires")


class WorkingItemResponse(WorkingEntryResponse):
    """A value with its key."""

    key: str = Field(description="As in the path")
    value: JsonValue = Field(description="Any JSON, redacted")


class WorkingTurnResponse(WorkingEntryResponse):
    """A turn in working memory."""

    role: str = Field(description="user, assistant, system, tool, or any other word")
    content: str = Field(description="What was said, redacted")
    name: str | None = Field(description="Name of the speaker; null: not given")
    timestamp: Time | None = Field(description="When it was said; null: not given")
    turn_id: Id | None = Field(description="UUID of the stored turn it was copied from; null: none")
    turn_index: int | None = Field(description="Index of that turn in the conversation, from 0; null: none")


class ThoughtResponse(WorkingEntryResponse):
    """A thought in working memory."""

    thought: str = Field(description="The agent's thought, redacted")


class ActiveGoalResponse(WorkingEntryResponse):
    """The goal of the session."""

    goal_id: Id | None = Field(description="UUID of the goal; null: only a description")
    description: str = Field(description="As given, else that of the goal")


class WorkingTurnList(ResponseModel):
    """Newest first."""

    results: list[WorkingTurnResponse] = Field(description="At most `limit` turns")


class ThoughtList(ResponseModel):
    """Newest first."""

    results: list[ThoughtResponse] = Field(description="At most `limit` thoughts")


class WorkingMemoryResponse(ResponseModel):
    """All entries of a session that have not expired; turns and thoughts newest first."""

    conversation_id: str = Field(description="As in the path")
    user_id: Name | None = Field(description="Owner of the session; null: none")
    agent_id: Name | None = Field(description="Owner of the session; null: none")
    channel: str = Field(description="Channel of the session; default _global")
    turns: list[WorkingTurnResponse] = Field(description="At most 100 unless configured otherwise")
    thoughts: list[ThoughtResponse] = Field(description="At most 100 unless configured otherwise")
    items: dict[str, WorkingItemResponse] = Field(description="By key")
    goal: ActiveGoalResponse | None = Field(description="The goal of the session; null: not set")


def working_turn_response(entry: WorkingEntry) -> WorkingTurnResponse:
    return WorkingTurnResponse.of(entry, **entry.value)


def thought_response(entry: WorkingEntry) -> ThoughtResponse:
    return ThoughtResponse.of(entry, thought=entry.value)


def active_goal_response(entry: WorkingEntry) -> ActiveGoalResponse:
    return ActiveGoalResponse.of(entry, **entry.value)

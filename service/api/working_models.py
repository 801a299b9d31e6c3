"""How does working memory look on the wire?"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from service.api.memory_models import MAX_TEXT
from service.api.schemas import Filled, Id, Name, RequestModel, ResponseModel, Time

Ttl = Annotated[
    int | None,
    Field(ge=1, le=604_800, description="Seconds it is held, up to a week; left out: the service's setting (3600)"),
]


class SetWorkingItemRequest(RequestModel):
    """Any JSON value under a key; the key's former value is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": {"step": 3}, "ttl_seconds": 600}]})

    value: JsonValue = Field(description="Any JSON; 64 kB at most")
    ttl_seconds: Ttl = None


class AddWorkingTurnRequest(RequestModel):
    """A turn to hold, beside what the conversation itself keeps."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "content": "Book the night train."}]})

    role: Annotated[str, Field(min_length=1, max_length=20)] = Field(description="user, assistant, system or tool")
    content: Annotated[Filled, Field(min_length=1, max_length=MAX_TEXT)] = Field(description="What was said")
    name: Annotated[Filled | None, Field(max_length=200)] = Field(
        None, description="Who speaks, when the role does not say it"
    )
    timestamp: Time | None = Field(None, description="When it was said")
    ttl_seconds: Ttl = None


class PushThoughtRequest(RequestModel):
    """A thought to hold."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"thought": "Ask for the passport number last."}]})

    thought: Annotated[Filled, Field(min_length=1, max_length=MAX_TEXT)] = Field(
        description="What goes through the agent's mind"
    )
    ttl_seconds: Ttl = None


class SetActiveGoalRequest(RequestModel):
    """What is being worked on: in words, by the id of a goal, or both."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"description": "Plan the trip to Oslo"}]})

    goal_id: Id | None = Field(None, description="UUID of a goal")
    description: Annotated[Filled | None, Field(min_length=1, max_length=MAX_TEXT)] = Field(
        None, description="What is worked on, in words"
    )
    ttl_seconds: Ttl = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.goal_id is None and self.description is None:
            raise ValueError("description: give a description, a goal_id or both")
        return self


class SetSessionDataRequest(RequestModel):
    """Whatever belongs to the session as a whole; the former data is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": {"locale": "nb-NO"}}]})

    data: dict[str, Any] = Field(description="Whatever belongs to the session")
    ttl_seconds: Ttl = None


class WorkingEntryResponse(ResponseModel):
    """Something held in mind."""

    version: int = Field(description="Grows with every change anywhere in working memory; the ETag")
    created_at: Time = Field(description="When it was first held")
    expires_at: Time = Field(description="From this moment on it is gone")


class WorkingItemResponse(WorkingEntryResponse):
    """A value and its key."""

    key: str = Field(description="As it stands in the path")
    value: JsonValue = Field(description="Any JSON, secrets cut out")


class WorkingTurnResponse(WorkingEntryResponse):
    """A turn that is held."""

    role: str = Field(description="user, assistant, system, tool, or any word it came with")
    content: str = Field(description="What was said, secrets cut out")
    name: str | None = Field(description="Who speaks, where the role does not say it; null: not given")
    timestamp: Time | None = Field(description="When it was said; null: not given")
    turn_id: Id | None = Field(description="UUID of the stored turn that it copies; null: of none")
    turn_index: int | None = Field(description="That turn's place in the conversation, from 0; null: it copies none")


class ThoughtResponse(WorkingEntryResponse):
    """A thought that is held."""

    thought: str = Field(description="What goes through the agent's mind, secrets cut out")


class ActiveGoalResponse(WorkingEntryResponse):
    """What the session works on."""

    goal_id: Id | None = Field(description="UUID of the goal; null: words alone")
    description: str = Field(description="In words; the goal's own where none were given")


class SessionDataResponse(WorkingEntryResponse):
    """Data of the session as a whole."""

    data: dict[str, Any] = Field(description="Whatever belongs to the session, secrets cut out")


class WorkingTurnList(ResponseModel):
    """Newest first."""

    results: list[WorkingTurnResponse] = Field(description="At most `limit` turns")


class ThoughtList(ResponseModel):
    """Newest first."""

    results: list[ThoughtResponse] = Field(description="At most `limit` thoughts")


class WorkingMemoryResponse(ResponseModel):
    """All of a session that has not expired; turns and thoughts newest first."""

    conversation_id: str = Field(description="As it stands in the path")
    user_id: Name | None = Field(description="Whose session; null: nobody's")
    agent_id: Name | None = Field(description="Whose session; null: nobody's")
    channel: str = Field(description="Of the session; default _global")
    turns: list[WorkingTurnResponse] = Field(description="All there are, 100 unless configured otherwise")
    thoughts: list[ThoughtResponse] = Field(description="All there are, 100 unless configured otherwise")
    items: dict[str, WorkingItemResponse] = Field(description="By key")
    goal: ActiveGoalResponse | None = Field(description="What is worked on; null: nothing is set")
    session: SessionDataResponse | None = Field(description="Data of the session as a whole; null: none")

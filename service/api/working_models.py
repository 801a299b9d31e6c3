"""How does working memory look on the wire?"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from service.api.memory_models import MAX_TEXT
from service.api.wire import Body, Filled, Id, Name, Reply, Time

Ttl = Annotated[
    int | None,
    Field(ge=1, le=604_800, description="Seconds it is held, up to a week; left out: the service's setting (3600)"),
]


class ItemIn(Body):
    """Any JSON value under a key; the key's former value is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": {"step": 3}, "ttl_seconds": 600}]})

    value: JsonValue = Field(description="Any JSON; 64 kB at most")
    ttl_seconds: Ttl = None


class WorkingTurnIn(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "user", "content": "Book the night train."}]})

    role: Annotated[str, Field(min_length=1, max_length=20)] = Field(description="user, assistant, system or tool")
    content: Annotated[Filled, Field(min_length=1, max_length=MAX_TEXT)] = Field(description="What was said")
    name: Annotated[Filled | None, Field(max_length=200)] = Field(
        None, description="Who speaks, when the role does not say it"
    )
    timestamp: Time | None = Field(None, description="When it was said")
    ttl_seconds: Ttl = None


class ThoughtIn(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"thought": "Ask for the passport number last."}]})

    thought: Annotated[Filled, Field(min_length=1, max_length=MAX_TEXT)] = Field(
        description="What goes through the agent's mind"
    )
    ttl_seconds: Ttl = None


class ActiveGoalIn(Body):
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


class SessionIn(Body):
    """Whatever belongs to the session as a whole; the former data is gone."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"data": {"locale": "nb-NO"}}]})

    data: dict[str, Any] = Field(description="Whatever belongs to the session")
    ttl_seconds: Ttl = None


class HeldOut(Reply):
    """`version` is the ETag; it never comes again, whatever becomes of the value."""

    version: int
    created_at: Time
    expires_at: Time


class ItemOut(HeldOut):
    key: str
    value: JsonValue


class WorkingTurnOut(HeldOut):
    """`turn_id` and `turn_index` when it is a copy of a stored turn."""

    role: str
    content: str
    name: str | None
    timestamp: Time | None
    turn_id: Id | None
    turn_index: int | None


class ThoughtOut(HeldOut):
    thought: str


class ActiveGoalOut(HeldOut):
    goal_id: Id | None
    description: str


class SessionOut(HeldOut):
    data: dict[str, Any]


class TurnList(Reply):
    """Newest first."""

    results: list[WorkingTurnOut]


class ThoughtList(Reply):
    """Newest first."""

    results: list[ThoughtOut]


class MindOut(Reply):
    """All of a session that has not expired; turns and thoughts newest first."""

    conversation_id: str
    user_id: Name | None
    agent_id: Name | None
    channel: str
    turns: list[WorkingTurnOut]
    thoughts: list[ThoughtOut]
    items: dict[str, ItemOut]
    goal: ActiveGoalOut | None
    session: SessionOut | None


class ClearedOut(Reply):
    deleted: int = Field(examples=[12])

"""How do tools and strategies look on the wire?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from service.api.memory_models import RedactionCount, ScopeFields
from service.api.schemas import (
    Filled,
    Id,
    NextCursor,
    OfAgent,
    OfChannel,
    OfRun,
    OfUser,
    RequestModel,
    ResponseModel,
    Time,
    Unit,
)

Label = Annotated[Filled, Field(min_length=1, max_length=100)]
Words = Annotated[Filled, Field(min_length=1, max_length=4_000)]


class RecordToolInvocationRequest(ScopeFields):
    """One use of a tool. Of user_id, agent_id, run_id and conversation_id at least one; what is left out is the
    conversation's."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "alice",
                    "tool_name": "search_flights",
                    "task_type": "travel",
                    "tool_input": {"from": "OSL", "to": "BGO"},
                    "tool_output": {"found": 12},
                    "success": True,
                    "latency_ms": 340,
                }
            ],
            "anyOf": [{"required": [name]} for name in ("user_id", "agent_id", "run_id", "conversation_id")],
        }
    )

    conversation_id: Id | None = Field(None, description="UUID of the conversation it was used in")
    turn_id: Id | None = Field(None, description="A turn of the conversation, which must be given too")
    tool_name: Label = Field(description="Which tool")
    task_type: Label | None = Field(None, description="Your word for the kind of task; statistics can be asked by it")
    tool_input: JsonValue = Field(description="What it was called with; secrets are cut out")
    tool_output: JsonValue = Field(None, description="What came back; secrets are cut out")
    success: bool = Field(description="Whether it worked")
    latency_ms: Annotated[float | None, Field(ge=0, le=1e9)] = Field(
        None, description="How long it took, in milliseconds"
    )
    error_message: Annotated[Filled | None, Field(min_length=1, max_length=10_000)] = Field(
        None, description="What it said when it failed"
    )
    timestamp: Time | None = Field(None, description="When it was used; left out: now")


class _Use(ResponseModel):
    """What every account of a use of a tool tells."""

    id: int = Field(description="Its number in the log")
    tool_name: str = Field(description="Which tool")
    task_type: str | None = Field(description="Your word for the kind of task; null: none")
    success: bool = Field(description="Whether it worked")
    latency_ms: float | None = Field(description="How long it took, in milliseconds; null: not known")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    conversation_id: Id | None = Field(description="UUID of the conversation it was used in; null: of none")
    turn_id: Id | None = Field(description="UUID of the turn it was used in; null: of none")
    turn_index: int | None = Field(description="That turn's place in the conversation, from 0; null: no turn was named")
    timestamp: Time = Field(description="When it was used")


class RecordedToolInvocationResponse(_Use):
    """What was noted, without what went in and came out."""

    redactions: list[RedactionCount] = Field(
        description="What was cut out of what went in and came out, by kind; empty for nothing"
    )


class ToolInvocationResponse(_Use):
    """One use of a tool, with what went in and came out."""

    tool_input: JsonValue = Field(description="What it was called with, secrets cut out")
    tool_output: JsonValue = Field(description="What came back, secrets cut out; null: nothing was given")
    error_message: str | None = Field(description="What it said when it failed, secrets cut out; null: nothing")
    recorded_at: Time = Field(description="When it was noted")


class ToolInvocationPage(ResponseModel):
    """By the time of recording, the latest first; hand `next_cursor` back to read on."""

    results: list[ToolInvocationResponse] = Field(description="At most `limit` uses")
    next_cursor: NextCursor = None


class ToolResponse(ResponseModel):
    """A tool over all its uses in the workspace; a running total that stays when the log's old parts go."""

    name: str = Field(description="As it was noted")
    usage_count: int = Field(description="How often it was used")
    success_count: int = Field(description="How often it worked, from 0")
    success_rate: float | None = Field(description="success_count / usage_count, 0..1; null: never used")
    avg_latency_ms: float | None = Field(
        description="Mean of the uses whose time is known, in milliseconds; null: of none"
    )
    last_used_at: Time | None = Field(description="When it was last used, by the time of the use; null: never")


class ToolPage(ResponseModel):
    """By name; hand `next_cursor` back to read on."""

    results: list[ToolResponse] = Field(description="At most `limit` tools")
    next_cursor: NextCursor = None


class ToolStatsItem(ToolResponse):
    """A tool over the uses that were asked about. p50 and p95 in ms, interpolated; null when no latency is known."""

    p50_latency_ms: float | None = Field(
        description="Half of the uses took no longer, in milliseconds; null: no time is known"
    )
    p95_latency_ms: float | None = Field(
        description="95 of 100 uses took no longer, in milliseconds; null: no time is known"
    )


class ToolStatsResponse(ResponseModel):
    """The most used first."""

    results: list[ToolStatsItem] = Field(description="One for each tool that was used")


class LearnStrategyRequest(ScopeFields):
    """At least one of user_id, agent_id, run_id."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "alice",
                    "description": "Look for night trains before flights",
                    "context_pattern": "A trip within the country",
                    "task_type": "travel",
                    "tool_sequence": ["search_trains", "search_flights"],
                    "success": True,
                }
            ],
            "anyOf": [{"required": ["user_id"]}, {"required": ["agent_id"]}, {"required": ["run_id"]}],
        }
    )

    description: Words = Field(description="What to do")
    context_pattern: Words | None = Field(None, description="When it fits")
    task_type: Label | None = Field(None, description="Your word for the kind of task it is for")
    tool_sequence: Annotated[list[Label], Field(max_length=50)] = Field(
        default_factory=list, description="Names of tools, in the order of their use"
    )
    from_conversation_id: Id | None = Field(
        None, description="UUID of the conversation it was learned in, where that use counts"
    )
    success: bool | None = Field(True, description="How it went there; null: nobody tried it yet")


class ReinforceStrategyRequest(RequestModel):
    """How a strategy went this time."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True}]})

    success: bool = Field(description="Whether it worked this time")
    conversation_id: Id | None = Field(None, description="UUID of the conversation it was used in, which it remembers")


class StrategyResponse(ResponseModel):
    """A way of doing things, and how often it went well."""

    id: Id = Field(description="UUID")
    description: str = Field(description="What to do, secrets cut out")
    context_pattern: str | None = Field(description="When it fits; null: nobody said")
    task_type: str | None = Field(description="Your word for the kind of task it is for; null: none")
    tool_sequence: list[str] = Field(description="Names of tools, in the order of their use")
    success_count: int = Field(description="How often it worked, from 0")
    failure_count: int = Field(description="How often it did not, from 0")
    success_rate: Unit | None = Field(description="Successes / (successes + failures); null: never tried")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    version: int = Field(description="From 1, one more with each use that is counted; the ETag")
    created_at: Time = Field(description="When it was learned")
    last_used_at: Time | None = Field(description="When a use was last counted; null: never")


class StrategyUseItem(ResponseModel):
    """A conversation it was used in, and whether it went well there."""

    conversation_id: Id = Field(description="UUID")
    success: bool = Field(description="Whether it went well there")


class StrategyDetailsResponse(StrategyResponse):
    """With the conversations it was used in, at most 100."""

    conversations: list[StrategyUseItem] = Field(description="Where it was used")


class LearnStrategyResponse(StrategyDetailsResponse):
    """The strategy that was learned, or reinforced because it was known."""

    event: Literal["ADD", "REINFORCE"] = Field(description="ADD: it is new; REINFORCE: one as good as it was known")


class StrategyPage(ResponseModel):
    """Newest first; hand `next_cursor` back to read on."""

    results: list[StrategyResponse] = Field(description="At most `limit` strategies")
    next_cursor: NextCursor = None


class StrategySearchHit(StrategyResponse):
    """A strategy that fits a task."""

    similarity: float | None = Field(description="The calibrated cosine to the task, 0..1; null without a vector")
    smoothed_rate: float = Field(
        description="(successes + 1) / (successes + failures + 2), above 0 and below 1; 0.5: never tried"
    )
    score: float = Field(description="`similarity` times `smoothed_rate`; without a similarity the rate alone")


class StrategySearchResponse(ResponseModel):
    """The best first."""

    results: list[StrategySearchHit] = Field(description="At most `top_k` strategies")
    warnings: list[str] = Field(description="What could not be asked, each as `code: sentence`", default_factory=list)

"""How do tools and strategies look on the wire?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from service.api.memory_models import RedactionOut, ScopedBody
from service.api.wire import Body, Filled, Id, Reply, Time, Unit

Label = Annotated[Filled, Field(min_length=1, max_length=100)]
Words = Annotated[Filled, Field(min_length=1, max_length=4_000)]


class InvocationIn(ScopedBody):
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


class NotedOut(Reply):
    """What was noted, without what went in and came out."""

    id: int
    tool_name: str
    task_type: str | None
    success: bool
    latency_ms: float | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    conversation_id: Id | None
    turn_id: Id | None
    turn_index: int | None
    timestamp: Time
    redactions: list[RedactionOut]


class InvocationOut(Reply):
    """One use of a tool, with what went in and came out."""

    id: int
    tool_name: str
    task_type: str | None
    tool_input: JsonValue
    tool_output: JsonValue
    success: bool
    latency_ms: float | None
    error_message: str | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    conversation_id: Id | None
    turn_id: Id | None
    turn_index: int | None
    timestamp: Time
    recorded_at: Time


class InvocationPage(Reply):
    """By the time of recording, the latest first; hand `next_cursor` back to read on."""

    results: list[InvocationOut]
    next_cursor: str | None = None


class ToolOut(Reply):
    """A tool over all its uses in the workspace; a running total that stays when the log's old parts go."""

    name: str
    usage_count: int
    success_count: int
    success_rate: float | None
    avg_latency_ms: float | None
    last_used_at: Time | None


class ToolPage(Reply):
    """By name; hand `next_cursor` back to read on."""

    results: list[ToolOut]
    next_cursor: str | None = None


class ToolStatsOut(ToolOut):
    """A tool over the uses that were asked about. p50 and p95 in ms, interpolated; null when no latency is known."""

    p50_latency_ms: float | None
    p95_latency_ms: float | None


class ToolStatsList(Reply):
    """The most used first."""

    results: list[ToolStatsOut]


class StrategyIn(ScopedBody):
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
    from_conversation_id: Id | None = Field(None, description="Where it was learned")
    success: bool | None = Field(True, description="How it went there; null: nobody tried it yet")


class ReinforceIn(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True}]})

    success: bool = Field(description="Whether it worked this time")
    conversation_id: Id | None = Field(None, description="Where it was used")


class StrategyOut(Reply):
    """`success_rate`: successes / (successes + failures), null when it was never tried. `version` is the ETag."""

    id: Id
    description: str
    context_pattern: str | None
    task_type: str | None
    tool_sequence: list[str]
    success_count: int
    failure_count: int
    success_rate: Unit | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str
    version: int
    created_at: Time
    last_used_at: Time | None


class UsedInOut(Reply):
    """A conversation it was used in, and whether it went well there."""

    conversation_id: Id
    success: bool


class StrategyFullOut(StrategyOut):
    """With the conversations it was used in, at most 100."""

    conversations: list[UsedInOut]


class LearnedOut(StrategyFullOut):
    """`event`: ADD for a new one; REINFORCE when one as good as it was known, which counts this use."""

    event: Literal["ADD", "REINFORCE"]


class StrategyPage(Reply):
    """Newest first; hand `next_cursor` back to read on."""

    results: list[StrategyOut]
    next_cursor: str | None = None


class FittingOut(StrategyOut):
    """`score` = `similarity` × `smoothed_rate`; smoothed_rate = (successes + 1) / (tries + 2). Similarity is null
    without an embedder."""

    similarity: float | None
    smoothed_rate: float
    score: float


class FittingList(Reply):
    """The best first."""

    results: list[FittingOut]
    warnings: list[str] = Field(default_factory=list)


class GoneStrategyOut(Reply):
    deleted: int = Field(examples=[1])

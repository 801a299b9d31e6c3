"""Goals; tool invocations, statistics of tools, and strategies; user profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from service.domain.scope import Scope
from service.domain.text import CleanText, RedactionCount
from service.http.schemas import Filled, Id, ResponseModel, ScopeFields, Secretless, Time, Unit, example

GoalStatus = Literal["active", "completed", "abandoned", "blocked"]


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal as stored. `parent_id`: the goal it is a part of; `blocked_by`: the goals it waits for; `memory_ids`: the
    memories tied to it. Ids are sorted."""

    id: UUID
    scope: Scope
    description: CleanText
    status: GoalStatus
    priority: int
    deadline: datetime | None
    result: str | None
    parent_id: UUID | None
    blocked_by: tuple[UUID, ...]
    memory_ids: tuple[UUID, ...]
    version: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None

    @property
    def is_over(self) -> bool:
        """Whether it is completed or abandoned, which is final."""
        return self.status in ("completed", "abandoned")

    def is_overdue(self, now: datetime) -> bool:
        """Whether the deadline has passed while the goal is still active or blocked."""
        return self.deadline is not None and self.deadline <= now and not self.is_over


@dataclass(frozen=True, slots=True)
class GoalDetails:
    """A goal with its parent and its subgoals, as they are `now`."""

    goal: Goal
    parent: Goal | None
    subgoals: tuple[Goal, ...]
    now: datetime


@dataclass(frozen=True, slots=True)
class Invocation:
    """One use of a tool. The database sets `id` and `recorded_at`; `latency_ms` >= 0."""

    scope: Scope
    tool_name: str
    tool_input: Any
    success: bool
    timestamp: datetime
    tool_output: Any = None
    task_type: str | None = None
    latency_ms: float | None = None
    error_message: str | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    turn_index: int | None = None
    id: int = 0
    recorded_at: datetime | None = None
    redactions: tuple[RedactionCount, ...] = ()


class ToolStatsItem(ResponseModel):
    """Statistics of a tool over the selected uses. p50 and p95 are interpolated."""

    name: str = Field(description="Name of the tool, as recorded")
    usage_count: int = Field(description="How often it was used")
    success_count: int = Field(description="How often it worked")
    success_rate: Unit = Field(description="success_count / usage_count")
    avg_latency_ms: float | None = Field(description="Mean of the known latencies, in milliseconds; null: none known")
    p50_latency_ms: float | None = Field(description="Median latency in milliseconds; null: none known")
    p95_latency_ms: float | None = Field(description="95th percentile of latency in milliseconds; null: none known")
    last_used_at: Time = Field(description="When it was last used")


@dataclass(frozen=True, slots=True)
class InvocationFilter:
    """Which invocations to count or list; None: no condition. `since`: by the timestamp the caller gave."""

    task_type: str | None = None
    channel: str | None = None
    tool_name: str | None = None
    conversation_id: UUID | None = None
    since: datetime | None = None


ToolName = Annotated[Filled, Field(min_length=1, max_length=100), Secretless]
StrategyText = Annotated[Filled, Field(min_length=1, max_length=4_000)]


class LearnStrategyRequest(ScopeFields):
    """At least one of user_id, agent_id, run_id."""

    model_config = example(
        user_id="alice",
        description="Look for night trains before flights",
        context_pattern="A trip within the country",
        task_type="travel",
        tool_sequence=["search_trains", "search_flights"],
        success=True,
    )

    description: StrategyText = Field(description="What to do")
    context_pattern: StrategyText | None = Field(None, description="When it fits")
    task_type: ToolName | None = Field(None, description="Your name for the kind of task it is for")
    tool_sequence: Annotated[list[ToolName], Field(max_length=50)] = Field(
        default_factory=list, description="Names of tools, in the order of their use"
    )
    from_conversation_id: Id | None = Field(
        None, description="UUID of the conversation it was learned from; `success` is recorded for it"
    )
    success: bool | None = Field(True, description="Whether it worked there; null: not tried yet")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to do a task: the tools in order, and how often it worked. `conversations`: where it was used, and whether
    it worked there."""

    id: UUID
    scope: Scope
    description: CleanText
    context_pattern: CleanText | None
    task_type: str | None
    tool_sequence: tuple[str, ...]
    success_count: int
    failure_count: int
    version: int
    created_at: datetime
    last_used_at: datetime | None
    conversations: Mapping[UUID, bool] = field(default_factory=dict)

    @property
    def channel(self) -> str:
        return self.scope.channel

    @property
    def success_rate(self) -> float | None:
        """The share of tries that succeeded, 0..1; None if the strategy was never tried."""
        tried = self.success_count + self.failure_count
        return self.success_count / tried if tried else None

    @property
    def smoothed_rate(self) -> float:
        """(successes + 1) / (tries + 2): Laplace's rule of succession (Essai philosophique sur les probabilités, 1814),
        the expected success rate under a uniform prior. 0.5 for a strategy that was never tried, so that one success
        does not beat forty out of fifty."""
        return (self.success_count + 1) / (self.success_count + self.failure_count + 2)

    @property
    def embedded_text(self) -> CleanText:
        """The text that is embedded: when to use the strategy, and what it is."""
        when = self.context_pattern
        return CleanText(f"{when}\n{self.description}") if when else self.description


@dataclass(frozen=True, slots=True)
class StrategyMatch:
    """A strategy found for a task: `score` is `similarity` (0..1; None without a vector, then taken as 1) times the
    smoothed rate."""

    strategy: Strategy
    similarity: float | None
    score: float


class ProfileResponse(ResponseModel):
    """The profile of a user."""

    user_id: str = Field(description="User whose profile it is")
    preferences: dict[str, Any] = Field(description="What the user likes, under names of your own")
    expertise_areas: list[Any] = Field(description="What the user knows well")
    communication_style: dict[str, Any] = Field(description="How to address the user, under names of your own")
    metadata: dict[str, Any] = Field(description="Your own data")
    version: int = Field(description="Starts at 1, incremented by each change; the ETag")
    created_at: Time = Field(description="When it was first set")
    updated_at: Time = Field(description="When it was last changed")

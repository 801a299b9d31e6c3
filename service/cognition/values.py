"""Goals; tool invocations, statistics of tools, and strategies; user profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from service.domain.scope import Scope
from service.domain.text import CleanText, Redaction


class GoalStatus(StrEnum):
    """`is_over`: completed or abandoned, which is final."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"

    @property
    def is_over(self) -> bool:
        return self in (GoalStatus.COMPLETED, GoalStatus.ABANDONED)


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

    def is_overdue(self, now: datetime) -> bool:
        """Whether the deadline has passed while the goal is still active or blocked."""
        return self.deadline is not None and self.deadline <= now and not self.status.is_over


@dataclass(frozen=True, slots=True)
class GoalDetails:
    """A goal with its parent and its subgoals."""

    goal: Goal
    parent: Goal | None
    subgoals: tuple[Goal, ...]


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
    redactions: tuple[Redaction, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolStats:
    """Statistics of a tool over selected uses. Latencies are of the uses whose latency is known; p50 and p95 are
    interpolated."""

    name: str
    usage_count: int
    success_count: int
    avg_latency_ms: float | None
    last_used_at: datetime
    p50_latency_ms: float | None
    p95_latency_ms: float | None

    @property
    def success_rate(self) -> float:
        """The share of uses that succeeded, 0..1."""
        return self.success_count / self.usage_count


@dataclass(frozen=True, slots=True)
class InvocationFilter:
    """Which invocations to count or list; None: no condition. `since`: by the timestamp the caller gave."""

    task_type: str | None = None
    channel: str | None = None
    tool_name: str | None = None
    conversation_id: UUID | None = None
    since: datetime | None = None


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


@dataclass(frozen=True, slots=True)
class Traits:
    """The parts of a profile: the caller's JSON, redacted."""

    preferences: Mapping[str, Any] = field(default_factory=dict)
    expertise_areas: Sequence[Any] = ()
    communication_style: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    user_id: str
    traits: Traits
    version: int
    created_at: datetime
    updated_at: datetime

"""Goals: what a user or an agent wants to achieve, their status and their history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from service.domain.scope import Scope
from service.domain.text import CleanText


class GoalStatus(StrEnum):
    """`is_over`: completed or abandoned, which is final."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"

    @property
    def is_over(self) -> bool:
        return self in (GoalStatus.COMPLETED, GoalStatus.ABANDONED)


class GoalEvent(StrEnum):
    """What happened to a goal, as an entry of its history records it."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    COMPLETE = "COMPLETE"
    ABANDON = "ABANDON"
    BLOCK = "BLOCK"
    REOPEN = "REOPEN"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal as stored. `parent_id`: the goal it is a part of; `blocked_by`: the goals it waits for, sorted by id."""

    id: UUID
    scope: Scope
    description: CleanText
    status: GoalStatus
    priority: int
    deadline: datetime | None
    result: str | None
    parent_id: UUID | None
    blocked_by: tuple[UUID, ...]
    version: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None

    def is_overdue(self, now: datetime) -> bool:
        """Whether the deadline has passed while the goal is still active or blocked."""
        return self.deadline is not None and self.deadline <= now and not self.status.is_over


@dataclass(frozen=True, slots=True)
class GoalDetails:
    """A goal with its parent, the goals it waits for, its subgoals and the memories tied to it."""

    goal: Goal
    parent: Goal | None
    blockers: tuple[Goal, ...]
    subgoals: tuple[Goal, ...]
    memory_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class GoalChange:
    """One entry of a goal's history; `changes`: for each field the value before and after."""

    version: int
    event: GoalEvent
    changes: Mapping[str, Any]
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class GoalFilter:
    """Which goals of a scope to list; None: no condition. `due_before`: only goals with an earlier deadline."""

    status: GoalStatus | None = None
    parent_id: UUID | None = None
    due_before: datetime | None = None

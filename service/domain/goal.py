"""What is to be reached?"""

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
    """A goal is worked on, waits, or is over one way or the other."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    BLOCKED = "blocked"

    @property
    def is_over(self) -> bool:
        return self in (GoalStatus.COMPLETED, GoalStatus.ABANDONED)


class GoalEvent(StrEnum):
    """What a line of a goal's history tells."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    COMPLETE = "COMPLETE"
    ABANDON = "ABANDON"
    BLOCK = "BLOCK"
    REOPEN = "REOPEN"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal as stored. `parent_id`: it is SUBGOAL_OF that one; `blocked_by`: BLOCKED_BY those, by id."""

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
        """Its time is over and it is not."""
        return self.deadline is not None and self.deadline <= now and not self.status.is_over


@dataclass(frozen=True, slots=True)
class GoalDetails:
    """What stands around a goal: what it is part of, what it waits for, its parts, and its memories."""

    goal: Goal
    parent: Goal | None
    blockers: tuple[Goal, ...]
    subgoals: tuple[Goal, ...]
    memory_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class GoalChange:
    """One line of a goal's history; `changes`: by field, the value before and after."""

    version: int
    event: GoalEvent
    changes: Mapping[str, Any]
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class GoalFilter:
    """Which goals of a scope are listed; None: whatever. `due_before`: those with a deadline before it."""

    status: GoalStatus | None = None
    parent_id: UUID | None = None
    due_before: datetime | None = None

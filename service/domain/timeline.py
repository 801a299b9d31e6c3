"""Events of the timeline, of every kind of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class EventKind(StrEnum):
    """The four kinds of memory, named as in the audit."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
    GOAL = "goal"


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A memory, a turn, a strategy or a goal at the time it is about. `importance`: 0..1, 0.5 where not rated. `cosine`
    to the query, if there is one."""

    kind: EventKind
    id: UUID
    event_time: datetime
    summary: str
    importance: float
    access_count: int
    last_accessed: datetime | None
    channel: str
    archived: bool
    metadata: Mapping[str, Any] = field(default_factory=dict)
    cosine: float | None = None

"""What does an agent hold in mind, and where?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from service.domain.scope import GLOBAL_CHANNEL
from service.domain.text import CleanText


class WorkingKind(StrEnum):
    """`item`: named values; `goal` and `session`: one of each in a session."""

    TURN = "turn"
    ITEM = "item"
    THOUGHT = "thought"
    GOAL = "goal"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class WorkingScope:
    """One session of working memory: user, agent, channel and conversation, exactly; an id that is missing is nobody's
    and not everybody's. `conversation_id`: the id of a conversation, or whatever the client calls its session."""

    workspace_id: UUID
    conversation_id: str
    user_id: str | None = None
    agent_id: str | None = None
    channel: str = GLOBAL_CHANNEL

    @property
    def session_id(self) -> UUID:
        """The same for the same four names."""
        return uuid5(NAMESPACE_OID, json.dumps([self.user_id, self.agent_id, self.channel, self.conversation_id]))


@dataclass(frozen=True, slots=True)
class WorkingEntry:
    """One thing held in mind. `version` grows with every change anywhere, so it never comes again."""

    kind: WorkingKind
    key: str
    value: Any
    version: int
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class WorkingTurn:
    """A turn to be held in mind; `turn_id` of the stored turn that it copies, if there is one: it goes with it."""

    role: str
    content: CleanText
    name: str | None = None
    timestamp: datetime | None = None
    turn_id: UUID | None = None
    turn_index: int | None = None

    @property
    def key(self) -> str:
        return str(self.turn_id or uuid4())

    @property
    def value(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "content": self.content,
            "name": self.name,
            "timestamp": self.timestamp.isoformat() if self.timestamp else None,
            "turn_id": str(self.turn_id) if self.turn_id else None,
            "turn_index": self.turn_index,
        }


@dataclass(frozen=True, slots=True)
class WorkingLimits:
    """How long (`ttl_s`, seconds from `now`) something is held, and how many of its kind a session keeps."""

    now: datetime
    ttl_s: float
    keep: int


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """All of a session that has not expired; turns and thoughts newest first."""

    turns: Sequence[WorkingEntry] = ()
    thoughts: Sequence[WorkingEntry] = ()
    items: Mapping[str, WorkingEntry] = field(default_factory=dict)
    goal: WorkingEntry | None = None
    session: WorkingEntry | None = None

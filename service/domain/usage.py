"""Users, agents, runs and channels, and how much each holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

OwnerKind = Literal["user", "agent", "run"]
KINDS: tuple[OwnerKind, ...] = ("user", "agent", "run")


@dataclass(frozen=True, slots=True)
class OwnerUsage:
    """One user, agent or run. `memories` includes the archived; `last_used`: last change or retrieval."""

    kind: OwnerKind
    id: str
    memories: int
    archived: int
    first_used: datetime
    last_used: datetime


@dataclass(frozen=True, slots=True)
class ChannelUsage:
    """Live memories, turns and their conversations in a channel. `last_used`: last write."""

    name: str
    memories: int
    turns: int
    conversations: int
    last_used: datetime

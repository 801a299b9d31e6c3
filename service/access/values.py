"""API keys and the workspaces they belong to, entries of the audit log, and who uses a workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from service.domain.access import NO_DEFAULTS, NO_WALL, Defaults, Right, Wall
from service.domain.request import Operation, Subject


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key; `secret` is shown once and not stored."""

    workspace_id: UUID
    key_id: UUID
    secret: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its secret. `hint`: the last four characters."""

    id: UUID
    name: str
    hint: str
    rights: Sequence[str]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channels: Sequence[str]
    default_user_id: str | None
    default_agent_id: str | None
    default_run_id: str | None
    default_channel: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    old_key_until: datetime | None

    @property
    def wall(self) -> Wall:
        return Wall(self.user_id, self.agent_id, self.run_id, tuple(self.channels))

    @property
    def defaults(self) -> Defaults:
        return Defaults(self.default_user_id, self.default_agent_id, self.default_run_id, self.default_channel)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to issue."""

    name: str
    rights: Sequence[Right]
    wall: Wall = NO_WALL
    defaults: Defaults = NO_DEFAULTS
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    id: UUID
    name: str
    settings: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry as stored."""

    id: UUID
    recorded_at: datetime
    operation: str
    memory_type: str | None
    affected_ids: list[UUID]
    request_id: str | None
    api_key_id: UUID | None
    user_id: str | None
    session_id: str | None
    conversation_id: UUID | None
    source_channel: str | None
    target_channels: list[str]
    query_text: str | None
    result_count: int | None
    latency_ms: float | None
    success: bool
    error_message: str | None
    promoted_from_channel: str | None
    promotion_confidence: float | None
    promotion_access_count: int | None
    promotion_conversation_count: int | None
    config_snapshot: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; None does not filter. `since` inclusive, `until` exclusive."""

    operation: Operation | None = None
    memory_type: Subject | None = None
    memory_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    conversation_id: UUID | None = None
    channel: str | None = None
    request_id: str | None = None
    api_key_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


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

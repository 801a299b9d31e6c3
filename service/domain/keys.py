"""API keys and the workspaces they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.domain.access import NO_DEFAULTS, NO_WALL, Defaults, Right, Wall


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key; `secret` is shown once and kept nowhere."""

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

"""API keys of a workspace, and the kinds of owners of memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from service.domain.access import NO_DEFAULTS, NO_WALL, Defaults, Right, Wall


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key; `secret` is shown once and not stored."""

    workspace_id: UUID
    key_id: UUID
    secret: str


def wall_of(row: Any) -> Wall:
    """The wall of a row of api_key."""
    return Wall(row.user_id, row.agent_id, row.run_id, tuple(row.channels))


def defaults_of(row: Any) -> Defaults:
    return Defaults(row.default_user_id, row.default_agent_id, row.default_run_id, row.default_channel)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to issue."""

    name: str
    rights: Sequence[Right]
    wall: Wall = NO_WALL
    defaults: Defaults = NO_DEFAULTS
    expires_at: datetime | None = None


OwnerKind = Literal["user", "agent", "run"]
KINDS: tuple[OwnerKind, ...] = ("user", "agent", "run")

"""The caller of a request: its rights, its wall and its defaults."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from service.domain.errors import Forbidden
from service.domain.scope import GLOBAL_CHANNEL


class Right(StrEnum):
    """Rights of a key. ADMIN covers its own workspace; OPERATOR may create workspaces."""

    READ = "memory:read"
    WRITE = "memory:write"
    DELETE = "memory:delete"
    SYSTEM = "memory:admin"  # set fields that the service maintains (timestamp, updated_at)
    PURGE = "memory:purge"
    SHARE = "memory:share"  # write memories of the whole workspace
    AUDIT = "audit:read"
    METRICS = "metrics"
    TOKENS = "tokens"  # mint tokens for end users
    ADMIN = "admin"
    OPERATOR = "operator"


IMPLIED: Mapping[Right, frozenset[Right]] = {
    Right.ADMIN: frozenset(
        {Right.READ, Right.WRITE, Right.DELETE, Right.SYSTEM, Right.PURGE, Right.SHARE, Right.AUDIT, Right.TOKENS}
    ),
}


WHOLE_WORKSPACE = frozenset({Right.ADMIN, Right.OPERATOR, Right.AUDIT, Right.METRICS})
"""Rights over a whole workspace, or over several, which a key with a wall cannot have."""


@dataclass(frozen=True, slots=True)
class Wall:
    """The rows that a key is confined to: those with every given id and, if there are channels, in one of them.
    Row-level security enforces it (service/postgres/sql/walls.sql)."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channels: tuple[str, ...] = ()

    @classmethod
    def of(cls, kept: Mapping[str, Any] | None) -> Wall:
        """The wall from stored JSON; None: none."""
        return cls(**{**kept, "channels": tuple(kept["channels"])}) if kept else NO_WALL

    def __bool__(self) -> bool:
        return any((self.user_id, self.agent_id, self.run_id, self.channels))

    def __and__(self, other: Wall) -> Wall:
        """Both walls at once. If ids differ, its own one stays, so check `leaves` before."""
        both = tuple(name for name in self.channels if name in other.channels)
        return Wall(
            self.user_id or other.user_id,
            self.agent_id or other.agent_id,
            self.run_id or other.run_id,
            both if self.channels and other.channels else self.channels or other.channels,
        )

    def leaves(self, within: Wall) -> Iterator[str]:
        """The names of the fields that are not inside another wall."""
        for name in ("user_id", "agent_id", "run_id"):
            outer = getattr(within, name)
            if outer is not None and getattr(self, name) != outer:
                yield name
        if within.channels and not (self.channels and set(self.channels) <= set(within.channels)):
            yield "channels"

    @property
    def digest(self) -> str:
        """A short digest, the same for all keys with the same wall."""
        named = [self.user_id, self.agent_id, self.run_id, sorted(self.channels)]
        return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]

    def own_name(self, name: str) -> str:
        """A name that is unique to this wall, for a stored answer that only this wall may read."""
        return f"{self.digest}:{name}" if self else name


NO_WALL = Wall()


@dataclass(frozen=True, slots=True)
class Defaults:
    """The scope of requests that name none. It restricts nothing."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str | None = None

    def leaves(self, wall: Wall) -> Iterator[str]:
        """The names of the fields that are not inside the wall."""
        for name in ("user_id", "agent_id", "run_id"):
            own, outer = getattr(self, name), getattr(wall, name)
            if own is not None and outer is not None and own != outer:
                yield name
        if self.channel is not None and wall.channels and self.channel not in wall.channels:
            yield "channel"


NO_DEFAULTS = Defaults()


@dataclass(frozen=True, slots=True)
class Caller:
    """The key of a request, which alone determines the workspace."""

    workspace_id: UUID
    key_id: UUID
    rights: frozenset[Right]
    wall: Wall = NO_WALL
    defaults: Defaults = NO_DEFAULTS
    expires_at: datetime | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def may(self, right: Right) -> bool:
        if self.wall and right in WHOLE_WORKSPACE:
            return False
        return right in self.rights or any(right in IMPLIED.get(held, ()) for held in self.rights)

    def ids(
        self, user_id: str | None, agent_id: str | None, run_id: str | None
    ) -> tuple[str | None, str | None, str | None]:
        """User, agent and run of a request: those it names, else the defaults, and always those of the wall. Raises
        Forbidden for an id outside the wall."""
        self.check_ids(user_id, agent_id, run_id)
        own, wall = self.defaults, self.wall
        if user_id is None and agent_id is None and run_id is None:
            user_id, agent_id, run_id = own.user_id, own.agent_id, own.run_id
        return wall.user_id or user_id, wall.agent_id or agent_id, wall.run_id or run_id

    def check_ids(self, user_id: str | None, agent_id: str | None, run_id: str | None) -> None:
        """Raises Forbidden for an id outside the wall."""
        for name, given in (("user_id", user_id), ("agent_id", agent_id), ("run_id", run_id)):
            allowed = getattr(self.wall, name)
            if given is not None and allowed is not None and given != allowed:
                raise Forbidden(f"{name}: this key is restricted to another one.", field=name)

    def check_right(self, given: Right) -> None:
        """Raises Forbidden for a right that it does not have, since it could otherwise extend its own rights."""
        if not self.may(given):
            raise Forbidden(f"This key cannot grant the right {given}, which it does not have.", field="rights")

    def check_wall(self, given: Wall) -> None:
        """Raises Forbidden for a wall that is not inside its own."""
        self.check_ids(given.user_id, given.agent_id, given.run_id)
        self.check_channels(given.channels)

    def check_channels(self, given: Sequence[str]) -> None:
        """Raises Forbidden for a channel outside the wall."""
        if self.wall.channels and not set(given) <= set(self.wall.channels):
            raise Forbidden("channels: this key is restricted to other channels.", field="channels")

    def channel(self, given: str | None) -> str:
        """The channel of a request: the one it names, or the default. Raises Forbidden for one outside the wall."""
        inside = self.wall.channels
        if given is not None and inside and given not in inside:
            raise Forbidden("channel: this key is restricted to other channels.", field="channel")
        return given or self.own_channel or GLOBAL_CHANNEL

    @property
    def own_channel(self) -> str | None:
        """The channel of requests that name none; for a wall of channels, the first. None: no particular one."""
        return self.defaults.channel or next(iter(self.wall.channels), None)

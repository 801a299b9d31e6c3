"""API keys as the service sees them: the caller and its rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class Right(StrEnum):
    """What a key may do. ADMIN covers its own workspace; OPERATOR may make workspaces."""

    READ = "memory:read"
    WRITE = "memory:write"
    DELETE = "memory:delete"
    SYSTEM = "memory:admin"  # set fields that the service keeps (timestamp, updated_at)
    PURGE = "memory:purge"
    SHARE = "memory:share"  # write memories of the whole workspace
    AUDIT = "audit:read"
    METRICS = "metrics"
    ADMIN = "admin"
    OPERATOR = "operator"


IMPLIED: Mapping[Right, frozenset[Right]] = {
    Right.ADMIN: frozenset(
        {Right.READ, Right.WRITE, Right.DELETE, Right.SYSTEM, Right.PURGE, Right.SHARE, Right.AUDIT}
    ),
    Right.OPERATOR: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """A key that was found. The workspace comes from it and from nowhere else; the ids are its default scope."""

    workspace_id: UUID
    key_id: UUID
    rights: frozenset[Right]
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str | None = None
    expires_at: datetime | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def may(self, right: Right) -> bool:
        return right in self.rights or any(right in IMPLIED.get(held, ()) for held in self.rights)

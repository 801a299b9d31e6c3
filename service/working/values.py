"""Working memory: the entries that one session of an agent keeps for a limited time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import NAMESPACE_OID, UUID, uuid5

from service.domain.scope import Scope

WorkingKind = Literal["turn", "item", "thought", "goal"]
"""`item`: values under a key; a session has at most one entry of kind `goal`."""


def session_id(scope: Scope) -> UUID:
    """The session of exactly this user, agent, channel and run. The run is the id of a conversation, or any name the
    client gives its session; a missing id means "no user" or "no agent", not "any"."""
    return uuid5(NAMESPACE_OID, json.dumps([scope.user_id, scope.agent_id, scope.channel, scope.run_id]))


@dataclass(frozen=True, slots=True)
class WorkingEntry:
    """One value in working memory. `version` comes from one sequence for all entries, so it never repeats."""

    kind: WorkingKind
    key: str
    value: Any
    version: int
    created_at: datetime
    expires_at: datetime

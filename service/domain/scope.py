"""The scope of a memory: workspace, user, agent, run and channel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from service.domain.errors import ScopeMissing

GLOBAL_CHANNEL = "_global"
NIL_ID = UUID(int=0)  # before every other id
NIL_WORKSPACE = NIL_ID
ScopeMatch = Literal["all", "any"]


@dataclass(frozen=True, slots=True)
class Scope:
    """A workspace, three hard filters and a soft one.

    `user_id`, `agent_id`, `run_id`: None means "not given". On a write a missing id is stored as NULL; on a read
    only the given ids filter. `channel`: reads look at it and at `_global`. A memory without any id is shared by the
    whole workspace.

    For reads only: `match`, whether a row must have all given ids or one of them; `include_shared`, whether shared
    memories are included, and without any id only these; `every_channel`, no filter by channel, as in a list that names
    none. For a conversation only: `is_run`, whether it was opened for the run that it is named after; otherwise its
    name is that of a session.
    """

    workspace_id: UUID
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str = GLOBAL_CHANNEL
    match: ScopeMatch = "all"
    include_shared: bool = False
    every_channel: bool = False
    is_run: bool = field(default=True, compare=False)

    @property
    def has_owner(self) -> bool:
        """Whether one of the three ids is given."""
        return self.user_id is not None or self.agent_id is not None or self.run_id is not None

    @property
    def is_shared(self) -> bool:
        """For a memory's own scope: whether the memory belongs to the whole workspace."""
        return not self.has_owner

    @property
    def private(self) -> Scope:
        """The scope without shared memories, for turns, goals and strategies, which are never shared. A scope of only
        shared memories stays as it is and has none of these."""
        return replace(self, include_shared=False) if self.include_shared and self.has_owner else self

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a row of exactly this scope."""
        ids = {"workspace_id": self.workspace_id, "user_id": self.user_id, "agent_id": self.agent_id}
        return {**ids, "run_id": self.run_id, "channel": self.channel}

    def require_owner(self) -> Scope:
        """Returns itself; raises ScopeMissing when none of the three ids is given."""
        if not self.has_owner:
            raise ScopeMissing
        return self

    def has_ids(self, *, user_id: str | None, agent_id: str | None, run_id: str | None) -> bool:
        """Whether every given id (not None) is that of this scope; shared memories belong to everyone. The name of
        a session counts as a run only with its user."""
        if run_id is not None and user_id is None and not self.is_run:
            return False
        pairs = ((user_id, self.user_id), (agent_id, self.agent_id), (run_id, self.run_id))
        return self.is_shared or all(given is None or given == own for given, own in pairs)

    def named(self, name: str | None) -> Scope:
        """The scope of a conversation of this name; it is opened for a run if it is named after the one given here."""
        return replace(self, run_id=name, is_run=name is not None and name == self.run_id)

    def may_link_to(self, other: Scope) -> bool:
        """Whether records of the two scopes may be linked: never across two users, nor across two agents."""
        pairs = ((self.user_id, other.user_id), (self.agent_id, other.agent_id))
        return all(mine is None or theirs is None or mine == theirs for mine, theirs in pairs)

    @property
    def lock_name(self) -> str:
        """The name of the advisory lock of a write: one lock per user, else per agent, else per run, and one for shared
        memories."""
        for letter, owner in (("u", self.user_id), ("a", self.agent_id), ("r", self.run_id)):
            if owner is not None:
                return f"{self.workspace_id}|{letter}:{owner}"
        return f"{self.workspace_id}|shared"


@dataclass(frozen=True, slots=True)
class ScopeSummary:
    """Facts about a scope before it is searched. `rows`: counted up to `count_to` + 1, since no strategy needs more.
    `speakers`: the names sent by clients, the first 200 in alphabetical order. `has_turns`: whether it has turns."""

    rows: int
    speakers: tuple[str, ...]
    has_turns: bool


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a deletion: a scope, one channel of it or (None) all, and memories created up to `upto`, the newest
    committed when it began (None: no limit). `session_id`: only one session."""

    scope: Scope
    channel: str | None
    upto: datetime | None = None
    session_id: str | None = None

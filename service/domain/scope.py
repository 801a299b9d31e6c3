"""The scope of a memory: workspace, user, agent, run and channel."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from service.errors import ScopeMissing

GLOBAL_CHANNEL = "_global"
NIL_WORKSPACE = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Scope:
    """A workspace (the wall), three hard filters and a soft one.

    `user_id`, `agent_id`, `run_id`: None means "not given". On a write a missing id is stored as NULL; on a read
    only the given ids filter. `channel`: reads look at it and at `_global`.
    """

    workspace_id: UUID
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str = GLOBAL_CHANNEL

    def require_owner(self) -> Scope:
        """Returns itself; raises ScopeMissing when none of the three ids is given."""
        if self.user_id is None and self.agent_id is None and self.run_id is None:
            raise ScopeMissing
        return self

    def has_ids(self, *, user_id: str | None, agent_id: str | None, run_id: str | None) -> bool:
        """Whether every id that is given (not None) is the one of this scope."""
        pairs = ((user_id, self.user_id), (agent_id, self.agent_id), (run_id, self.run_id))
        return all(given is None or given == here for given, here in pairs)

    def may_link_to(self, other: Scope) -> bool:
        """Whether records of the two scopes may be linked: never across two users, nor across two agents."""
        pairs = ((self.user_id, other.user_id), (self.agent_id, other.agent_id))
        return all(one is None or two is None or one == two for one, two in pairs)

    @property
    def lock_name(self) -> str:
        """The text behind the advisory lock of one write: one lock per user, else per agent, else per run."""
        owner = f"u:{self.user_id}" if self.user_id is not None else None
        owner = owner or (f"a:{self.agent_id}" if self.agent_id is not None else None)
        return f"{self.workspace_id}|{owner or f'r:{self.run_id}'}"

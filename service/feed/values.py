"""Values of the change feed, which has the changes of a workspace's memories in one order for all readers, and of
webhooks.

To mirror the memories, a reader removes those that were deleted or erased and writes `memory` for every other kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

ChangeKind = Literal[
    "memory.added",
    "memory.updated",
    "memory.ended",
    "memory.archived",
    "memory.restored",
    "memory.deleted",
    "memory.erased",
]
"""What happened to a memory. `ended`: it is not valid from some moment on; `erased`: it is gone with its history."""


@dataclass(frozen=True, slots=True, order=True)
class FeedPosition:
    """The position of an entry in the order of the feed; nothing is before (0, 0)."""

    position: int = 0
    seq: int = 0

    @property
    def id(self) -> str:
        """The change's id for readers."""
        return f"{self.position}-{self.seq}"


FEED_START = FeedPosition()


@dataclass(frozen=True, slots=True)
class FeedCursor:
    """How far a reader has come: everything up to `at`, as of `moment`, in the tables identified by `source`, which a
    restore from a dump creates again."""

    source: str
    at: FeedPosition
    moment: datetime


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The state that determines the kind of a change. `hidden`: a past version, or waiting for a review; readers do not
    see it."""

    archived: bool
    hidden: bool
    t_invalid: datetime | None


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One change. `memory`: columns of the memory as the change left it; None if it is gone."""

    at: FeedPosition
    event: ChangeKind
    memory_id: UUID
    changed_at: datetime
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    memory: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        return self.at.id


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Changes in order. `end`: the cursor after them."""

    entries: tuple[FeedEntry, ...]
    end: FeedCursor
    has_more: bool


def kind_of(before: MemoryState | None, after: MemoryState | None) -> ChangeKind | None:
    """The kind of a change between two states, as seen by a reader; None if not visible."""
    was = None if before is None or before.hidden else before
    now = None if after is None or after.hidden else after
    if now is None:
        return None if was is None else "memory.deleted"
    if was is None:
        return "memory.added"
    if was.archived != now.archived:
        return "memory.archived" if now.archived else "memory.restored"
    if now.t_invalid is not None and (was.t_invalid is None or now.t_invalid < was.t_invalid):
        return "memory.ended"
    return "memory.updated"


DeliveryState = Literal["waiting", "delivered", "dead", "dropped"]
"""States of a delivery. `dead`: given up until the webhook is enabled again; `dropped`: its change was erased."""

TEST_EVENT = "webhook.test"
MAX_WEBHOOKS = 20
"""The most webhooks of a workspace."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """`events`: the events it receives; none: all. `failing_since`: every delivery since then has failed, `failures` of
    them; none is tried before `retry_at`, because the last one failed or is in progress. `position`, `seq`: the place
    in the change feed up to which deliveries exist."""

    id: UUID
    url: str
    description: str | None
    events: Sequence[ChangeKind]
    enabled: bool
    disabled_reason: str | None
    secret: str
    failures: int
    failing_since: datetime | None
    retry_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime
    position: int
    seq: int

    @property
    def at(self) -> FeedPosition:
        return FeedPosition(self.position, self.seq)


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """The delivery of one change to one webhook. `status`: the receiver's last answer; None: no answer."""

    id: UUID
    webhook_id: UUID
    position: int
    seq: int
    event: ChangeKind
    memory_id: UUID
    state: DeliveryState
    attempts: int
    status: int | None
    error: str | None
    created_at: datetime
    attempted_at: datetime | None
    finished_at: datetime | None

    @property
    def at(self) -> FeedPosition:
        return FeedPosition(self.position, self.seq)

    @property
    def change_id(self) -> str:
        return self.at.id

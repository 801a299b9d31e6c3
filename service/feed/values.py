"""Values of the change feed, which has the changes of a workspace's memories in one order for all readers, and of
webhooks.

To mirror the memories, a reader removes those that were deleted or erased and writes `memory` for every other kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from service.domain.kinds import MemoryType
from service.http.schemas import Id, Metadata, OfAgent, OfChannel, OfRun, OfUser, ResponseModel, Time

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


class ChangedMemory(ResponseModel):
    """A memory after a change, without the values that change by use, ageing and jobs."""

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, redacted", examples=["Prefers tea over coffee in the morning"])
    type: MemoryType = Field(description="One of seven types", examples=["Preference"])
    fact_confidence: float | None = Field(
        description="0..1; null for memories not extracted from a conversation", examples=[0.9]
    )
    importance: float = Field(description="0..1", examples=[0.6])
    tags: list[str] = Field(description="Lower case; 100 at most", examples=[["drink", "morning:tea"]])
    categories: list[str] = Field(description="What it is about, lower case", examples=[["food"]])
    metadata: Metadata = Field(description="Your own data", examples=[{"project": "atlas"}])
    timestamp: Time = Field(description="When it was said or happened")
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    expires_at: Time | None = Field(description="When it expires; null: never")
    archived: bool = Field(description="Whether it is archived")
    version: int = Field(description="Incremented by each change", examples=[2])
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was last changed")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    session_id: str | None = Field(description="The session_id it was stored with; null: none", examples=["session-1"])


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One change. `memory`: as the change left it; None if it is gone."""

    at: FeedPosition
    event: ChangeKind
    memory_id: UUID
    changed_at: datetime
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    memory: ChangedMemory | None = None

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


class WebhookItem(ResponseModel):
    """A webhook, without its secret."""

    id: Id = Field(description="UUID")
    url: str = Field(description="Where changes are sent", examples=["https://example.com/loxodon"])
    events: list[ChangeKind] = Field(description="Events that are sent; empty: all")
    description: str | None = Field(description="Description, for people; null: none", examples=["CRM copy"])
    enabled: bool = Field(description="Whether changes are sent")
    disabled_reason: str | None = Field(
        description="Why the service disabled it: only failures for days, or status 410; null: it did not",
        examples=["The receiver answered 410 Gone."],
    )
    failing_since: Time | None = Field(description="Since when every delivery has failed; null: the last one succeeded")
    retry_at: Time | None = Field(description="When failed deliveries are sent again; null: at once")
    delivered_at: Time | None = Field(description="When a delivery was last accepted; null: never")
    created_at: Time = Field(description="When it was created")


class Webhook(WebhookItem):
    """A webhook as stored. `failures`: of retries, since `failing_since`. `busy_until`: a delivery is in progress.
    `position`, `seq`: the place in the change feed up to which deliveries exist."""

    busy_until: Time | None
    secret: str
    failures: int
    position: int
    seq: int

    @property
    def at(self) -> FeedPosition:
        return FeedPosition(self.position, self.seq)


class DeliveryItem(ResponseModel):
    """The delivery of one change to a webhook."""

    id: Id = Field(description="UUID, sent as webhook-id")
    event: ChangeKind = Field(description="What happened")
    change_id: str = Field(description="`id` of the change in the feed", examples=["7512-48"])
    memory_id: Id = Field(description="UUID")
    state: DeliveryState = Field(
        description="waiting: for its first or another attempt; delivered; dead: given up until the webhook is "
        "enabled again; dropped: the memory has been erased"
    )
    attempts: int = Field(description="Number of requests sent")
    status: int | None = Field(description="Status of the last response; null: no response", examples=[500])
    error: str | None = Field(description="Why the last attempt failed; null: not failed")
    created_at: Time = Field(description="When it was created")
    attempted_at: Time | None = Field(description="When it was last sent; null: not yet")
    finished_at: Time | None = Field(description="When it was delivered, given up or dropped; null: waiting")


class WebhookDelivery(DeliveryItem):
    """A delivery as stored, with the place of its change in the feed."""

    position: int
    seq: int

    @property
    def at(self) -> FeedPosition:
        return FeedPosition(self.position, self.seq)

"""Webhooks, which receive changes, and the deliveries to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from service.domain.feed import ChangeKind, FeedPosition

DeliveryState = Literal["waiting", "delivered", "dead", "dropped"]
"""`dead`: given up, until the webhook is enabled again; `dropped`: what it was to tell has been erased."""

TEST_EVENT = "webhook.test"
MAX_WEBHOOKS = 20
"""Of a workspace."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """`events`: what it receives; none: everything. `failing_since`: every delivery since has failed, `failures` of
    them; none is tried before `retry_at`, because the last one failed or is in progress. `position`, `seq`: the place
    in the change feed up to which deliveries exist."""

    id: UUID
    url: str
    description: str | None
    events: tuple[str, ...]
    enabled: bool
    disabled_reason: str | None
    secret: str
    old_secret: str | None
    old_secret_until: datetime | None
    failures: int
    failing_since: datetime | None
    retry_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime
    position: int
    seq: int

    def secrets_at(self, moment: datetime) -> tuple[str, ...]:
        """What a delivery is signed with, the newest first."""
        if self.old_secret and self.old_secret_until and moment < self.old_secret_until:
            return self.secret, self.old_secret
        return (self.secret,)


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """One change on its way to one webhook. `status`: what the receiver answered last; None: nothing."""

    id: UUID
    webhook_id: UUID
    at: FeedPosition
    event: ChangeKind
    memory_id: UUID
    state: DeliveryState
    attempts: int
    status: int | None
    error: str | None
    created_at: datetime
    attempted_at: datetime | None
    finished_at: datetime | None

"""Webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import and_, delete, func, insert, select, text, update
from uuid_utils.compat import uuid7

from service.domain.job import LONG_MAX_ATTEMPTS
from service.feed.values import DeliveryState, FeedEntry, FeedPosition, Webhook, WebhookDelivery
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.tables import WEBHOOK, WEBHOOK_DELIVERY

FIND = text("SELECT workspace_id, id FROM find_webhooks(:most)")

SCHEDULE = text("""
    WITH moved AS (
        UPDATE job SET run_after = now() + make_interval(secs => :wait_s)
        WHERE workspace_id = :workspace AND kind = 'deliver_webhook' AND state = 'ready'
          AND payload ->> 'webhook_id' = :webhook
        RETURNING 1
    )
    INSERT INTO job (workspace_id, id, kind, payload, max_attempts, run_after)
    SELECT :workspace, :id, 'deliver_webhook', jsonb_build_object('webhook_id', CAST(:webhook AS text)), :attempts,
           now() + make_interval(secs => :wait_s)
    WHERE NOT EXISTS (SELECT FROM moved)
""")

COLUMNS = [WEBHOOK.c[name] for name in Webhook.model_fields]
CHANGE_ID = func.concat(WEBHOOK_DELIVERY.c.position, "-", WEBHOOK_DELIVERY.c.seq).label("change_id")
DELIVERY = [CHANGE_ID if name == "change_id" else WEBHOOK_DELIVERY.c[name] for name in WebhookDelivery.model_fields]


def _is(workspace_id: UUID, webhook_id: UUID) -> Any:
    return and_(WEBHOOK.c.workspace_id == workspace_id, WEBHOOK.c.id == webhook_id)


def _of(workspace_id: UUID, webhook_id: UUID) -> Any:
    return and_(WEBHOOK_DELIVERY.c.workspace_id == workspace_id, WEBHOOK_DELIVERY.c.webhook_id == webhook_id)


async def find_due(session: Session, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Workspace and id of webhooks with changes to send; for the worker."""
    return [(row.workspace_id, row.id) for row in await session.execute(FIND, {"most": limit})]


async def add(session: Session, values: Mapping[str, Any], after: FeedPosition) -> Webhook:
    """A new webhook for changes after `after`. `values`: url, description, events, secret."""
    row = {"workspace_id": session.workspace_id, "id": uuid7(), "position": after.position, "seq": after.seq, **values}
    return Webhook.of((await session.execute(insert(WEBHOOK).returning(*COLUMNS), [row])).one())


async def listing(session: Session) -> list[Webhook]:
    """All webhooks of the workspace, oldest first."""
    query = select(*COLUMNS).where(WEBHOOK.c.workspace_id == session.workspace_id).order_by(WEBHOOK.c.id)
    return list(map(Webhook.of, await session.execute(query)))


async def get(session: Session, webhook_id: UUID, *, lock: bool = False) -> Webhook | None:
    query = select(*COLUMNS).where(_is(session.workspace_id, webhook_id))
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return Webhook.of(row) if row else None


async def change(session: Session, webhook_id: UUID, values: Mapping[str, Any]) -> Webhook | None:
    statement = update(WEBHOOK).where(_is(session.workspace_id, webhook_id)).values(**values).returning(*COLUMNS)
    row = (await session.execute(statement)).one_or_none()
    return Webhook.of(row) if row else None


async def remove(session: Session, webhook_id: UUID) -> None:
    """Deletes a webhook with its deliveries."""
    await session.execute(delete(WEBHOOK).where(_is(session.workspace_id, webhook_id)))


async def schedule(session: Session, webhook_id: UUID, *, wait_s: float = 0.0) -> None:
    """Makes the webhook's job due after `wait_s`: the waiting one, or a new one. The caller's transaction has locked
    the webhook, so there is never a second one."""
    values = {"webhook": str(webhook_id), "id": uuid7(), "wait_s": wait_s}
    await session.execute(SCHEDULE, {**values, "attempts": LONG_MAX_ATTEMPTS})


# -- deliveries


async def add_deliveries(session: Session, webhook_id: UUID, entries: Sequence[FeedEntry], end: FeedPosition) -> None:
    """Inserts a delivery for each entry and moves the webhook to `end`."""
    rows = [
        {
            "workspace_id": session.workspace_id,
            "id": uuid7(),
            "webhook_id": webhook_id,
            "position": entry.at.position,
            "seq": entry.at.seq,
            "event": entry.event,
            "memory_id": entry.memory_id,
        }
        for entry in entries
    ]
    if rows:
        await session.execute(insert(WEBHOOK_DELIVERY), rows)
    await change(session, webhook_id, {"position": end.position, "seq": end.seq})


async def next_delivery(session: Session, webhook_id: UUID, *, is_new: bool) -> WebhookDelivery | None:
    """The waiting delivery that was tried longest ago; untried ones come first, and with `is_new` alone. Uses
    ix_webhook_delivery_waiting."""
    query = (
        select(*DELIVERY)
        .where(_of(session.workspace_id, webhook_id), WEBHOOK_DELIVERY.c.state == "waiting")
        .order_by(WEBHOOK_DELIVERY.c.attempted_at.nulls_first(), WEBHOOK_DELIVERY.c.id)
        .limit(1)
    )
    if is_new:
        query = query.where(WEBHOOK_DELIVERY.c.attempted_at.is_(None))
    row = (await session.execute(query)).one_or_none()
    return WebhookDelivery.of(row) if row else None


async def revive(session: Session, webhook_id: UUID) -> None:
    """Makes dead deliveries wait again."""
    dead = _of(session.workspace_id, webhook_id), WEBHOOK_DELIVERY.c.state == "dead"
    values = {"state": "waiting", "attempts": 0, "attempted_at": None, "finished_at": None}
    await session.execute(update(WEBHOOK_DELIVERY).where(*dead).values(**values))


async def deliveries(
    session: Session, webhook_id: UUID, *, state: DeliveryState | None, before: UUID | None, limit: int
) -> list[WebhookDelivery]:
    """Newest first, before the id `before`. Uses ix_webhook_delivery_webhook."""
    query = (
        select(*DELIVERY)
        .where(_of(session.workspace_id, webhook_id))
        .order_by(WEBHOOK_DELIVERY.c.id.desc())
        .limit(limit)
    )
    if state is not None:
        query = query.where(WEBHOOK_DELIVERY.c.state == state)
    if before is not None:
        query = query.where(WEBHOOK_DELIVERY.c.id < before)
    return await direct.page(session, query, None, WebhookDelivery.of)


async def record_attempt(session: Session, delivery_id: UUID, values: Mapping[str, Any]) -> None:
    """Records how an attempt ended."""
    conditions = WEBHOOK_DELIVERY.c.workspace_id == session.workspace_id, WEBHOOK_DELIVERY.c.id == delivery_id
    await session.execute(update(WEBHOOK_DELIVERY).where(*conditions).values(**values))

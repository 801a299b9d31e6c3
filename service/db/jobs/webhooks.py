"""Webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import and_, case, delete, func, insert, select, text, update
from uuid_utils.compat import uuid7

from service.db.engine import Session
from service.db.tables import WebhookDeliveryRow, WebhookRow
from service.domain.feed import FeedEntry, FeedPosition
from service.domain.webhook import DeliveryState, Webhook, WebhookDelivery

FIND = text("SELECT workspace_id, id FROM find_webhooks(:most)")

COLUMNS = [WebhookRow.__table__.c[field.name] for field in fields(Webhook)]
DELIVERY = [
    WebhookDeliveryRow.__table__.c[name]
    for name in (
        "id", "webhook_id", "position", "seq", "event", "memory_id", "state", "attempts", "status", "error",
        "created_at", "attempted_at", "finished_at",
    )
]  # fmt: skip


def _is(workspace_id: UUID, webhook_id: UUID) -> Any:
    return and_(WebhookRow.workspace_id == workspace_id, WebhookRow.id == webhook_id)


def _webhook(row: Any) -> Webhook:
    return Webhook(**{**row._mapping, "events": tuple(row.events)})


def _delivery(row: Any) -> WebhookDelivery:
    return WebhookDelivery(row[0], row[1], FeedPosition(row[2], row[3]), *row[4:])


async def find_due(session: Session, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Workspace and id of webhooks that something is to be told; for the worker."""
    return [(row.workspace_id, row.id) for row in await session.execute(FIND, {"most": limit})]


async def add(session: Session, workspace_id: UUID, values: Mapping[str, Any], after: FeedPosition) -> Webhook:
    """A new webhook, which is told what comes behind `after`. `values`: url, description, events, secret."""
    row = {"workspace_id": workspace_id, "id": uuid7(), "position": after.position, "seq": after.seq, **values}
    return _webhook((await session.execute(insert(WebhookRow).returning(*COLUMNS), [row])).one())


async def count(session: Session, workspace_id: UUID) -> int:
    here = select(func.count()).select_from(WebhookRow).where(WebhookRow.workspace_id == workspace_id)
    return int(await session.scalar(here) or 0)


async def listing(session: Session, workspace_id: UUID) -> list[Webhook]:
    """All of the workspace, oldest first."""
    query = select(*COLUMNS).where(WebhookRow.workspace_id == workspace_id).order_by(WebhookRow.id)
    return [_webhook(row) for row in await session.execute(query)]


async def get(session: Session, workspace_id: UUID, webhook_id: UUID) -> Webhook | None:
    row = (await session.execute(select(*COLUMNS).where(_is(workspace_id, webhook_id)))).one_or_none()
    return None if row is None else _webhook(row)


async def change(session: Session, workspace_id: UUID, webhook_id: UUID, values: Mapping[str, Any]) -> Webhook | None:
    statement = update(WebhookRow).where(_is(workspace_id, webhook_id)).values(**values).returning(*COLUMNS)
    row = (await session.execute(statement)).one_or_none()
    return None if row is None else _webhook(row)


async def remove(session: Session, workspace_id: UUID, webhook_id: UUID) -> None:
    """With its deliveries."""
    await session.execute(delete(WebhookRow).where(_is(workspace_id, webhook_id)))


# -- deliveries


async def lock_place(
    session: Session, workspace_id: UUID, webhook_id: UUID
) -> tuple[FeedPosition, tuple[str, ...]] | None:
    """Up to where deliveries were made, and the events it is told; None for one that is gone, disabled, or locked by
    another worker."""
    query = (
        select(WebhookRow.position, WebhookRow.seq, WebhookRow.events)
        .where(_is(workspace_id, webhook_id), WebhookRow.enabled)
        .with_for_update(skip_locked=True)
    )
    row = (await session.execute(query)).one_or_none()
    return None if row is None else (FeedPosition(row[0], row[1]), tuple(row[2]))


async def add_deliveries(
    session: Session, workspace_id: UUID, webhook_id: UUID, entries: Sequence[FeedEntry], end: FeedPosition
) -> list[UUID]:
    """A delivery for each entry, and the webhook's place behind `end`; returns their ids."""
    rows = [
        {
            "workspace_id": workspace_id,
            "id": uuid7(),
            "webhook_id": webhook_id,
            "position": each.at.position,
            "seq": each.at.seq,
            "event": each.kind,
            "memory_id": each.memory_id,
        }
        for each in entries
    ]
    if rows:
        await session.execute(insert(WebhookDeliveryRow), rows)
    await change(session, workspace_id, webhook_id, {"position": end.position, "seq": end.seq})
    return [UUID(str(row["id"])) for row in rows]


async def delivery(session: Session, workspace_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    here = WebhookDeliveryRow.workspace_id == workspace_id, WebhookDeliveryRow.id == delivery_id
    row = (await session.execute(select(*DELIVERY).where(*here))).one_or_none()
    return None if row is None else _delivery(row)


async def deliveries(
    session: Session,
    workspace_id: UUID,
    webhook_id: UUID,
    *,
    state: DeliveryState | None,
    before: UUID | None,
    limit: int,
) -> list[WebhookDelivery]:
    """The newest first, behind the id `before`. Uses ix_webhook_delivery_webhook."""
    query = (
        select(*DELIVERY)
        .where(WebhookDeliveryRow.workspace_id == workspace_id, WebhookDeliveryRow.webhook_id == webhook_id)
        .order_by(WebhookDeliveryRow.id.desc())
        .limit(limit)
    )
    if state is not None:
        query = query.where(WebhookDeliveryRow.state == state)
    if before is not None:
        query = query.where(WebhookDeliveryRow.id < before)
    return [_delivery(row) for row in await session.execute(query)]


async def note(
    session: Session,
    workspace_id: UUID,
    delivery_id: UUID,
    state: DeliveryState,
    *,
    now: datetime,
    status: int | None = None,
    error: str | None = None,
    attempted: bool = False,
) -> None:
    """How an attempt ended; one that waits may be tried again."""
    values: dict[str, Any] = {"state": state, "status": status, "error": error}
    values["finished_at"] = None if state == "waiting" else now
    if attempted:
        values |= {"attempts": WebhookDeliveryRow.attempts + 1, "attempted_at": now}
    here = WebhookDeliveryRow.workspace_id == workspace_id, WebhookDeliveryRow.id == delivery_id
    await session.execute(update(WebhookDeliveryRow).where(*here).values(**values))


async def failed(
    session: Session, workspace_id: UUID, webhook_id: UUID, *, now: datetime, wait_s: float, disabled: str | None
) -> None:
    """A delivery failed: none is tried for `wait_s`. Of several that were under way together the first counts.
    `disabled`: why the webhook is switched off."""
    waits = and_(WebhookRow.retry_at.is_not(None), WebhookRow.retry_at > now)
    values: dict[str, Any] = {
        "failures": WebhookRow.failures + case((waits, 0), else_=1),
        "failing_since": func.coalesce(WebhookRow.failing_since, now),
        "retry_at": case((waits, WebhookRow.retry_at), else_=now + timedelta(seconds=wait_s)),
    }
    if disabled is not None:
        values |= {"enabled": False, "disabled_reason": disabled}
    await session.execute(update(WebhookRow).where(_is(workspace_id, webhook_id)).values(**values))

"""Creating, changing, testing and deleting webhooks, each with its audit entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.errors import Conflict, InvalidInput, NotFound
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.feed import webhook_sender
from service.feed.statements import feed, webhooks
from service.feed.values import MAX_WEBHOOKS, DeliveryState, Webhook, WebhookDelivery
from service.feed.webhook_sender import WebhookAnswer
from service.feed.webhooks import new_secret, send_test
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction


async def create(workspace_id: UUID, values: Mapping[str, Any], res: Resources, call: Call) -> Webhook:
    """Creates a webhook with a secret, for changes from now on. `values`: url, description and events. Raises
    InvalidInput, or Conflict if there are too many."""
    values = {**_check(values, res), "secret": new_secret()}
    async with plain_transaction(workspace_id, res, call) as write:
        if await webhooks.count(write.session) >= MAX_WEBHOOKS:
            raise Conflict(f"A workspace has at most {MAX_WEBHOOKS} webhooks; delete one.")
        webhook = await webhooks.add(write.session, values, await feed.find_newest(write.session))
        await _audit(write, "create_webhook", webhook.id)
        return webhook


async def list_all(workspace_id: UUID, res: Resources) -> list[Webhook]:
    async with res.db.read(workspace_id) as session:
        return await webhooks.listing(session)


async def read(workspace_id: UUID, webhook_id: UUID, res: Resources) -> Webhook:
    """A webhook. Raises NotFound, as all functions here do that take an id."""
    async with res.db.read(workspace_id) as session:
        return await _get(session, webhook_id)


async def change(workspace_id: UUID, webhook_id: UUID, given: Mapping[str, Any], res: Resources, call: Call) -> Webhook:
    """Changes the given fields. A new `url`, or enabling it, resets the failures and sends dead deliveries again.
    Raises InvalidInput."""
    values = _check(given, res)
    begins_again = "url" in values or values.get("enabled")
    if begins_again:
        values |= {"failures": 0, "failing_since": None, "retry_at": None}
    if "enabled" in values:
        values["disabled_reason"] = None
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        webhook = await _get(session, webhook_id)
        if values:
            webhook = await webhooks.change(session, webhook_id, values) or webhook
            if begins_again:
                await webhooks.revive(session, webhook_id)
                await webhooks.schedule(session, webhook_id)
            await _audit(write, "update_webhook", webhook_id)
        return webhook


async def remove(workspace_id: UUID, webhook_id: UUID, res: Resources, call: Call) -> None:
    """Deletes it with its deliveries."""
    async with plain_transaction(workspace_id, res, call) as write:
        await _get(write.session, webhook_id)
        await webhooks.remove(write.session, webhook_id)
        await _audit(write, "delete_webhook", webhook_id)


async def test(workspace_id: UUID, webhook_id: UUID, res: Resources) -> WebhookAnswer:
    """Sends an event without content; returns the receiver's answer."""
    return await send_test(await read(workspace_id, webhook_id, res), str(uuid7()), res)


async def list_deliveries(
    workspace_id: UUID,
    webhook_id: UUID,
    res: Resources,
    *,
    state: DeliveryState | None,
    before: UUID | None,
    limit: int,
) -> list[WebhookDelivery]:
    """The newest first, after the id `before`."""
    async with res.db.read(workspace_id) as session:
        await _get(session, webhook_id)
        return await webhooks.deliveries(session, webhook_id, state=state, before=before, limit=limit)


def _check(given: Mapping[str, Any], res: Resources) -> dict[str, Any]:
    values = dict(given)
    if "url" in values and (fault := webhook_sender.fault_of(values["url"], res.settings.server.webhook_networks)):
        raise InvalidInput(f"url: {fault}.", field="url")
    if "events" in values:
        values["events"] = list(dict.fromkeys(values["events"]))
    return values


async def _get(session: Session, webhook_id: UUID) -> Webhook:
    webhook = await webhooks.get(session, webhook_id)
    if webhook is None:
        raise NotFound.of("webhook")
    return webhook


async def _audit(write: Write, operation: Operation, webhook_id: UUID) -> None:
    await write.audit(operation, Scope(write.session.workspace_id), [webhook_id], subject="webhook")

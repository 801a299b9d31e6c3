"""Webhooks: changing them, making deliveries from the change feed, and sending these.

A delivery refers to a change whose contents are read when it is sent, so erased changes are not sent. It is signed
according to the Standard Webhooks specification: an HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.errors import Conflict, InvalidInput, NotFound
from service.domain.filters import plain
from service.domain.job import Job
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.feed import webhook_sender
from service.feed.statements import feed, webhooks
from service.feed.values import (
    MAX_WEBHOOKS,
    TEST_EVENT,
    DeliveryState,
    FeedEntry,
    Webhook,
    WebhookDelivery,
)
from service.feed.webhook_sender import WebhookTestResponse
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction


async def create_webhook(workspace_id: UUID, values: Mapping[str, Any], res: Resources, call: Call) -> Webhook:
    """Creates a webhook with a secret, for changes from now on. `values`: url, description and events. Raises
    InvalidInput, or Conflict if there are too many."""
    values = {**_check_fields(values, res), "secret": new_secret()}
    async with plain_transaction(workspace_id, res, call) as write:
        if len(await webhooks.listing(write.session)) >= MAX_WEBHOOKS:
            raise Conflict(f"A workspace can have at most {MAX_WEBHOOKS} webhooks; delete one first.")
        webhook = await webhooks.add(write.session, values, await feed.find_newest(write.session))
        await _audit(write, "create_webhook", webhook.id)
        return webhook


async def list_webhooks(workspace_id: UUID, res: Resources) -> list[Webhook]:
    async with res.db.read(workspace_id) as session:
        return await webhooks.listing(session)


async def read_webhook(workspace_id: UUID, webhook_id: UUID, res: Resources) -> Webhook:
    """A webhook. Raises NotFound, as all functions here do that take an id."""
    async with res.db.read(workspace_id) as session:
        return await _get_webhook(session, webhook_id)


async def change_webhook(
    workspace_id: UUID, webhook_id: UUID, given: Mapping[str, Any], res: Resources, call: Call
) -> Webhook:
    """Changes the given fields. A new `url`, or enabling it, resets the failures and sends dead deliveries again.
    Raises InvalidInput."""
    values = _check_fields(given, res)
    begins_again = "url" in values or values.get("enabled")
    if begins_again:
        values |= {"failures": 0, "failing_since": None, "retry_at": None}
    if "enabled" in values:
        values["disabled_reason"] = None
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        webhook = await _get_webhook(session, webhook_id)
        if values:
            webhook = await webhooks.change(session, webhook_id, values) or webhook
            if begins_again:
                await webhooks.revive(session, webhook_id)
                await webhooks.schedule(session, webhook_id)
            await _audit(write, "update_webhook", webhook_id)
        return webhook


async def remove_webhook(workspace_id: UUID, webhook_id: UUID, res: Resources, call: Call) -> None:
    """Deletes it with its deliveries."""
    async with plain_transaction(workspace_id, res, call) as write:
        await _get_webhook(write.session, webhook_id)
        await webhooks.remove(write.session, webhook_id)
        await _audit(write, "delete_webhook", webhook_id)


async def test_webhook(workspace_id: UUID, webhook_id: UUID, res: Resources) -> WebhookTestResponse:
    """Sends an event without content at once, even to a disabled webhook; returns the receiver's answer."""
    webhook = await read_webhook(workspace_id, webhook_id, res)
    return await _send(webhook, str(uuid7()), TEST_EVENT, res.clock(), {"webhook_id": str(webhook_id)}, res)


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
        await _get_webhook(session, webhook_id)
        return await webhooks.deliveries(session, webhook_id, state=state, before=before, limit=limit)


def _check_fields(given: Mapping[str, Any], res: Resources) -> dict[str, Any]:
    values = dict(given)
    if "url" in values and (fault := webhook_sender.fault_of(values["url"], res.settings.server.webhook_networks)):
        raise InvalidInput(f"url: {fault}.", field="url")
    if "events" in values:
        values["events"] = list(dict.fromkeys(values["events"]))
    return values


async def _get_webhook(session: Session, webhook_id: UUID) -> Webhook:
    webhook = await webhooks.get(session, webhook_id)
    if webhook is None:
        raise NotFound.of("webhook")
    return webhook


async def _audit(write: Write, operation: Operation, webhook_id: UUID) -> None:
    await write.audit(operation, Scope(write.session.workspace_id), [webhook_id], subject="webhook")


log = logging.getLogger(__name__)

PAGE = 200
SECRET_BYTES, SECRET_PREFIX = 32, "whsec_"
TURN_S = 1.0
"""How long one job keeps sending."""

TIMEOUT_S = 10.0
"""The time within which a receiver has to answer."""

MARGIN_S = 5.0
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 600.0
"""The pause after a failure, doubled with each further one."""

ATTEMPTS = 30
"""Attempts at one delivery, some four hours with the pauses above; then it is dead."""

DISABLE_AFTER = timedelta(hours=72)
"""A webhook that has only failed for this long is disabled: a weekend and a Monday."""

GONE = 410
SENT_FIELDS = ("id", "event", "memory_id", "changed_at", "user_id", "agent_id", "run_id")


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, moment: int, body: bytes) -> str:
    """The header webhook-signature. `moment`: seconds since 1970, as in webhook-timestamp."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def payload_of(entry: FeedEntry) -> dict[str, Any]:
    """A change as JSON, with the fields of GET /v1/changes except the cursor."""
    memory = entry.memory and entry.memory.model_dump(mode="json")
    return {**{name: plain(getattr(entry, name)) for name in SENT_FIELDS}, "memory": memory}


# -- making deliveries


async def dispatch(res: Resources, *, at_most: int = 100) -> int:
    """Creates a delivery for each change not sent to webhooks yet, and a job for each webhook; returns how many. The
    webhook's place advances in the same transaction, so no delivery is created twice or skipped."""
    async with res.db.read() as session:
        due = await webhooks.find_due(session, limit=at_most)
    made = 0
    for workspace_id, webhook_id in due:
        more = True
        while more:
            count, more = await _dispatch_page(workspace_id, webhook_id, res)
            made += count
    if made:
        res.wakeup.notify()
    return made


async def _dispatch_page(workspace_id: UUID, webhook_id: UUID, res: Resources) -> tuple[int, bool]:
    """Returns the number of new deliveries, and whether there may be more."""
    async with res.db.begin(workspace_id) as session:
        webhook = await webhooks.get(session, webhook_id, lock=True)
        if webhook is None or not webhook.enabled:
            return 0, False
        entries, end, has_more = await feed.list_entries(session, webhook.at, limit=PAGE)
        if end == webhook.at:
            return 0, False
        wanted = [entry for entry in entries if not webhook.events or entry.event in webhook.events]
        await webhooks.add_deliveries(session, webhook_id, wanted, end)
        if wanted:
            await webhooks.schedule(session, webhook_id, wait_s=_left_s(webhook.busy_until, res))
    return len(wanted), has_more


# -- sending them


async def deliver(job: Job, res: Resources) -> None:
    """Sends the waiting deliveries of a webhook, one after the other. After a second the rest is left to another job,
    so that other webhooks get their turn. If the worker is killed between an answer and its record, the delivery is
    sent again; receivers recognise it by its id."""
    workspace_id, webhook_id = job.workspace_id, UUID(str(job.payload["webhook_id"]))
    until = time.monotonic() + TURN_S
    while await _deliver_next(workspace_id, webhook_id, res):
        if time.monotonic() >= until:
            async with res.db.begin(workspace_id) as session:
                await webhooks.schedule(session, webhook_id)
            return


async def _deliver_next(workspace_id: UUID, webhook_id: UUID, res: Resources) -> bool:
    """Sends one delivery; returns whether there may be more to send now. While it is in progress, `busy_until` keeps
    other workers from the webhook, even if this one is killed, for no longer than a receiver may take. Until `retry_at`
    only new deliveries are sent."""
    async with res.db.begin(workspace_id) as session:
        webhook = await webhooks.get(session, webhook_id, lock=True)
        if webhook is None or not webhook.enabled:
            return False
        busy_s, pause_s = _left_s(webhook.busy_until, res), _left_s(webhook.retry_at, res)
        delivery = None if busy_s else await webhooks.next_delivery(session, webhook_id, is_new=pause_s > 0)
        if delivery is None:
            if wait_s := busy_s or pause_s:
                await webhooks.schedule(session, webhook_id, wait_s=wait_s)
            return False
        entry = await feed.entry_at(session, delivery.at)
        if entry is None:
            error = "The change was erased before delivery."
            erased = {"state": "dropped", "error": error, "finished_at": res.clock()}
            await webhooks.record_attempt(session, delivery.id, erased)
            return True
        busy_until = res.clock() + timedelta(seconds=TIMEOUT_S + MARGIN_S)
        await webhooks.change(session, webhook_id, {"busy_until": busy_until})
    answer = await _send(webhook, str(delivery.id), entry.event, entry.changed_at, payload_of(entry), res)
    now = res.clock()
    disabled = reason_to_disable(webhook, answer, now)
    await _record(workspace_id, webhook, delivery, answer, disabled, now, res)
    _log_change(webhook, answer, disabled)
    return True


def _left_s(moment: datetime | None, res: Resources) -> float:
    """The seconds until a moment; 0 if there is none, or it has passed."""
    return 0.0 if moment is None else max(0.0, (moment - res.clock()).total_seconds())


async def _send(
    webhook: Webhook, message_id: str, event: str, changed_at: datetime, data: dict[str, Any], res: Resources
) -> WebhookTestResponse:
    body = json.dumps({"type": event, "timestamp": changed_at.isoformat(), "data": data}).encode()
    moment = int(res.clock().timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Loxodon",
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": sign(webhook.secret, message_id, moment, body),
    }
    networks = res.settings.server.webhook_networks
    return await webhook_sender.post(webhook.url, body, headers, networks=networks, timeout_s=TIMEOUT_S)


async def _record(
    workspace_id: UUID,
    webhook: Webhook,
    delivery: WebhookDelivery,
    answer: WebhookTestResponse,
    disabled: str | None,
    now: datetime,
    res: Resources,
) -> None:
    """Records how an attempt ended. After a failure the next pause begins, unless one is in progress."""
    wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(webhook.failures, 20))
    is_last = delivery.attempts + 1 >= ATTEMPTS
    state: DeliveryState = "delivered" if answer.accepted else "dead" if is_last else "waiting"
    values: dict[str, Any] = {"failures": 0, "failing_since": None, "retry_at": None, "delivered_at": now}
    if not answer.accepted:
        values = {"failing_since": webhook.failing_since or now}
        if not _left_s(webhook.retry_at, res):
            values |= {"failures": webhook.failures + 1, "retry_at": now + timedelta(seconds=wait_s)}
    if disabled:
        values |= {"enabled": False, "disabled_reason": disabled}
    ended: dict[str, Any] = {"state": state, "status": answer.status, "error": answer.error, "attempted_at": now}
    ended |= {"attempts": delivery.attempts + 1, "finished_at": None if state == "waiting" else now}
    async with res.db.begin(workspace_id) as session:
        await webhooks.change(session, webhook.id, {**values, "busy_until": None})
        await webhooks.record_attempt(session, delivery.id, ended)


def reason_to_disable(webhook: Webhook, answer: WebhookTestResponse, now: datetime) -> str | None:
    """Why this answer disables the webhook; None: it does not."""
    if answer.status == GONE:
        return "The receiver answered 410 Gone."
    if not answer.accepted and webhook.failing_since is not None and now - webhook.failing_since >= DISABLE_AFTER:
        return f"Every delivery failed for {DISABLE_AFTER // timedelta(hours=1)} hours. {answer.error}"
    return None


def _log_change(webhook: Webhook, answer: WebhookTestResponse, disabled: str | None) -> None:
    """Logs when a webhook starts to fail, recovers or is disabled."""
    if disabled:
        log.warning("webhook %s is switched off: %s", webhook.id, disabled)
    elif not answer.accepted and webhook.failing_since is None:
        log.warning("webhook %s has begun to fail, and is tried again: %s", webhook.id, answer.error)
    elif answer.accepted and webhook.failing_since is not None:
        log.info("webhook %s works again after %d failures", webhook.id, webhook.failures)

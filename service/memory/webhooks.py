"""Webhooks: making deliveries out of the change feed, and sending them.

A delivery keeps which change it tells, not what that says: this is read when it is sent, so what was erased meanwhile
is not sent. It is signed as the Standard Webhooks specification does it: an HMAC-SHA256 over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from service.db.jobs import queue, webhooks
from service.db.memories import feed
from service.domain.feed import FeedEntry
from service.domain.job import NewJob
from service.domain.webhook import TEST_EVENT, DeliveryState, Webhook, WebhookDelivery
from service.errors import WebhookDisabled, WebhookFailed, WebhookWaits
from service.providers import webhook_sender
from service.providers.webhook_sender import WebhookAnswer
from service.resources import Resources

PAGE = 200
SECRET_BYTES, SECRET_PREFIX = 32, "whsec_"
FIRST_WAIT_S, LONGEST_WAIT_S = 2.0, 600.0
"""How long a receiver that failed is left alone, doubled with each failure."""

GONE = 410


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, moment: int, body: bytes) -> str:
    """One signature of the header webhook-signature. `moment`: seconds since 1970, as in webhook-timestamp."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.new(key, f"{message_id}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def told(entry: FeedEntry) -> dict[str, Any]:
    """A change as JSON, with the fields of GET /v1/changes but the cursor."""
    memory = None
    if entry.memory is not None:
        memory = {name: _plain(value) for name, value in entry.memory.items()}
    return {
        "id": entry.at.id,
        "event": entry.kind,
        "memory_id": str(entry.memory_id),
        "changed_at": entry.changed_at.isoformat(),
        "user_id": entry.user_id,
        "agent_id": entry.agent_id,
        "run_id": entry.run_id,
        "memory": memory,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


# -- making deliveries


async def dispatch(res: Resources, *, at_most: int = 100) -> int:
    """Makes a delivery with its job for each change that webhooks have not been told; returns how many. The place of a
    webhook moves on in the same transaction, so none is made twice or left out."""
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
    """Deliveries made, and whether there may be more."""
    async with res.db.begin(workspace_id) as session:
        place = await webhooks.lock_place(session, workspace_id, webhook_id)
        if place is None:
            return 0, False
        after, events = place
        found, end, has_more = await feed.entries(session, workspace_id, after, limit=PAGE)
        if end == after:
            return 0, False
        wanted = [each for each in found if not events or each.kind in events]
        ids = await webhooks.add_deliveries(session, workspace_id, webhook_id, wanted, end)
        attempts = res.settings.webhook_attempts
        jobs = [NewJob("deliver_webhook", payload={"delivery_id": str(each)}, max_attempts=attempts) for each in ids]
        await queue.enqueue(session, workspace_id, jobs)
    return len(ids), has_more


# -- sending them


async def deliver(workspace_id: UUID, delivery_id: UUID, res: Resources, *, is_last: bool) -> str:
    """Sends a delivery and notes how it went; returns its state. `is_last`: it is dead when this attempt fails. Raises
    WebhookFailed, WebhookWaits or WebhookDisabled."""
    async with res.db.read(workspace_id) as session:
        delivery = await webhooks.delivery(session, workspace_id, delivery_id)
        webhook = await webhooks.get(session, workspace_id, delivery.webhook_id) if delivery else None
        entry = await feed.entry_at(session, workspace_id, delivery.at) if delivery else None
    if delivery is None or webhook is None or delivery.state in ("delivered", "dropped"):
        return "gone" if delivery is None or webhook is None else delivery.state
    if entry is None:
        async with res.db.begin(workspace_id) as session:
            error = "What it was to tell has been erased."
            await webhooks.note(session, workspace_id, delivery_id, "dropped", now=res.clock(), error=error)
        return "dropped"
    if not webhook.enabled:
        await _note_dead(workspace_id, delivery_id, "The webhook is disabled.", res)
        raise WebhookDisabled("The webhook is disabled; enable it, and retry this job.")
    if webhook.retry_at is not None and (wait_s := (webhook.retry_at - res.clock()).total_seconds()) > 0:
        raise WebhookWaits("The receiver failed a moment ago; this delivery waits.", retry_after_s=wait_s)
    answer = await _send(webhook, str(delivery.id), entry.kind, entry.changed_at, told(entry), res)
    return await _note(workspace_id, webhook, delivery, answer, res, is_last=is_last)


async def send_test(webhook: Webhook, message_id: str, res: Resources) -> WebhookAnswer:
    """Sends an event without content at once, also to a webhook that is disabled."""
    return await _send(webhook, message_id, TEST_EVENT, res.clock(), {"webhook_id": str(webhook.id)}, res)


async def _send(
    webhook: Webhook, message_id: str, event: str, changed_at: datetime, data: dict[str, Any], res: Resources
) -> WebhookAnswer:
    body = json.dumps({"type": event, "timestamp": changed_at.isoformat(), "data": data}).encode()
    moment = int(res.clock().timestamp())
    signed = [sign(secret, message_id, moment, body) for secret in webhook.secrets_at(res.clock())]
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Loxodon",
        "webhook-id": message_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(signed),
    }
    networks, timeout_s = res.settings.webhook_networks, res.settings.webhook_timeout_s
    return await webhook_sender.post(webhook.url, body, headers, networks=networks, timeout_s=timeout_s)


async def _note(
    workspace_id: UUID,
    webhook: Webhook,
    delivery: WebhookDelivery,
    answer: WebhookAnswer,
    res: Resources,
    *,
    is_last: bool,
) -> str:
    now, accepted = res.clock(), answer.is_accepted
    async with res.db.begin(workspace_id) as session:
        state: DeliveryState = "delivered" if accepted else "dead" if is_last else "waiting"
        await webhooks.note(
            session,
            workspace_id,
            delivery.id,
            state,
            now=now,
            status=answer.status,
            error=answer.error,
            attempted=True,
        )
        if accepted:
            healthy = {"failures": 0, "failing_since": None, "retry_at": None, "delivered_at": now}
            await webhooks.change(session, workspace_id, webhook.id, healthy)
            return state
        disabled = _disabled_by(webhook, answer, now, res)
        await webhooks.failed(session, workspace_id, webhook.id, now=now, wait_s=_wait_s(webhook), disabled=disabled)
    raise WebhookFailed(f"The receiver did not accept it: {answer.error}")


def _wait_s(webhook: Webhook) -> float:
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2 ** min(webhook.failures, 20)))


def _disabled_by(webhook: Webhook, answer: WebhookAnswer, now: datetime, res: Resources) -> str | None:
    """Why nothing is sent to it any more after this answer; None: it is tried again."""
    if answer.status == GONE:
        return "The receiver answered 410 Gone."
    limit = timedelta(hours=res.settings.webhook_disable_after_h)
    if webhook.failing_since is not None and now - webhook.failing_since >= limit:
        hours = res.settings.webhook_disable_after_h
        return f"Every delivery failed for {hours:g} hours (LOXODON_WEBHOOK_DISABLE_AFTER_H). {answer.error}"
    return None


async def _note_dead(workspace_id: UUID, delivery_id: UUID, error: str, res: Resources) -> None:
    async with res.db.begin(workspace_id) as session:
        await webhooks.note(session, workspace_id, delivery_id, "dead", now=res.clock(), error=error)

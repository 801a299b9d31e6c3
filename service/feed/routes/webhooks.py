"""Routes for webhooks and their deliveries."""

from __future__ import annotations

from typing import Annotated, get_args
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from service.feed import webhooks
from service.feed.values import MAX_WEBHOOKS, ChangeKind, DeliveryItem, DeliveryState, WebhookItem
from service.feed.webhook_sender import WebhookTestResponse
from service.http import errors
from service.http.deps import Admin, CursorOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import (
    ChangeModel,
    NextCursor,
    OnePage,
    RequestModel,
    ResponseModel,
    Title,
    example,
)
from service.http.writes import UnkeyedCallOf

router = APIRouter(prefix="/v1/webhooks", tags=["changes"], route_class=JsonRoute)

MAX_URL = 2_000
Url = Annotated[str, Field(min_length=1, max_length=MAX_URL, examples=["https://example.com/loxodon"])]
Events = Annotated[
    list[ChangeKind], Field(max_length=len(get_args(ChangeKind)), examples=[["memory.added", "memory.deleted"]])
]


class CreateWebhookRequest(RequestModel):
    """A webhook to create."""

    model_config = example(url="https://example.com/loxodon")

    url: Url = Field(description="https, and not a private address")
    events: Events = Field(default_factory=list, description="Events to send; empty: all")
    description: Title | None = Field(None, description="Description, for people", examples=["CRM copy"])


class UpdateWebhookRequest(ChangeModel):
    """Only the given fields change."""

    model_config = example(enabled=True)
    nullable = frozenset({"description"})

    url: Url | None = Field(None, description="https, and not a private address")
    events: Events | None = Field(None, description="Events to send from now on; empty: all")
    description: Title | None = Field(None, description="Description, for people; null: none")
    enabled: bool | None = Field(None, description="false: send nothing; true: continue with the changes it has missed")


class CreateWebhookResponse(ResponseModel):
    """A webhook with its secret, which is shown only once."""

    secret: str = Field(description="Key for checking signatures; it cannot be shown again", examples=["whsec_Zm9v"])
    webhook: WebhookItem = Field(description="The new webhook")


class WebhooksResponse(ResponseModel):
    """The webhooks of the workspace, oldest first."""

    results: list[WebhookItem] = Field(description=f"At most {MAX_WEBHOOKS} webhooks")
    next_cursor: OnePage = None


class DeliveriesPage(ResponseModel):
    """Newest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[DeliveryItem] = Field(description="At most `limit` deliveries")
    next_cursor: NextCursor = None


@router.post("", summary="Create a webhook", status_code=201, responses=errors.document(409))
async def create_webhook(
    body: CreateWebhookRequest, caller: Admin, res: ResourcesOf, call: UnkeyedCallOf
) -> CreateWebhookResponse:
    """It receives the changes of the whole workspace from now on. Only this response shows the secret."""
    made = await webhooks.create_webhook(caller.workspace_id, dict(body), res, call)
    return CreateWebhookResponse(secret=made.secret, webhook=WebhookItem.of(made))


@router.get("", summary="List the webhooks of the workspace")
async def list_webhooks(caller: Admin, res: ResourcesOf) -> WebhooksResponse:
    """The webhooks are returned without their secrets."""
    found = await webhooks.list_webhooks(caller.workspace_id, res)
    return WebhooksResponse(results=[WebhookItem.of(webhook) for webhook in found])


@router.get("/{id}", summary="Get a webhook")
async def get_webhook(id: str, caller: Admin, res: ResourcesOf) -> WebhookItem:
    """The webhook is returned without its secret; `disabled_reason` says why the service disabled it."""
    wanted = uuid_of(id, "webhook")
    return WebhookItem.of(await webhooks.read_webhook(caller.workspace_id, wanted, res))


@router.patch("/{id}", summary="Change a webhook, or enable it again")
async def update_webhook(
    id: str, body: UpdateWebhookRequest, caller: Admin, res: ResourcesOf, call: UnkeyedCallOf
) -> WebhookItem:
    """A new `url` and `enabled: true` reset the failures and retry dead deliveries. Changes that occur while it is
    disabled are sent once it is enabled."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    wanted = uuid_of(id, "webhook")
    return WebhookItem.of(await webhooks.change_webhook(caller.workspace_id, wanted, given, res, call))


@router.delete("/{id}", summary="Delete a webhook", status_code=204)
async def delete_webhook(id: str, caller: Admin, res: ResourcesOf, call: UnkeyedCallOf) -> None:
    """Also deletes its deliveries; waiting ones are not sent."""
    await webhooks.remove_webhook(caller.workspace_id, uuid_of(id, "webhook"), res, call)


@router.post("/{id}/test", summary="Send a test to a webhook")
async def test_webhook(id: str, caller: Admin, res: ResourcesOf) -> WebhookTestResponse:
    """Sends the event `webhook.test` at once, signed like any other, and returns the result. Disabled webhooks can be
    tested too."""
    return await webhooks.test_webhook(caller.workspace_id, uuid_of(id, "webhook"), res)


@router.get("/{id}/deliveries", summary="List the deliveries of a webhook")
async def list_webhook_deliveries(
    id: str,
    caller: Admin,
    res: ResourcesOf,
    cursor: CursorOf,
    state: Annotated[DeliveryState | None, Query(description="Only deliveries in this state")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> DeliveriesPage:
    """Newest first; kept for 7 days after they finish. Dead ones are retried when the webhook is enabled again."""
    (before,) = cursor.key(UUID) or (None,)
    wanted = uuid_of(id, "webhook")
    deliveries = await webhooks.list_deliveries(
        caller.workspace_id, wanted, res, state=state, before=before, limit=limit + 1
    )
    shown, more = cursor.cut(deliveries, limit, "id")
    return DeliveriesPage(results=list(shown), next_cursor=more)

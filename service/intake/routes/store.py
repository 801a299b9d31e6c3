"""Routes for storing memories: a text, a conversation, or a batch."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Header, Response

from service.domain import sizes
from service.domain.access import Caller
from service.domain.errors import InvalidInput, ServiceError
from service.domain.request import Call, StoredAnswer
from service.http import errors
from service.http.deps import ResourcesOf, Writer
from service.http.json_body import JsonRoute
from service.http.model_budget import with_budget
from service.http.schemas import BatchItemError
from service.http.writes import BatchCallOf, CallOf, of_item, send
from service.intake.routes import operations
from service.intake.routes.store_drafts import list_texts, prepare
from service.intake.routes.store_models import (
    StoreBatchItem,
    StoreBatchRequest,
    StoreBatchResponse,
    StoreRequest,
    StoreResponse,
    llm_usage,
)
from service.intake.store import BatchItem, store, store_batch
from service.runtime.resources import Resources

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

Prefer = Annotated[str | None, Header(max_length=sizes.MAX_HEADER, include_in_schema=False)]
"""`respond-async`: respond before the slow work is done. The OpenAPI document has POST /v1/operations instead: with a
second form of response here, every user of a generated client would have to tell the two apart."""


@router.post(
    "",
    summary="Store a text or a conversation",
    status_code=201,
    response_model=StoreResponse,
    responses={200: {"model": StoreResponse, "description": "Nothing new: a duplicate, an update, or a dry run"}},
)
async def store_memory(
    body: StoreRequest, caller: Writer, res: ResourcesOf, call: CallOf, prefer: Prefer = None
) -> Response:
    """Redacts, embeds, deduplicates and classifies the text, then writes everything in one transaction.

    `content` stores one memory. `messages` stores the facts of a conversation; with `infer=false` the messages
    themselves, one result per message, in order. With `Prefer: respond-async` the response to a single memory does not
    wait for its vector; until then it is found by its words.
    """
    later = prefer is not None and "respond-async" in prefer.lower()
    if later and body.messages is not None and not body.dry_run:
        response = await operations.accept_conversation(body, caller, res, call)
    else:
        res = with_budget(res)
        draft, serialize = await prepare(body, caller, res, later=later)
        call = replace(call.with_serializer(serialize), dry_run=body.dry_run)
        response = send(serialize(await store(draft, res, call)))
    if later and (body.content is not None or not body.dry_run):
        response.headers["Preference-Applied"] = "respond-async"
    return response


@router.post("/batch", summary="Store several texts")
async def store_memories(
    body: StoreBatchRequest, caller: Writer, res: ResourcesOf, call: BatchCallOf
) -> StoreBatchResponse:
    """A failing item does not stop the others; each has its own status. With an Idempotency-Key every item has the key
    `key:index`, so repeating the batch completes what is missing."""
    if len(body.items) > sizes.MAX_BATCH_ITEMS:
        detail = f"items: {len(body.items)} were sent, the maximum is {sizes.MAX_BATCH_ITEMS}."
        raise InvalidInput(detail, field="items")
    sizes.check_texts("items", (text for one in body.items for text in list_texts(one)))
    res = with_budget(res)
    items = await asyncio.gather(*(_item(index, one, caller, res, call) for index, one in enumerate(body.items)))
    answers = await store_batch(items, res, res.context.deadline.lift())
    batch_items = [_batch_item(index, each) for index, each in enumerate(answers)]
    good = sum(item.error is None for item in batch_items)
    usage = llm_usage(res.context.budget.used)
    return StoreBatchResponse(results=batch_items, succeeded=good, failed=len(batch_items) - good, usage=usage)


async def _item(index: int, one: StoreRequest, caller: Caller, res: Resources, call: Call) -> BatchItem | ServiceError:
    try:
        draft, serialize = await prepare(one, caller, res)
    except ServiceError as exc:
        return exc
    return BatchItem(draft, replace(of_item(call, index).with_serializer(serialize), dry_run=one.dry_run))


def _batch_item(index: int, answer: StoredAnswer | ServiceError) -> StoreBatchItem:
    if isinstance(answer, ServiceError):
        problem = BatchItemError.of(answer, status=errors.status_of(answer))
        return StoreBatchItem(index=index, status=problem.status, error=problem)
    stored = StoreResponse.read_again(answer.body)
    return StoreBatchItem(index=index, status=answer.status, results=stored.results)

"""Routes for storing memories: a text, a conversation, or a batch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from typing import Annotated

from fastapi import APIRouter, Header, Response

from service.domain import sizes
from service.domain.access import Caller, Right
from service.domain.decision import Action
from service.domain.errors import InvalidInput, ServiceError
from service.domain.memory import Outcome, StoreResult
from service.domain.request import StoredAnswer, WriteContext
from service.http import errors
from service.http.deps import ResourcesOf, Writer, metered
from service.http.json_body import JsonRoute
from service.http.schemas import BatchItemError
from service.http.writes import BatchOf, WriteOf, answer, of_item, refuse_repeated, send
from service.intake.curate import curate
from service.intake.record import record
from service.intake.routes import operations
from service.intake.routes.store_drafts import conversation_draft, sent_texts, text_draft
from service.intake.routes.store_models import (
    StoreBatchItem,
    StoreBatchRequest,
    StoreBatchResponse,
    StoreOutcome,
    StoreRequest,
    StoreResponse,
    llm_usage,
    stage_timings,
    store_outcome,
)
from service.memories.store import store
from service.memories.store_batch import BatchItem, store_batch
from service.runtime.resources import Resources
from service.runtime.statements.idempotency import Replay

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

BATCH_AT_ONCE = 4

Prefer = Annotated[str | None, Header(max_length=sizes.MAX_HEADER, include_in_schema=False)]
"""`respond-async`: respond before the slow work is done. The OpenAPI document has POST /v1/operations instead: with a
second form of response here, every user of a generated client would have to tell the two apart."""


@router.post(
    "",
    summary="Store a text or a conversation",
    status_code=201,
    response_model=StoreResponse,
    responses={
        200: {"model": StoreResponse, "description": "Nothing new: a duplicate, an update, or a dry run"},
        **errors.keyed(400, 409, 413, 422),
    },
)
async def store_memory(
    body: StoreRequest,
    caller: Writer,
    res: ResourcesOf,
    write: WriteOf,
    prefer: Prefer = None,
) -> Response:
    """Redacts, embeds, deduplicates and classifies the text, then writes everything in one transaction.

    `content` stores one memory. `messages` stores the facts of a conversation; with `infer=false` the messages
    themselves, one result per message, in order. With `Prefer: respond-async` the response to a single memory does not
    wait for its vector; until then it is found by its words.
    """
    later = prefer is not None and "respond-async" in prefer.lower()
    if later and body.messages is not None and not body.dry_run:
        response = await operations.accept_conversation(body, caller, res, write)
    else:
        response = send(await _stored(body, caller, metered(res), write, later=later))
    if later and (body.content is not None or not body.dry_run):
        response.headers["Preference-Applied"] = "respond-async"
    return response


async def _stored(
    body: StoreRequest, caller: Caller, res: Resources, write: WriteContext, *, later: bool = False
) -> StoredAnswer:
    """The response of store for `content`, of curate or record for `messages`.

    With an Idempotency-Key the response is stored in the same transaction, for which the verb gets the serializer.
    """
    if body.messages is None:
        serialize = StoreSerializer(body, res, may_read=caller.may(Right.READ))
        draft = text_draft(body, caller, res, later=later)
        outcome = await store(draft, res, write.answered_by(serialize))
        return serialize(StoreResult((outcome,)))
    conversation, warnings = await conversation_draft(body, caller, res)
    serialize = StoreSerializer(body, res, warnings, may_read=caller.may(Right.READ))
    context = write.answered_by(serialize)
    if body.infer:
        return serialize(await curate(conversation, res, context))
    outcomes = await record(conversation, res, context)
    return serialize(StoreResult(tuple(outcomes)))


@router.post("/batch", summary="Store several texts", responses=errors.keyed(400, 413))
async def store_memories(
    body: StoreBatchRequest, caller: Writer, res: ResourcesOf, write: BatchOf
) -> StoreBatchResponse:
    """A failing item does not stop the others; each has its own status. With an Idempotency-Key every item has the key
    `key:index`, so repeating the batch completes what is missing."""
    if len(body.items) > sizes.MAX_BATCH_ITEMS:
        raise InvalidInput(
            f"items: {len(body.items)} were sent, the maximum is {sizes.MAX_BATCH_ITEMS}.",
            field="items",
        )
    sizes.check_texts("items", (text for one in body.items for text in sent_texts(one)))
    res = metered(res)
    found = await _Batch(caller, res, write, res.context.lift_deadline()).answers(body.items)
    good = sum(each.error is None for each in found)
    usage = llm_usage(res.context.used)
    return StoreBatchResponse(results=found, succeeded=good, failed=len(found) - good, usage=usage)


Answered = StoredAnswer | ServiceError


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the items of a batch share. `ends`: the deadline of each."""

    caller: Caller
    res: Resources
    write: WriteContext
    ends: float | None
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BATCH_AT_ONCE))

    async def answers(self, items: Sequence[StoreRequest]) -> list[StoreBatchItem]:
        """Stores the texts together and each conversation separately."""
        talks = {index: one for index, one in enumerate(items) if one.messages is not None}
        texts = {index: one for index, one in enumerate(items) if one.messages is None}
        stored, talked = await asyncio.gather(
            self._texts(texts), asyncio.gather(*starmap(self._conversation, talks.items()))
        )
        found = stored | dict(zip(talks, talked, strict=True))
        return [_batch_item(index, found[index]) for index in range(len(items))]

    async def _conversation(self, index: int, one: StoreRequest) -> Answered:
        request = of_item(self.write, index)
        try:
            async with self.slots, self.res.until(self.ends) as res:
                await refuse_repeated(request, self.caller.workspace_id, res)
                return await _stored(one, self.caller, res, request)
        except Replay as replay:
            return replay.answer
        except ServiceError as exc:
            return exc

    async def _texts(self, texts: Mapping[int, StoreRequest]) -> dict[int, Answered]:
        prepared = await asyncio.gather(*starmap(self._text, texts.items()))
        found = {index: each for index, each in zip(texts, prepared, strict=True) if not isinstance(each, BatchItem)}
        items = {index: each for index, each in zip(texts, prepared, strict=True) if isinstance(each, BatchItem)}
        results = await store_batch(list(items.values()), self.res, self.ends)
        for (index, item), result in zip(items.items(), results, strict=True):
            if isinstance(result, Outcome):
                assert item.request.serialize is not None, "each text has its serializer"
                found[index] = item.request.serialize(StoreResult((result,)))
            else:
                found[index] = result.answer if isinstance(result, Replay) else result
        return found

    async def _text(self, index: int, one: StoreRequest) -> BatchItem | Answered:
        request = of_item(self.write, index)
        try:
            async with self.slots, self.res.until(self.ends) as res:
                await refuse_repeated(request, self.caller.workspace_id, res)
            serialize = StoreSerializer(one, self.res, may_read=self.caller.may(Right.READ))
            draft = text_draft(one, self.caller, self.res, later=False)
            return BatchItem(draft, request.answered_by(serialize))
        except Replay as replay:
            return replay.answer
        except ServiceError as exc:
            return exc


def _batch_item(index: int, found: Answered) -> StoreBatchItem:
    if isinstance(found, ServiceError):
        problem = BatchItemError(
            status=errors.status_of(found), code=found.code, detail=found.detail, field=found.field
        )
        return StoreBatchItem(index=index, status=problem.status, error=problem)
    stored = StoreResponse.read_again(found.body)
    return StoreBatchItem(index=index, status=found.status, results=stored.results)


class StoreSerializer:
    """Builds the response of a store request once, so that the stored and the sent one are equal, even in timings_ms.
    Without the right to read it omits the text of existing memories."""

    def __init__(
        self, body: StoreRequest, res: Resources, warnings: Sequence[str] = (), *, may_read: bool = True
    ) -> None:
        self._body = body
        self._context = res.context
        self._warnings = warnings
        self._may_read = may_read
        self._began = time.perf_counter()

    @cached_property
    def _total_ms(self) -> float:
        return round((time.perf_counter() - self._began) * 1000, 3)

    def _shown(self, outcome: Outcome) -> StoreOutcome:
        found = store_outcome(outcome)
        if self._may_read or outcome.event is Action.ADD:
            return found
        return found.model_copy(update={"memory": None, "old_memory": None})

    def __call__(self, result: StoreResult) -> StoredAnswer:
        """201 if a row was created, else 200, also for the events of a curated conversation."""
        timings = stage_timings([outcome.draft for outcome in result.outcomes])
        body = StoreResponse(
            results=[self._shown(outcome) for outcome in result.outcomes],
            warnings=[*self._warnings, *result.warnings],
            usage=llm_usage(self._context.used),
            timings_ms={**timings, "total": self._total_ms},
            dry_run=self._body.dry_run,
        )
        curated = self._body.messages is not None and self._body.infer
        added = any(outcome.event is Action.ADD for outcome in result.outcomes)
        return answer(201 if added and not curated and not self._body.dry_run else 200, body)

"""Storing memories: one text, a conversation, or a batch of texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import starmap
from typing import Annotated

from fastapi import APIRouter, Header, Response

from service import deadline
from service.api import errors, narrowing, operations
from service.api.deps import (
    ResourcesOf,
    Writer,
    budget,
    scope_of,
    shared_scope,
)
from service.api.json_body import JsonRoute
from service.api.schemas import embedding_vector, expiry
from service.api.store_models import (
    BatchItemError,
    MessageInput,
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
from service.api.writes import BatchOf, WriteOf, answer, of_item, refuse_repeated, send
from service.db import caches
from service.db.idempotency import Replay
from service.domain import sizes
from service.domain.access import Caller, Right
from service.domain.decision import Action
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.filters import Filter
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import Outcome, StoreResult
from service.domain.request import StoredAnswer, WriteContext
from service.domain.scope import Scope
from service.domain.text import is_blank
from service.errors import Forbidden, InvalidInput, ServiceError, TooLarge
from service.language import tags
from service.memory.curate import curate
from service.memory.deferred import accept
from service.memory.record import ConversationDraft, record
from service.memory.store import store
from service.memory.store_batch import BatchItem, store_batch
from service.providers.budget import Budget
from service.resources import Resources

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

BATCH_AT_ONCE = 4

Prefer = Annotated[
    str | None, Header(max_length=sizes.MAX_HEADER, description="`respond-async`: answer before the slow work is done")
]


@router.post(
    "",
    operation_id="store_memory",
    summary="Store a text or a conversation",
    status_code=201,
    response_model=StoreResponse,
    responses={
        200: {"model": StoreResponse, "description": "Nothing new: a duplicate, an update, or a dry run"},
        202: {"model": operations.AcceptedResponse, "description": "Accepted with Prefer: respond-async"},
        **errors.documented(400, 401, 403, 409, 413, 422, 503),
    },
)
async def store_memory(
    body: StoreRequest,
    caller: Writer,
    res: ResourcesOf,
    write: WriteOf,
    prefer: Prefer = None,
) -> Response:
    """Runs PII, embedding, dedup, importance, temporal, category and type, then writes everything in one transaction.

    `content` makes one memory. `messages` with `infer=false` keeps a conversation as it was said: one result per
    message, in order. With `Prefer: respond-async` a single memory is answered as soon as it is safe and found by
    text; its vector follows.
    """
    later = prefer is not None and "respond-async" in prefer.lower()
    if later and body.messages is not None and not body.dry_run:
        conversation, _ = await _conversation(body, caller, res)
        operation_id = await accept(conversation, res, write.answered_by(operations.accepted))
        response = send(operations.accepted(operation_id))
    else:
        with budget(res) as spending, caches.deferred():
            response = send(await _stored(body, caller, res, write, spending, later=later))
    if later and (body.content is not None or not body.dry_run):
        response.headers["Preference-Applied"] = "respond-async"
    return response


async def _stored(
    body: StoreRequest, caller: Caller, res: Resources, write: WriteContext, spending: Budget, *, later: bool = False
) -> StoredAnswer:
    """The answer of the verb that the body wants: store for `content`, curate or record for `messages`.

    With an Idempotency-Key the verb stores the same answer in its transaction: it gets the serializer for that.
    """
    if body.messages is None:
        serialize = StoreSerializer(body, spending, may_read=caller.may(Right.READ))
        draft = _text_draft(body, caller, res, later=later)
        outcome = await store(draft, res, write.answered_by(serialize))
        return serialize(StoreResult((outcome,)))
    conversation, warnings = await _conversation(body, caller, res)
    serialize = StoreSerializer(body, spending, warnings, may_read=caller.may(Right.READ))
    context = write.answered_by(serialize)
    if body.infer:
        return serialize(await curate(conversation, res, context))
    outcomes = await record(conversation, res, context)
    return serialize(StoreResult(tuple(outcomes)))


@router.post(
    "/batch",
    operation_id="store_memories",
    summary="Store several texts",
    response_model=StoreBatchResponse,
    responses=errors.documented(400, 401, 403, 413, 503),
)
async def store_memories(
    body: StoreBatchRequest, caller: Writer, res: ResourcesOf, write: BatchOf
) -> StoreBatchResponse:
    """An item that fails does not stop the others; each has its own status. With an Idempotency-Key every item
    has the key `key:index`, so a repeated batch completes what is missing."""
    if len(body.items) > res.settings.batch_max_items:
        raise InvalidInput(
            f"items: {len(body.items)} were sent, at most {res.settings.batch_max_items} are taken at once.",
            field="items",
        )
    sizes.check_texts("items", (text for one in body.items for text in _sent_texts(one)))
    ends = deadline.lift()
    with budget(res) as spending, caches.deferred():
        found = await _Batch(caller, res, write, spending, ends).answers(body.items)
    good = sum(each.error is None for each in found)
    return StoreBatchResponse(results=found, succeeded=good, failed=len(found) - good, usage=llm_usage(spending.used))


Answered = StoredAnswer | ServiceError


@dataclass(frozen=True, slots=True)
class _Batch:
    """The request that the items of a batch share. `ends`: the moment by which each is done."""

    caller: Caller
    res: Resources
    write: WriteContext
    spending: Budget
    ends: float | None
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(BATCH_AT_ONCE))

    async def answers(self, items: Sequence[StoreRequest]) -> list[StoreBatchItem]:
        """The texts together, each conversation on its own."""
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
            async with self.slots, deadline.answered_by(self.ends):
                await refuse_repeated(request, self.caller.workspace_id, self.res)
                return await _stored(one, self.caller, self.res, request, self.spending)
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
            async with self.slots, deadline.answered_by(self.ends):
                await refuse_repeated(request, self.caller.workspace_id, self.res)
            serialize = StoreSerializer(one, self.spending, may_read=self.caller.may(Right.READ))
            draft = _text_draft(one, self.caller, self.res, later=False)
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
    stored = StoreResponse.model_validate(found.body)
    return StoreBatchItem(index=index, status=found.status, results=stored.results)


ROLES = frozenset({"system", "user", "assistant", "tool", "developer", "function"})
OWNED_CONVERSATION = (
    "shared: a conversation belongs to a user, an agent or a run. Store what everyone should know as content, or "
    "promote a memory of the conversation with shared."
)
REPEATED = (
    f"metadata: it and the tags are kept with each message, all together more than {sizes.MAX_REPEATED:,} values."
)
ONLY_INFERRED = "{}: is used with messages and infer=true only."


def _text_draft(body: StoreRequest, caller: Caller, res: Resources, *, later: bool) -> Draft:
    """The draft of `content`; raises InvalidInput for fields that only a conversation uses, or Forbidden."""
    assert body.content is not None
    for name in ("updated_at", "last_accessed"):
        if getattr(body, name) is not None and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is kept by the service; allow_system_fields lets you set it.", field=name)
    if body.allow_system_fields and not caller.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")
    for name in ("prompt", "filters"):
        if getattr(body, name) is not None:
            raise InvalidInput(ONLY_INFERRED.format(name), field=name)
    return _draft(body, body.content, None, _scope(body, caller), res, embed_later=later)


async def _conversation(body: StoreRequest, caller: Caller, res: Resources) -> tuple[ConversationDraft, list[str]]:
    """The drafts of `messages`, and warnings about what was left out; raises InvalidInput for fields of one text."""
    if body.shared:
        raise InvalidInput(OWNED_CONVERSATION, field="shared")
    for name in ("id", "embedding", "updated_at", "last_accessed"):
        if getattr(body, name) is not None:
            raise InvalidInput(f"{name}: belongs to one text; it cannot be given with messages.", field=name)
    if body.filters is not None and not body.infer:
        raise InvalidInput(ONLY_INFERRED.format("filters"), field="filters")
    compare = await narrowing.redacted_tree(body.filters, res)
    scope = _scope(body, caller)
    texts, warnings = _texts(body, res)
    if len(texts) * (sizes.count(body.metadata) + tags.levels(tags.normalise(body.tags))) > sizes.MAX_REPEATED:
        raise TooLarge(REPEATED, field="metadata")
    drafts = [_draft(body, text, speech, scope, res, compare=compare) for text, speech in texts]
    if caller.may(Right.DELETE):
        drafts = [replace(each, options=replace(each.options, may_delete=True)) for each in drafts]
    external_id = body.run_id or body.session_id
    return ConversationDraft(scope, drafts, external_id, body.dry_run, body.infer, body.prompt), warnings


def _scope(body: StoreRequest, caller: Caller) -> Scope:
    if body.shared and not caller.may(Right.SHARE):
        raise Forbidden(f"This key lacks the right {Right.SHARE}.", field="shared")
    ids = {"user_id": body.user_id, "agent_id": body.agent_id, "run_id": body.run_id}
    return (shared_scope if body.shared else scope_of)(caller, **ids, channel=body.channel)


def _texts(body: StoreRequest, res: Resources) -> tuple[list[tuple[str, Speech]], list[str]]:
    """The messages that have a text, in order, and warnings; raises InvalidInput when none has, or for too many."""
    messages = body.messages or []
    if isinstance(messages, str):
        messages = [MessageInput(role="user", content=messages, name=None, timestamp=None)]
    limit = res.settings.messages_max_items
    if len(messages) > limit:
        raise InvalidInput(f"messages: {len(messages)} were sent, at most {limit} are taken at once.", field="messages")
    texts: list[tuple[str, Speech]] = []
    warnings: list[str] = []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if message.role not in ROLES:
            warnings.append(f"{path}: role {message.role[:20]!r} is not a known one.")
        text, dropped = _text_of(message)
        if dropped:
            warnings.append(f"{path}: {dropped} parts without text were left out.")
        if is_blank(text):
            warnings.append(f"{path}: has no text and was left out.")
        else:
            texts.append((text, Speech(message.role, message.name, message.timestamp)))
    if not texts:
        raise InvalidInput("messages: none of them has a text.", field="messages")
    sizes.check_texts("messages", (text for text, _ in texts))
    return texts, warnings


def _sent_texts(body: StoreRequest) -> list[str]:
    """All texts of one item."""
    if isinstance(body.messages, list):
        return [_text_of(each)[0] for each in body.messages]
    return [body.messages or body.content or ""]


def _text_of(message: MessageInput) -> tuple[str, int]:
    """The text of a message, and how many of its parts have none."""
    if not isinstance(message.content, list):
        return message.content or "", 0
    texts = [part["text"] for part in message.content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts), len(message.content) - len(texts)


def _draft(
    body: StoreRequest,
    text: str,
    speech: Speech | None,
    scope: Scope,
    res: Resources,
    *,
    embed_later: bool = False,
    compare: Filter | None = None,
) -> Draft:
    settings, now = res.settings, res.clock()
    options = Options(
        dedup=body.dedup,
        use_llm=body.use_llm is not False,
        summarise=body.summarise,
        strict_size=(body.limits or settings.content_limits) == "strict",
        record=speech is not None and not body.infer,
        embed_later=embed_later,
        dry_run=body.dry_run,
    )
    given = replace(_caller_fields(body, res, now), compare=compare)
    return Draft(scope, text, given, options, now, speech)


def _caller_fields(body: StoreRequest, res: Resources, now: datetime) -> CallerFields:
    """What the caller set by hand; raises InvalidInput for a vector of the wrong length or an expiry in the past."""
    level, value = body.importance_level, body.importance
    return CallerFields(
        id=body.id,
        type=MemoryType(body.type) if body.type else None,
        type_confidence=body.confidence if body.type_confidence is None else body.type_confidence,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        tags=tags.split(body.tags),
        metadata=body.metadata,
        timestamp=body.timestamp,
        timezone=body.timezone or res.settings.timezone,
        t_valid=body.t_valid,
        t_invalid=body.t_invalid,
        expires_at=expiry(body.ttl_s, body.expires_at, now),
        embedding=embedding_vector(body.embedding, res.embedder.dimension),
        session_id=body.session_id,
        updated_at=body.updated_at,
        last_accessed=body.last_accessed,
    )


class StoreSerializer:
    """Makes the answer of a store request: the stored one and the one that is sent are the same, also in timings_ms.
    Who may not read gets no text of a memory that was there before."""

    def __init__(
        self, body: StoreRequest, spending: Budget, warnings: Sequence[str] = (), *, may_read: bool = True
    ) -> None:
        self._body = body
        self._spending = spending
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
        """201 when a row was made, else 200, also for the events of a curated conversation."""
        timings = stage_timings([outcome.draft for outcome in result.outcomes])
        body = StoreResponse(
            results=[self._shown(outcome) for outcome in result.outcomes],
            warnings=[*self._warnings, *result.warnings],
            usage=llm_usage(self._spending.used),
            timings_ms={**timings, "total": self._total_ms},
            dry_run=self._body.dry_run,
        )
        curated = self._body.messages is not None and self._body.infer
        added = any(outcome.event is Action.ADD for outcome in result.outcomes)
        return answer(201 if added and not curated and not self._body.dry_run else 200, body)

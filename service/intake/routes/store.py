"""Routes for storing memories: a text, a conversation, or a batch. Bodies become drafts, and results responses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cache
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Response
from pydantic import Field

from service.domain import sizes
from service.domain.access import Caller, Right
from service.domain.decision import Action
from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.errors import Forbidden, InvalidInput, ServiceError, TooLarge
from service.domain.filters import Filter
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import Outcome, StoreResult
from service.domain.request import Call, StoredAnswer
from service.domain.scope import Scope
from service.domain.text import is_blank
from service.http import errors, narrowing
from service.http.deps import ResourcesOf, Writer, scope_of
from service.http.json_body import JsonRoute
from service.http.reads import with_budget
from service.http.schemas import BatchItemError, Id, ResponseModel, embedding_vector, expiry, url_of
from service.http.writes import BatchCallOf, CallOf, answer, of_item, send
from service.intake.conversation import ConversationDraft
from service.intake.deferred import accept
from service.intake.routes.store_models import (
    LlmUsage,
    MessageInput,
    StoreBatchItem,
    StoreBatchRequest,
    StoreBatchResponse,
    StoreOutcome,
    StoreRequest,
    StoreResponse,
    stage_timings,
    store_outcome,
)
from service.intake.store import BatchItem, store, store_batch
from service.language import tags
from service.runtime.resources import Resources

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

Prefer = Annotated[str | None, Header(max_length=sizes.MAX_HEADER, include_in_schema=False)]
"""`respond-async`: respond before the slow work is done. The OpenAPI document has POST /v1/operations instead: with a
second form of response here, every user of a generated client would have to tell the two apart."""


ROLES = frozenset({"system", "user", "assistant", "tool", "developer", "function"})
OWNED_CONVERSATION = "shared: a conversation belongs to a user, an agent or a run. Store shared knowledge as content."
REPEATED = f"metadata: is stored with each message, like the tags; more than {sizes.MAX_REPEATED:,} values in total."
ONLY_INFERRED = "{}: requires messages and infer=true."

StoreSerializer = Callable[[StoreResult], StoredAnswer]


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
        response = await accept_conversation(body, caller, res, call)
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
        detail = f"items: {len(body.items)} were sent; the maximum is {sizes.MAX_BATCH_ITEMS}."
        raise InvalidInput(detail, field="items")
    sizes.check_texts("items", (text for item in body.items for text in _texts_of(item)))
    res = with_budget(res)
    items = await asyncio.gather(*(_item(index, item, caller, res, call) for index, item in enumerate(body.items)))
    answers = await store_batch(items, res, res.context.deadline.lift())
    batch_items = [_batch_item(index, answer) for index, answer in enumerate(answers)]
    good = sum(item.error is None for item in batch_items)
    usage = LlmUsage.of(res.context.budget.used)
    return StoreBatchResponse(results=batch_items, succeeded=good, failed=len(batch_items) - good, usage=usage)


async def _item(index: int, body: StoreRequest, caller: Caller, res: Resources, call: Call) -> BatchItem | ServiceError:
    try:
        draft, serialize = await prepare(body, caller, res)
    except ServiceError as exc:
        return exc
    return BatchItem(draft, replace(of_item(call, index).with_serializer(serialize), dry_run=body.dry_run))


def _batch_item(index: int, answer: StoredAnswer | ServiceError) -> StoreBatchItem:
    if isinstance(answer, ServiceError):
        problem = BatchItemError.of(answer, status=errors.status_of(answer))
        return StoreBatchItem(index=index, status=problem.status, error=problem)
    stored = StoreResponse.read_again(answer.body)
    return StoreBatchItem(index=index, status=answer.status, results=stored.results, warnings=stored.warnings)


async def prepare(
    body: StoreRequest, caller: Caller, res: Resources, warnings: Sequence[str] = (), *, later: bool = False
) -> tuple[Draft | ConversationDraft, StoreSerializer]:
    """The texts to store, and the serializer of the response. With an Idempotency-Key the response is stored in the
    same transaction, for which the verb gets the serializer. `later`: a single text gets its vector from a job."""
    draft: Draft | ConversationDraft
    if body.messages is None:
        draft = _read_text(body, caller, res, later=later)
    else:
        draft, more = await _read_conversation(body, caller, res)
        warnings = [*warnings, *more]
    return draft, _serializer(body, res, warnings, may_read=caller.may(Right.READ))


def _serializer(body: StoreRequest, res: Resources, warnings: Sequence[str], *, may_read: bool) -> StoreSerializer:
    """Builds the response of a store request: 201 if a row was created, else 200, also for the events of a curated
    conversation. Without the right to read it omits the text of existing memories."""
    began, budget, dry_run = time.perf_counter(), res.context.budget, body.dry_run

    @cache
    def total_ms() -> float:  # the stored and the sent response are equal
        return round((time.perf_counter() - began) * 1000, 3)

    def show(outcome: Outcome) -> StoreOutcome:
        hidden: dict[str, object] = {"enrichment": "none"} if dry_run else {}
        if not may_read and outcome.event is not Action.ADD:
            hidden |= {"memory": None, "old_memory": None}
        return store_outcome(outcome).model_copy(update=hidden)

    def serialize(result: StoreResult) -> StoredAnswer:
        outcomes = _without_new_ids(result.outcomes) if dry_run else result.outcomes
        shown = StoreResponse(
            results=list(map(show, outcomes)),
            warnings=[*warnings, *result.warnings],
            usage=LlmUsage.of(budget.used),
            timings_ms={**stage_timings([outcome.draft for outcome in result.outcomes]), "total": total_ms()},
            dry_run=dry_run,
        )
        curated = body.messages is not None and body.infer
        added = any(outcome.event is Action.ADD for outcome in result.outcomes)
        return answer(201 if added and not curated and not dry_run else 200, shown)

    return serialize


def _without_new_ids(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of a dry run, without the ids of what was rolled back."""
    new = {outcome.memory_id for outcome in outcomes if outcome.event is Action.ADD}
    return [
        replace(
            outcome,
            memory_id=None if outcome.memory_id in new else outcome.memory_id,
            dedup=replace(outcome.dedup, existing_id=None) if outcome.memory_id in new else outcome.dedup,
            kept_as=None,
            conversation_id=None,
            turn_index=None,
        )
        for outcome in outcomes
    ]


def _read_text(body: StoreRequest, caller: Caller, res: Resources, *, later: bool) -> Draft:
    """The draft of `content`; raises InvalidInput for fields that only a conversation uses, or Forbidden."""
    assert body.content is not None
    for name in ("updated_at", "last_accessed"):
        if getattr(body, name) is not None and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is set by the service; pass allow_system_fields to change it.", field=name)
    if body.allow_system_fields and not caller.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")
    for name in ("prompt", "filters"):
        if getattr(body, name) is not None:
            raise InvalidInput(ONLY_INFERRED.format(name), field=name)
    return _make_draft(body, body.content, None, _choose_scope(body, caller), res, embed_later=later)


async def _read_conversation(body: StoreRequest, caller: Caller, res: Resources) -> tuple[ConversationDraft, list[str]]:
    """The drafts of `messages`, and warnings about what was dropped; raises InvalidInput for fields of a single text,
    or Forbidden."""
    if body.shared:
        raise InvalidInput(OWNED_CONVERSATION, field="shared")
    for name in ("id", "embedding", "updated_at", "last_accessed"):
        if getattr(body, name) is not None:
            raise InvalidInput(f"{name}: cannot be combined with messages.", field=name)
    if body.filters is not None and not body.infer:
        raise InvalidInput(ONLY_INFERRED.format("filters"), field="filters")
    dedup_filter = await narrowing.redact_tree(body.filters, res)
    scope = _choose_scope(body, caller)
    texts, warnings = _read_messages(body)
    if len(texts) * (sizes.count(body.metadata) + tags.levels(tags.normalise(body.tags))) > sizes.MAX_REPEATED:
        raise TooLarge(REPEATED, field="metadata")
    drafts = [_make_draft(body, text, speech, scope, res, dedup_filter=dedup_filter) for text, speech in texts]
    if caller.may(Right.DELETE):
        drafts = [replace(draft, options=replace(draft.options, may_delete=True)) for draft in drafts]
    external_id = body.run_id or body.session_id or scope.run_id
    if caller.wall.run_id not in (None, external_id):
        raise Forbidden("session_id: this key is restricted to another run.", field="session_id")
    return ConversationDraft(scope, drafts, external_id, body.infer, body.prompt), warnings


def _choose_scope(body: StoreRequest, caller: Caller) -> Scope:
    if body.shared and not caller.may(Right.SHARE):
        raise Forbidden(f"This key lacks the right {Right.SHARE}.", field="shared")
    return scope_of(caller, body.scope_ids, body.channel, shared=body.shared)


def _read_messages(body: StoreRequest) -> tuple[list[tuple[str, Speech]], list[str]]:
    """The messages with a text, in order, and warnings; raises InvalidInput for none, or for too many."""
    messages = body.messages or []
    if isinstance(messages, str):
        messages = [MessageInput(role="user", content=messages, name=None, timestamp=None)]
    if len(messages) > sizes.MESSAGES_AT_ONCE:
        detail = f"messages: {len(messages)} were sent; the maximum is {sizes.MESSAGES_AT_ONCE}."
        raise InvalidInput(detail, field="messages")
    texts: list[tuple[str, Speech]] = []
    left_out = sorted({name for each in messages for name in each.left_out})
    warnings = [f"not_used: {', '.join(left_out)} of messages were ignored."] if left_out else []
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        if message.role not in ROLES:
            warnings.append(f"{path}: role {message.role[:20]!r} is unknown.")
        text, dropped = _text_of(message)
        if dropped:
            warnings.append(f"{path}: {dropped} parts without text were dropped.")
        if is_blank(text):
            warnings.append(f"{path}: has no text and was dropped.")
        else:
            texts.append((text, Speech(message.role, message.name, message.timestamp)))
    if not texts:
        raise InvalidInput("messages: none of them has any text.", field="messages")
    sizes.check_texts("messages", (text for text, _ in texts), single=body.infer)
    return texts, warnings


def _texts_of(body: StoreRequest) -> list[str]:
    """All texts of one item."""
    if isinstance(body.messages, list):
        return [_text_of(message)[0] for message in body.messages]
    return [body.messages or body.content or ""]


def _text_of(message: MessageInput) -> tuple[str, int]:
    """The text of a message, and the number of parts without text."""
    if not isinstance(message.content, list):
        return message.content or "", 0
    texts = [part["text"] for part in message.content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts), len(message.content) - len(texts)


def _make_draft(
    body: StoreRequest,
    text: str,
    speech: Speech | None,
    scope: Scope,
    res: Resources,
    *,
    embed_later: bool = False,
    dedup_filter: Filter | None = None,
) -> Draft:
    now = res.clock()
    options = Options(
        dedup=body.dedup,
        use_llm=body.use_llm is not False,
        summarise=body.summarise,
        strict_size=body.limits == "strict",
        record=speech is not None and not body.infer,
        embed_later=embed_later,
    )
    given = replace(_caller_fields(body, res, now), dedup_filter=dedup_filter)
    return Draft(scope, text, given, options, now, speech)


def _caller_fields(body: StoreRequest, res: Resources, now: datetime) -> CallerFields:
    """The fields set by the caller; raises InvalidInput for a vector of the wrong length or an expiry in the past."""
    level, value = body.importance_level, body.importance
    as_sent = CallerFields(**{name: getattr(body, name) for name in SAME_NAME})
    return replace(
        as_sent,
        type=MemoryType(body.type) if body.type else None,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        tags=tags.split(body.tags),
        timezone=body.timezone or res.settings.memories.timezone,
        expires_at=expiry(body.expires_at, now),
        embedding=embedding_vector(body.embedding, res.embedder.dimension),
    )


SAME_NAME = [field.name for field in fields(CallerFields) if field.name in StoreRequest.model_fields]


class AcceptedResponse(ResponseModel):
    """The request is stored and will be processed; `url` reports the progress."""

    operation_id: Id = Field(description="UUID of the operation")
    status: Literal["queued"] = Field(default="queued", description="Always queued; `url` reports the progress")
    url: str = Field(
        description="URL of the operation", examples=["/v1/operations/0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]
    )


def answer_accepted(operation_id: UUID) -> StoredAnswer:
    return answer(202, AcceptedResponse(operation_id=operation_id, url=url_of(operation_id)))


async def accept_conversation(body: StoreRequest, caller: Caller, res: Resources, call: Call) -> Response:
    """202 with the operation, once the conversation is committed."""
    conversation, _ = await _read_conversation(body, caller, res)
    return send(answer_accepted(await accept(conversation, res, call.with_serializer(answer_accepted))))

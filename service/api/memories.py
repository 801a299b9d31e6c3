"""Memories over HTTP: store one, store many, read one, list, history."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from service.api import cursors, errors, narrowing, operations, shapes, storing
from service.api.deps import (
    AgentId,
    ChannelName,
    Reader,
    ResourcesOf,
    RunId,
    UserId,
    Writer,
    budget,
    scope_of,
)
from service.api.limits import of_page
from service.api.memory_models import (
    BatchItemError,
    MemoryHistoryResponse,
    MemoryPage,
    MemoryResponse,
    StoreBatchItem,
    StoreBatchRequest,
    StoreBatchResponse,
    StoreRequest,
    StoreResponse,
    TotalCount,
)
from service.api.narrowing import Parameters
from service.api.preconditions import OWN
from service.api.reads import CountsOf, NoteOf, ReinforceOf
from service.api.writes import BatchOf, WriteOf, etag, of_item, refuse_repeated, send
from service.db import caches, scopes
from service.db.idempotency import Replay
from service.db.memories import history, memories
from service.db.search import visibility
from service.domain.access import Caller
from service.domain.memory import StoreResult
from service.domain.request import StoredAnswer, WriteContext
from service.errors import InvalidInput, NotFound, ServiceError
from service.memory.curate import curate
from service.memory.later import accept
from service.memory.record import record
from service.memory.store import store
from service.memory.transactions import memory_id
from service.providers.budget import Budget
from service.resources import Resources

router = APIRouter(prefix="/v1/memories", tags=["memories"])

BATCH_AT_ONCE = 4

Prefer = Annotated[str | None, Header(description="`respond-async`: answer before the slow work is done")]


@router.post(
    "",
    operation_id="store_memory",
    summary="Store a text or a conversation",
    status_code=201,
    response_model=StoreResponse,
    responses={
        200: {"model": StoreResponse, "description": "Nothing new: a duplicate, an update, or a dry run"},
        202: {"model": operations.AcceptedResponse, "description": "AcceptedResponse with Prefer: respond-async"},
        **errors.documented(400, 401, 403, 409, 413, 422, 503),
    },
)
async def store_memory(
    body: StoreRequest,
    who: Writer,
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
        conversation, _ = await storing.conversation(body, who, res)
        operation_id = await accept(conversation, res, write.answered_by(operations.accepted))
        response = send(operations.accepted(operation_id))
    else:
        with budget(res) as spending, caches.holding():
            response = send(await _stored(body, who, res, write, spending, later=later))
    if later and (body.content is not None or not body.dry_run):
        response.headers["Preference-Applied"] = "respond-async"
    return response


async def _stored(
    body: StoreRequest, who: Caller, res: Resources, write: WriteContext, spending: Budget, *, later: bool = False
) -> StoredAnswer:
    """The answer of the verb that the body wants: store for `content`, curate or record for `messages`."""
    if body.messages is None:
        serialize = storing.StoreSerializer(body, spending)
        draft = storing.draft(body, who, res, later=later)
        return serialize(StoreResult((await store(draft, res, write.answered_by(serialize)),)))
    conversation, warnings = await storing.conversation(body, who, res)
    serialize = storing.StoreSerializer(body, spending, warnings)
    if body.infer:
        return serialize(await curate(conversation, res, write.answered_by(serialize)))
    return serialize(StoreResult(tuple(await record(conversation, res, write.answered_by(serialize)))))


@router.post(
    "/batch",
    operation_id="store_memories",
    summary="Store several texts, each in its own transaction",
    response_model=StoreBatchResponse,
    responses=errors.documented(400, 401, 403, 413, 503),
)
async def store_memories(body: StoreBatchRequest, who: Writer, res: ResourcesOf, write: BatchOf) -> StoreBatchResponse:
    """One item failing costs the others nothing: each says how it fared. With an Idempotency-Key every item has the key
    `key:index`, so a repeated batch completes what is missing."""
    if len(body.items) > res.settings.batch_max_items:
        raise InvalidInput(
            f"items: {len(body.items)} were sent, at most {res.settings.batch_max_items} are taken at once.",
            field="items",
        )
    turn = asyncio.Semaphore(BATCH_AT_ONCE)

    async def item(index: int, one: StoreRequest) -> StoreBatchItem:
        async with turn:
            return await _item(index, one, who, res, of_item(write, index), spending)

    with budget(res) as spending, caches.holding():
        found = await asyncio.gather(*(item(index, one) for index, one in enumerate(body.items)))
    good = sum(each.error is None for each in found)
    return StoreBatchResponse(
        results=found, succeeded=good, failed=len(found) - good, usage=shapes.usage(spending.used)
    )


async def _item(
    index: int, one: StoreRequest, who: Caller, res: Resources, write: WriteContext, spending: Budget
) -> StoreBatchItem:
    try:
        await refuse_repeated(write, who.workspace_id, res)
        found = await _stored(one, who, res, write, spending)
    except Replay as replay:
        found = replay.answer
    except ServiceError as exc:
        problem = BatchItemError(status=errors.status_of(exc), code=exc.code, detail=exc.detail, field=exc.field)
        return StoreBatchItem(index=index, status=problem.status, error=problem)
    stored = StoreResponse.model_validate(found.body)
    return StoreBatchItem(index=index, status=found.status, results=stored.results)


@router.get(
    "",
    operation_id="list_memories",
    summary="List the memories of a scope, newest first",
    response_model=MemoryPage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_memories(
    request: Request,
    who: Reader,
    res: ResourcesOf,
    note: NoteOf,
    narrowed: Parameters,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    sort: Annotated[memories.SortField, Query(description="Equal ones go by their id")] = "created_at",
    order: Annotated[Literal["desc", "asc"], Query(description="desc: the newest or most important first")] = "desc",
    count: Annotated[bool, Query(description="Say in `total` how many there are")] = False,
) -> MemoryPage:
    """Everything of the scope that has not expired, valid now or not, or what it is narrowed to."""
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id, "channel": channel}
    limit = of_page(limit, res, given="limit" in request.query_params)
    body = narrowing.body_of(narrowing.NarrowIn, {**narrowed, **ids})
    scope = scope_of(who, user_id=user_id, agent_id=agent_id, run_id=run_id, channel=body.active_channel)
    ordered = memories.SortOrder(sort, ascending=order == "asc")
    after = cursors.decode_place(cursor, ordered)
    window, warnings = await narrowing.window(body, res)
    here = scopes.matching("m", scope, body.channels or ()) & visibility.alive("m", res.clock())
    here = here if body.include_archived else here & visibility.live("m")
    rows = visibility.narrowed("m", narrowing.narrow(body, scope), window, here)
    async with res.db.snapshot(who.workspace_id) as session:
        places = await memories.page(session, rows, ordered, after=after, limit=limit + 1)
        found = await memories.get_many(session, who.workspace_id, [each.id for each in places[:limit]])
        total = await memories.count(session, rows) if count else None
    page = [found[each.id] for each in places[:limit]]
    asked: dict[str, Any] = {
        "limit": limit,
        "include_archived": body.include_archived,
        "narrowed_by": body.narrowed_by,
    }
    note("list", scope, page, channels=body.channels or (), **asked)
    return MemoryPage(
        results=[shapes.memory(each) for each in page],
        next_cursor=cursors.encode_place(ordered, places[limit - 1]) if len(places) > limit else None,
        total=TotalCount(value=total.value, is_exact=total.is_exact) if total else None,
        warnings=list(warnings),
    )


@router.get(
    "/{id}",
    operation_id="get_memory",
    summary="Read one memory",
    response_model=MemoryResponse,
    responses=errors.documented(401, 403, 404, 503),
    dependencies=OWN,
)
async def get_memory(
    id: str, who: Reader, res: ResourcesOf, note: NoteOf, used: ReinforceOf, counts: CountsOf, response: Response
) -> MemoryResponse:
    """Archived ones too. An id that is no UUID is simply not found. The ETag is what If-Match wants."""
    wanted = memory_id(id)
    async with res.db.read(who.workspace_id) as session:
        found = await memories.get(session, who.workspace_id, wanted, alive_at=res.clock())
    if found is None:
        raise NotFound("There is no memory with this id.", field="id")
    note("get", found.scope, [found])
    if counts:
        used([found])
    response.headers["ETag"] = etag(found.version)
    return shapes.memory(found)


@router.get(
    "/{id}/history",
    operation_id="get_memory_history",
    summary="Every change of a memory, oldest first",
    response_model=MemoryHistoryResponse,
    responses=errors.documented(401, 403, 404, 503),
    dependencies=OWN,
)
async def get_memory_history(id: str, who: Reader, res: ResourcesOf) -> MemoryHistoryResponse:
    """There also after the memory is gone; 404 only for an id that was never seen."""
    wanted = memory_id(id)
    async with res.db.read(who.workspace_id) as session:
        entries = await history.of_memory(session, who.workspace_id, wanted)
    if not entries:
        raise NotFound("There is no memory with this id.", field="id")
    return MemoryHistoryResponse(results=[shapes.entry(each) for each in entries])

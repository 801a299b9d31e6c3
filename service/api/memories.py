"""Memories over HTTP: store one, store many, read one, list, history."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse

from service.api import cursors, errors, narrowing, operations, replies, shapes, storing
from service.api import memory_models as wire
from service.api.auth import Reader, Writer
from service.api.deps import (
    AgentId,
    ChannelName,
    IdempotencyOf,
    ResourcesOf,
    RunId,
    UserId,
    budget,
    scope_of,
    served,
)
from service.api.limits import of_page
from service.api.narrowing import Parameters
from service.api.preconditions import OWN
from service.api.reads import CountsOf, NoteOf, ReinforceOf
from service.db import caches, scopes
from service.db.memories import history, memories
from service.db.search import visibility
from service.domain.access import Caller
from service.domain.request import IdempotencyKey
from service.errors import InvalidInput, NotFound, ServiceError
from service.memory.curate import curate
from service.memory.ids import memory_id
from service.memory.later import accept
from service.memory.record import Conversation, record
from service.memory.store import store
from service.resources import Resources

router = APIRouter(prefix="/v1/memories", tags=["memories"])

BATCH_AT_ONCE = 4

Prefer = Annotated[str | None, Header(description="`respond-async`: answer before the slow work is done")]


@router.post(
    "",
    operation_id="store_memory",
    summary="Store a text or a conversation",
    status_code=201,
    response_model=wire.StoreOut,
    responses={
        200: {"model": wire.StoreOut, "description": "Nothing new: a duplicate, an update, or a dry run"},
        202: {"model": operations.Accepted, "description": "Accepted with Prefer: respond-async"},
        **errors.documented(400, 401, 403, 409, 413, 422, 503),
    },
)
async def store_memory(
    body: wire.StoreIn,
    request: Request,
    who: Writer,
    res: ResourcesOf,
    key: IdempotencyOf,
    prefer: Prefer = None,
) -> Response:
    """Runs PII, embedding, dedup, importance, temporal, category and type, then writes everything in one transaction.

    `content` makes one memory. `messages` with `infer=false` keeps a conversation as it was said: one result per
    message, in order. With `Prefer: respond-async` a single memory is answered as soon as it is safe and found by
    text; its vector follows.
    """
    later = prefer is not None and "respond-async" in prefer.lower()
    return await replies.once(who, key, res, lambda: _store(body, request, who, res, key, later=later))


async def _store(
    body: wire.StoreIn, request: Request, who: Caller, res: Resources, key: IdempotencyKey | None, *, later: bool
) -> Response:
    with budget(res) as spending, caches.holding():
        if body.messages is not None:
            said, warnings = await storing.conversation(body, who, res)
            if later and not body.dry_run:
                return await _promise(said, request, who, res, key)
            answer = storing.Answer(spending, warnings=warnings, dry_run=body.dry_run, curated=body.infer)
            told: tuple[str, ...] = ()
            if body.infer:
                curated = await curate(said, res, served(request, who, key, answer))
                outcomes, told = list(curated.outcomes), curated.warnings
            else:
                outcomes = await record(said, res, served(request, who, key, answer))
            status, found = answer(outcomes, told)
        else:
            draft = storing.draft(body, who, res, later=later)
            answer = storing.Answer(spending, dry_run=body.dry_run)
            status, found = answer([await store(draft, res, served(request, who, key, answer))])
    headers = {"Preference-Applied": "respond-async"} if later and body.content is not None else {}
    return JSONResponse(found, status, headers)


async def _promise(
    said: Conversation, request: Request, who: Caller, res: Resources, key: IdempotencyKey | None
) -> Response:
    """202: the conversation is safe, redacted, and a worker stores it."""

    def promised(operation_id: UUID) -> tuple[int, replies.Body]:
        return 202, replies.accepted(operation_id)

    operation_id = await accept(said, res, served(request, who, key, accepted=promised))
    response = replies.send(*promised(operation_id))
    response.headers["Preference-Applied"] = "respond-async"
    return response


@router.post(
    "/batch",
    operation_id="store_memories",
    summary="Store several texts, each in its own transaction",
    response_model=wire.BatchOut,
    responses=errors.documented(400, 401, 403, 413, 503),
)
async def store_memories(
    body: wire.BatchIn, request: Request, who: Writer, res: ResourcesOf, key: IdempotencyOf
) -> wire.BatchOut:
    """One item failing costs the others nothing: each says how it fared. With an Idempotency-Key every item has the key
    `key:index`, so a repeated batch completes what is missing."""
    if len(body.items) > res.settings.batch_max_items:
        raise InvalidInput(
            f"items: {len(body.items)} were sent, at most {res.settings.batch_max_items} are taken at once.",
            field="items",
        )
    turn = asyncio.Semaphore(BATCH_AT_ONCE)

    async def item(index: int, one: wire.StoreIn) -> wire.BatchItemOut:
        async with turn:
            return await _item(index, one, request, who, res, key)

    with budget(res) as spending, caches.holding():
        found = await asyncio.gather(*(item(index, one) for index, one in enumerate(body.items)))
    good = sum(each.error is None for each in found)
    return wire.BatchOut(results=found, succeeded=good, failed=len(found) - good, usage=shapes.usage(spending.used))


async def _item(
    index: int, one: wire.StoreIn, request: Request, who: Caller, res: Resources, key: IdempotencyKey | None
) -> wire.BatchItemOut:
    own = replies.of_item(key, index)
    try:
        response = await replies.once(who, own, res, lambda: _store(one, request, who, res, own, later=False))
    except ServiceError as exc:
        problem = wire.ItemErrorOut(status=errors.status_of(exc), code=exc.code, detail=exc.detail, field=exc.field)
        return wire.BatchItemOut(index=index, status=problem.status, error=problem)
    stored = wire.StoreOut.model_validate_json(bytes(response.body))
    return wire.BatchItemOut(index=index, status=response.status_code, results=stored.results)


@router.get(
    "",
    operation_id="list_memories",
    summary="List the memories of a scope, newest first",
    response_model=wire.MemoryPage,
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
) -> wire.MemoryPage:
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
    asked = {"limit": limit, "include_archived": body.include_archived, "narrowed_by": body.narrowed_by}
    note("list", scope, page, channels=body.channels or (), **asked)
    return wire.MemoryPage(
        results=[shapes.memory(each) for each in page],
        next_cursor=cursors.encode_place(ordered, places[limit - 1]) if len(places) > limit else None,
        total=wire.TotalOut(value=total.value, is_exact=total.is_exact) if total else None,
        warnings=list(warnings),
    )


@router.get(
    "/{id}",
    operation_id="get_memory",
    summary="Read one memory",
    response_model=wire.MemoryOut,
    responses=errors.documented(401, 403, 404, 503),
    dependencies=OWN,
)
async def get_memory(
    id: str, who: Reader, res: ResourcesOf, note: NoteOf, used: ReinforceOf, counts: CountsOf, response: Response
) -> wire.MemoryOut:
    """Archived ones too. An id that is no UUID is simply not found. The ETag is what If-Match wants."""
    wanted = memory_id(id)
    async with res.db.read(who.workspace_id) as session:
        found = await memories.get(session, who.workspace_id, wanted, alive_at=res.clock())
    if found is None:
        raise NotFound("There is no memory with this id.", field="id")
    note("get", found.scope, [found])
    if counts:
        used([found])
    response.headers["ETag"] = replies.etag(found.version)
    return shapes.memory(found)


@router.get(
    "/{id}/history",
    operation_id="get_memory_history",
    summary="Every change of a memory, oldest first",
    response_model=wire.HistoryOut,
    responses=errors.documented(401, 403, 404, 503),
    dependencies=OWN,
)
async def get_memory_history(id: str, who: Reader, res: ResourcesOf) -> wire.HistoryOut:
    """There also after the memory is gone; 404 only for an id that was never seen."""
    wanted = memory_id(id)
    async with res.db.read(who.workspace_id) as session:
        entries = await history.of_memory(session, who.workspace_id, wanted)
    if not entries:
        raise NotFound("There is no memory with this id.", field="id")
    return wire.HistoryOut(results=[shapes.entry(each) for each in entries])

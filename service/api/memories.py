"""Reading memories: a page of a scope, one by its id, its history."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from service.api import cursors, errors, narrowing
from service.api.deps import (
    AgentId,
    ChannelName,
    Reader,
    ResourcesOf,
    RunId,
    UserId,
    scope_of,
)
from service.api.limits import of_page
from service.api.memory_models import (
    MemoryHistoryResponse,
    MemoryPage,
    MemoryResponse,
    TotalCount,
    history_item,
    memory_response,
)
from service.api.narrowing import Parameters
from service.api.preconditions import OWN
from service.api.reads import CountsOf, NoteOf, ReinforceOf
from service.api.writes import etag
from service.db import scopes
from service.db.memories import history, memories
from service.db.search import visibility
from service.errors import NotFound
from service.memory.transactions import memory_id

router = APIRouter(prefix="/v1/memories", tags=["memories"])


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
        results=[memory_response(each) for each in page],
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
    return memory_response(found)


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
    return MemoryHistoryResponse(results=[history_item(each) for each in entries])

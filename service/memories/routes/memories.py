"""Routes for memories: list, read, change, restore, promote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from service.domain.access import Caller, Right
from service.domain.errors import Forbidden, InvalidInput, NotFound
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import LeanMemory, Memory, MemoryState
from service.domain.query import PageKey, SortField, SortOrder, Window
from service.domain.request import StoredAnswer
from service.domain.scope import Scope
from service.domain.version import Moment, Revision
from service.http import cursors, errors, narrowing
from service.http.deps import AgentId, Changer, ChannelName, Reader, ResourcesOf, RunId, UserId, list_scope, read_scope
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf
from service.http.query_parameters import NarrowingParameters, body_of
from service.http.reads import AuditReadOf, CountsOf, CountUseOf, DetailOf, ReadOn, page_limit, send_json
from service.http.schemas import Time, expiry
from service.http.writes import WriteOf, answer, etag, send
from service.language import tags
from service.memories.promote import PromotedMemory, promote, share
from service.memories.revise import restore, revise
from service.memories.routes.change_models import (
    PatchFields,
    PatchMemoryRequest,
    PromotedMemoryResponse,
    PromoteMemoryRequest,
    PutMemoryRequest,
)
from service.memories.routes.in_scope import IN_SCOPE
from service.memories.routes.memory_models import (
    MemoryHistoryResponse,
    MemoryPage,
    MemoryResponse,
    history_item,
    memory_fields,
    memory_item,
    memory_json,
    memory_response,
    version_item,
)
from service.memories.statements import deleted, history, memories, recorded, versions, visibility
from service.memories.statements.recorded import RecordedScope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.runtime.transactions import memory_id

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)


@router.get(
    "", summary="List the memories of a scope, newest first", response_model=MemoryPage, responses=errors.keyed(400)
)
async def list_memories(
    request: Request,
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    narrowed: NarrowingParameters,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=300)] = None,
    sort: Annotated[SortField, Query(description="Ties are ordered by id")] = "created_at",
    order: Annotated[Literal["desc", "asc"], Query(description="desc: newest or most important first")] = "desc",
    count: Annotated[bool, Query(description="Return the number of matches in `total`")] = False,
    state: Annotated[MemoryState, Query(description="deleted: list deleted memories instead, as they were")] = "live",
    detail: DetailOf = "lean",
) -> Response:
    """All unexpired memories of the scope that match the filters, whether valid now or not. Deleted memories are listed
    from their history, purged ones not at all."""
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id, "channel": channel}
    limit = page_limit(limit, res, given="limit" in request.query_params)
    body = body_of(narrowing.NarrowingFields, {**narrowed, **ids})
    scope = list_scope(read_scope(caller, res, body, body.active_channel), caller, body.active_channel)
    ordered = SortOrder(sort, ascending=order == "asc")
    after = cursors.decode_place(cursor, ordered)
    window, warnings = await narrowing.window(body, res)
    narrowing.refuse_future(body.as_of, res.clock())
    if state == "deleted":
        _refuse_moments(body)
    here = visible(scope, body, body.as_of or res.clock())
    rows = visibility.filtered("m", narrowing.narrow(body, scope), window, here, recorded=body.as_of is not None)
    async with res.db.snapshot(caller.workspace_id) as session:
        if state == "deleted":
            places, gone, total = await _deleted_page(session, scope, body, window, ordered, after, limit, count=count)
            gone, _ = cursors.cut(gone, limit)
            found: Mapping[UUID, LeanMemory] = {each.id: each for each in gone}
            read = len(gone)
        elif body.as_of is not None:
            there = RecordedScope(scope, body.as_of, rows, tuple(body.channels or ()))
            places, found, read, total = await _page_as_of(session, there, ordered, after, limit, count=count)
        else:
            places = await memories.page(session, rows, ordered, after=after, limit=limit + 1)
            wanted = [each.id for each in places[:limit]]
            found, read = await memories.get_items(session, caller.workspace_id, wanted, detail)
            total = await memories.count(session, rows) if count else None
    page = [found[each.id] for each in places[:read]]
    details: dict[str, Any] = {"include_archived": body.include_archived, "narrowed_by": body.narrowed_by}
    if state == "deleted":
        details["state"] = state
    note("list", scope, page, channels=body.channels or (), limit=limit, **details)
    return send_json(
        {
            "results": [memory_item(each, detail) for each in page],
            "next_cursor": cursors.encode_place(ordered, places[read - 1]) if len(places) > read else None,
            "total": {"value": total.value, "is_exact": total.is_exact} if total else None,
            "warnings": warnings,
        }
    )


async def _page_as_of(
    session: Session,
    there: RecordedScope,
    ordered: SortOrder,
    after: PageKey | None,
    limit: int,
    *,
    count: bool,
) -> tuple[Sequence[PageKey], Mapping[UUID, Memory], int, memories.RowCount | None]:
    places = await recorded.page(session, there, ordered, after=after, limit=limit + 1)
    ids = [each.id for each in places[:limit]]
    of_then = partial(recorded.get_many, session, there.scope.workspace_id, moment=there.moment)
    found, read = await direct.page_of_ids(ids, of_then)
    return places, found, read, await recorded.count(session, there) if count else None


def _refuse_moments(body: narrowing.NarrowingFields) -> None:
    for name in ("valid_at", "as_of"):
        if getattr(body, name) is not None:
            raise InvalidInput(f"{name}: cannot be combined with state=deleted.", field=name)


async def _deleted_page(
    session: Session,
    scope: Scope,
    body: narrowing.NarrowingFields,
    window: Window,
    ordered: SortOrder,
    after: PageKey | None,
    limit: int,
    *,
    count: bool,
) -> tuple[Sequence[PageKey], Sequence[Memory], memories.RowCount | None]:
    here = scopes.matching("m", scope, body.channels or ()) & visibility.current("m") & visibility.not_in_review("m")
    rows = visibility.filtered("m", narrowing.narrow(body, scope), window, replace(here, parts=()))
    source = deleted.source(scope, body.channels or ())
    places, found = await deleted.page(session, source, rows, ordered, after=after, limit=limit + 1)
    return places, found, await deleted.count(session, source, rows) if count else None


def visible(scope: Scope, body: narrowing.NarrowingFields, now: datetime) -> Condition:
    """The condition for listing the memories of a scope, before any filters."""
    here = scopes.matching("m", scope, body.channels or ()) & visibility.not_expired_nor_in_review("m", now)
    return here & visibility.present("m", include_archived=body.include_archived, valid_at=body.valid_at)


@router.get(
    "/{id}",
    summary="Read one memory",
    response_model=MemoryResponse,
    responses=errors.keyed(404),
    dependencies=IN_SCOPE,
)
async def get_memory(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    used: CountUseOf,
    counts: CountsOf,
    valid_at: Annotated[Time | None, Query(description="The version that was valid at this moment")] = None,
    as_of: Annotated[Time | None, Query(description=narrowing.AS_OF)] = None,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
) -> Response:
    """Archived memories included. An id that is not a UUID is not found. The ETag is for If-Match. `valid_at` returns
    the version that was valid then, `as_of` the memory as recorded then, both together that version as recorded then;
    404 if there was none."""
    wanted = memory_id(id)
    narrowing.refuse_future(as_of, res.clock())
    async with res.db.snapshot(caller.workspace_id) as session:
        found = await recorded.get(
            session, caller.workspace_id, wanted, valid_at=valid_at, as_of=as_of, now=res.clock()
        )
    if found is None or not found.scope.has_ids(user_id=user_id, agent_id=agent_id, run_id=run_id):
        raise NotFound("There is no memory with this id.", field="id")
    note("get", found.scope, [found])
    if counts and as_of is None:
        used([found])
    return send_json(memory_json(found), {"ETag": etag(found.version)} if as_of is None else None)


@router.get(
    "/{id}/history",
    summary="List the changes and versions of a memory",
    responses=errors.keyed(400, 404),
    dependencies=IN_SCOPE,
)
async def get_memory_history(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    cursor: ReadOn = None,
) -> MemoryHistoryResponse:
    """Available for a deleted memory, too; 404 only for an id that never existed."""
    wanted, workspace, before = memory_id(id), caller.workspace_id, cursors.counts(cursor, 2)
    async with res.db.read(workspace) as session:
        entries = await history.of_memory(session, workspace, wanted, skip=before[0], limit=limit + 1)
        if not entries and await history.last(session, workspace, wanted) is None:
            raise NotFound("There is no memory with this id.", field="id")
        line = (await versions.line(session, workspace, wanted, texts=False))[before[1] :][: limit + 1]
        said, _ = await memories.get_items(session, workspace, [each.id for each in line], "lean")
    told = [replace(each, text=said[each.id].text) for each in line if each.id in said]
    (shown, held), more = cursors.cut_each(before, limit, entries, told)
    return MemoryHistoryResponse(
        results=[history_item(each) for each in shown], versions=[version_item(each) for each in held], next_cursor=more
    )


CHANGED = errors.keyed(400, 404, 409, 412, 413, 422)
SYSTEM: tuple[Moment, ...] = ("timestamp", "updated_at", "last_accessed")
MOMENTS: tuple[Moment, ...] = ("t_valid", "t_invalid", "expires_at", *SYSTEM)


@router.patch(
    "/{id}", summary="Change parts of a memory", response_model=MemoryResponse, responses=CHANGED, dependencies=IN_SCOPE
)
async def patch_memory(
    id: str,
    body: PatchMemoryRequest,
    caller: Changer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
) -> Response:
    """Fields that are not given stay. A new `content` is redacted and found by its words at once; its vector follows
    shortly. `timestamp`, `updated_at` and `last_accessed` need `allow_system_fields`."""
    change = revision(body, caller, res.clock())
    context = write.answered_by(memory_answer)
    memory = await revise(caller.workspace_id, memory_id(id), change, res, context, expected=expected)
    return send(memory_answer(memory))


@router.put(
    "/{id}",
    summary="Replace the text of a memory",
    response_model=MemoryResponse,
    responses=CHANGED,
    dependencies=IN_SCOPE,
)
async def put_memory(
    id: str, body: PutMemoryRequest, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf
) -> Response:
    """The text is embedded before the response, so a search finds it at once. Tags, metadata and importance stay."""
    change = Revision(text=body.text or body.content, embed_now=True)
    context = write.answered_by(memory_answer)
    memory = await revise(caller.workspace_id, memory_id(id), change, res, context, expected=expected)
    return send(memory_answer(memory))


@router.post(
    "/{id}/restore",
    summary="Restore an archived memory",
    response_model=MemoryResponse,
    responses=errors.keyed(404, 409, 412),
    dependencies=IN_SCOPE,
)
async def restore_memory(id: str, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """A memory that is not archived stays as it is. Deleted memories cannot be restored: 404."""
    memory = await restore(caller.workspace_id, memory_id(id), res, write.answered_by(memory_answer), expected=expected)
    return send(memory_answer(memory))


@router.post(
    "/{id}/promote",
    summary="Promote a memory to every channel",
    status_code=201,
    response_model=PromotedMemoryResponse,
    responses={
        200: {"model": PromotedMemoryResponse, "description": "It was already promoted"},
        **errors.keyed(400, 404, 409, 412, 422),
    },
    dependencies=IN_SCOPE,
)
async def promote_memory(
    id: str,
    caller: Changer,
    res: ResourcesOf,
    write: WriteOf,
    expected: ExpectedOf,
    body: PromoteMemoryRequest | None = None,
) -> Response:
    """Copies it to `_global` for the same user and links the copy by PROMOTED_FROM. With `shared` the copy belongs to
    the whole workspace and outlives the original. Repeating the request changes nothing."""
    wanted, context = body or PromoteMemoryRequest(reason=None, shared=False), write.answered_by(promotion_answer)
    verb = share if wanted.shared else promote
    copy = await verb(caller.workspace_id, memory_id(id), wanted.reason, res, context, expected=expected)
    return send(promotion_answer(copy))


def revision(body: PatchFields, caller: Caller, now: datetime) -> Revision:
    """The change that a PATCH describes; raises InvalidInput or Forbidden for fields that the service keeps."""
    given = body.model_fields_set
    for name in SYSTEM:
        if name in given and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is set by the service; pass allow_system_fields to change it.", field=name)
    if body.allow_system_fields and not caller.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")
    moments: dict[Moment, datetime | None] = {name: getattr(body, name) for name in MOMENTS if name in given}
    if {"ttl_s", "expires_at"} & given:
        moments["expires_at"] = expiry(body.ttl_s, body.expires_at, now)
    level, value = body.importance_level, body.importance
    return Revision(
        text=body.content,
        tags=tags.split(body.tags or ()) if "tags" in given else None,
        metadata=None if "metadata" in given and body.metadata is None else body.metadata or {},
        type=MemoryType(body.type) if body.type else None,
        type_confidence=body.confidence if body.type_confidence is None else body.type_confidence,
        fact_confidence=body.fact_confidence,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        moments=moments,
    )


def memory_answer(found: Memory) -> StoredAnswer:
    return answer(200, memory_response(found))


def promotion_answer(found: PromotedMemory) -> StoredAnswer:
    body = PromotedMemoryResponse(**memory_fields(found.memory), promoted_from=found.original_id)
    return answer(201 if found.is_new else 200, body)

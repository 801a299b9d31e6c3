"""Routes for memories: list, read, change, archive, restore, promote."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import Field, FiniteFloat

from service.domain import query
from service.domain.access import Caller, Right
from service.domain.errors import Forbidden, InvalidInput, NotFound
from service.domain.kinds import Importance, MemoryType
from service.domain.memory import Memory, MemoryState, Revision
from service.domain.query import Narrow, PageKey, SortField, SortOrder, TagMatch, TagMode, Validity
from service.http import cursors, deps, narrowing
from service.http.deps import AgentId, Changer, Reader, ReadScopeOf, ResourcesOf, RunId, UserId, list_scope, read_scope
from service.http.json_body import JsonRoute
from service.http.narrowing import MAX_WORDS, Comma, NarrowingFields
from service.http.preconditions import VersionedCallOf, in_scope, uuid_of
from service.http.query_parameters import REPEATABLE, fields_of
from service.http.reads import AuditReadOf, CountsOf, CountUseOf, DetailOf, send_json
from service.http.schemas import Id, RequestModel, Text, Time, example, expiry
from service.http.writes import CallOf, etag, sends
from service.language import tags
from service.memories import lifecycle, reading
from service.memories.lifecycle import archive, restore
from service.memories.promote import PromotedMemory, promote
from service.memories.revise import revise
from service.memories.routes.memory_models import (
    MemoryHistoryResponse,
    MemoryPage,
    MemoryResponse,
    PatchMemoryRequest,
    TaggedMemoryPage,
    memory_fields,
    memory_item,
    memory_json,
    memory_response,
    version_item,
)
from service.runtime import pii

router = APIRouter(prefix="/v1/memories", tags=["memories"], route_class=JsonRoute)

IN_SCOPE = [in_scope(reading.find, "memory")]
"""The memory of the path must belong to the scope that the request names."""

DELETED_TOO = [in_scope(lifecycle.find_also_deleted, "memory")]


class PutMemoryRequest(RequestModel):
    """The new text."""

    model_config = example(content="Lives in Porto since May.")

    content: Text = Field(description="The new text")


class PromoteMemoryRequest(RequestModel):
    """Why to promote the memory."""

    reason: str | None = Field(
        None,
        min_length=1,
        max_length=1_000,
        examples=["true in every project"],
        description="The reason, kept in the history",
    )


class PromotedMemoryResponse(MemoryResponse):
    """The memory in `_global`."""

    promoted_from: Id = Field(description="UUID of the original, which stays in its channel")


@router.get("", summary="List the memories of a scope, newest first", response_model=MemoryPage)
async def list_memories(
    caller: Reader,
    res: ResourcesOf,
    note: AuditReadOf,
    cursor: deps.CursorOf,
    body: Annotated[NarrowingFields, fields_of(NarrowingFields)],
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    sort: Annotated[SortField, Query(description="Ties are ordered by id")] = "created_at",
    order: Annotated[Literal["desc", "asc"], Query(description="desc: newest or most important first")] = "desc",
    count: Annotated[bool, Query(description="Return the number of matches in `total`")] = False,
    state: Annotated[MemoryState, Query(description="deleted: list deleted memories instead, as they were")] = "live",
    detail: DetailOf = "lean",
) -> Response:
    """All unexpired memories of the scope that match the filters, whether valid now or not. Deleted memories are listed
    from their history, purged ones not at all."""
    scope = list_scope(read_scope(caller, res, body, body.active_channel, body.channels), caller, body.active_channel)
    ordered = SortOrder(sort, ascending=order == "asc")
    key = cursor.key(FiniteFloat if sort == "importance" else cursors.Moment, UUID)
    after = PageKey(*key) if key else None
    window, warnings = await narrowing.window(body, res)
    narrowing.refuse_future(body.as_of, res.clock())
    if state == "deleted":
        _refuse_moments(body)
    asked = query.Query(
        scope,
        limit=limit,
        narrow=narrowing.narrow(body, scope),
        window=window,
        channels=tuple(body.channels or ()),
        as_of=body.as_of,
        include_archived=body.include_archived,
        detail=detail,
    )
    page, last, total = await reading.page(asked, ordered, res, state=state, after=after, counted=count)
    details: dict[str, Any] = {"include_archived": body.include_archived, "narrowed_by": body.narrowed_by}
    if state == "deleted":
        details["state"] = state
    note("list", scope, page, channels=body.channels or (), limit=limit, **details)
    return send_json(
        {
            "results": [memory_item(memory, detail) for memory in page],
            "next_cursor": cursor.pack(last.key, last.id) if last else None,
            "total": total,
            "warnings": warnings,
        }
    )


def _refuse_moments(body: narrowing.NarrowingFields) -> None:
    for name in ("valid_at", "as_of"):
        if getattr(body, name) is not None:
            raise InvalidInput(f"{name}: cannot be combined with state=deleted.", field=name)


@router.get("/by-tag", summary="List the memories of a scope with a tag", response_model=TaggedMemoryPage)
async def list_memories_by_tag(
    caller: Reader,
    scope: ReadScopeOf,
    res: ResourcesOf,
    note: AuditReadOf,
    used: CountUseOf,
    counts: CountsOf,
    cursor: deps.CursorOf,
    tags_wanted: Annotated[list[Comma], Query(alias="tags", max_length=MAX_WORDS, description=REPEATABLE)],
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of results")] = 50,
    tag_match: Annotated[TagMatch, Query(description="prefix: slack matches slack:channel:general")] = "prefix",
    tag_mode: Annotated[TagMode, Query(description="Whether one of the tags is enough or all are required")] = "any",
    include_archived: Annotated[bool, Query(description="Include archived memories")] = False,
    validity: Annotated[
        Validity, Query(description="demote includes memories no longer valid; ignore also those not valid yet")
    ] = "exclude",
    detail: DetailOf = "lean",
) -> Response:
    """Memories valid now, most important first, then latest."""
    parts = [part for each in tags_wanted for part in each.split(",")]
    wanted = tags.normalise(parts)
    if not wanted:
        raise InvalidInput("tags: name at least one tag.", field="tags")
    if len(wanted) > MAX_WORDS:
        raise InvalidInput(f"tags: at most {MAX_WORDS} tags.", field="tags")
    (skip,) = cursor.counts()
    asked = query.Query(
        scope,
        limit=limit,
        narrow=Narrow(tags=wanted, tag_match=tag_match, tag_mode=tag_mode),
        validity=validity,
        include_archived=include_archived,
        skip=skip,
        detail=detail,
    )
    memories, connected, has_more = await reading.list_tagged(asked, res)
    results = [
        {
            **memory_item(memory, detail),
            "score": memory.importance.value,
            "similarity": None,
            "connected": connected.get(memory.id, []),
        }
        for memory in memories
    ]
    page, more = cursors.cut(results, limit)
    listed = memories[: len(page)]
    shown = list(tags.normalise([pii.of_words("tags", part) for part in parts]))
    note("by-tag", scope, listed, tags=shown, tag_match=tag_match, tag_mode=tag_mode, limit=limit)
    if counts:
        used(listed)
    next_cursor = cursor.pack(skip + len(page)) if more or has_more else None
    return send_json({"results": page, "next_cursor": next_cursor})


@router.get("/{id}", summary="Read one memory", response_model=MemoryResponse, dependencies=IN_SCOPE)
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
    wanted = uuid_of(id)
    narrowing.refuse_future(as_of, res.clock())
    memory = await reading.get(caller.workspace_id, wanted, res, valid_at=valid_at, as_of=as_of)
    if not memory.scope.has_ids(user_id=user_id, agent_id=agent_id, run_id=run_id):
        raise NotFound.of("memory")
    note("get", memory.scope, [memory])
    if counts and as_of is None:
        used([memory])
    return send_json(memory_json(memory), {"ETag": etag(memory.version)} if as_of is None else None)


@router.get("/{id}/history", summary="List the changes and versions of a memory", dependencies=IN_SCOPE)
async def get_memory_history(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    cursor: deps.CursorOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
) -> MemoryHistoryResponse:
    """Available for a deleted memory, too; 404 only for an id that never existed."""
    changes_before, versions_before = cursor.counts(2)
    before = (changes_before, versions_before)
    lists = await reading.changes(caller.workspace_id, uuid_of(id), res, skip=before, limit=limit + 1)
    (changes, versions), next_cursor = cursor.cut_each(limit, *lists)
    return MemoryHistoryResponse(
        results=list(changes),
        versions=[version_item(version) for version in versions],
        next_cursor=next_cursor,
    )


SYSTEM = ("timestamp", "updated_at", "last_accessed")
TRANSLATED = frozenset(
    {"content", "tags", "metadata", "type", "type_confidence", "importance", "importance_level", "allow_system_fields"}
)
AS_SENT = [name for name in PatchMemoryRequest.model_fields if name not in TRANSLATED]
"""Fields of a PATCH that are columns, and stored as they are sent."""


@router.patch("/{id}", summary="Change parts of a memory", dependencies=IN_SCOPE)
@sends(memory_response)
async def patch_memory(
    id: str, body: PatchMemoryRequest, caller: Changer, res: ResourcesOf, call: VersionedCallOf
) -> Memory:
    """Fields that are not given stay. A new `content` is redacted and found by its words at once; its vector follows
    shortly. `timestamp`, `updated_at` and `last_accessed` need `allow_system_fields`."""
    return await revise(caller.workspace_id, uuid_of(id), revision(body, caller, res.clock()), res, call)


@router.put("/{id}", summary="Replace the text of a memory", dependencies=IN_SCOPE)
@sends(memory_response)
async def put_memory(
    id: str, body: PutMemoryRequest, caller: Changer, res: ResourcesOf, call: VersionedCallOf
) -> Memory:
    """The text is embedded before the response, so a search finds it at once. Tags, metadata and importance stay."""
    change = Revision(text=body.content, embed_now=True)
    return await revise(caller.workspace_id, uuid_of(id), change, res, call)


@router.post("/{id}/archive", summary="Archive a memory", dependencies=IN_SCOPE)
@sends(memory_response)
async def archive_memory(id: str, caller: Changer, res: ResourcesOf, call: VersionedCallOf) -> Memory:
    """Searches and lists leave it out until it is restored. A memory that is archived stays as it is."""
    return await archive(caller.workspace_id, uuid_of(id), res, call)


@router.post("/{id}/restore", summary="Restore an archived or deleted memory", dependencies=DELETED_TOO)
@sends(memory_response)
async def restore_memory(id: str, caller: Changer, res: ResourcesOf, call: VersionedCallOf) -> Memory:
    """An active memory stays as it is. A deleted one comes back as it was, with its id, its past versions and its
    relations to what still exists; 404 if it was purged or has expired."""
    return await restore(caller.workspace_id, uuid_of(id), res, call)


def promoted_response(promoted: PromotedMemory) -> PromotedMemoryResponse:
    return PromotedMemoryResponse(**memory_fields(promoted.memory), promoted_from=promoted.original_id)


@router.post(
    "/{id}/promote",
    summary="Promote a memory to every channel",
    status_code=201,
    responses={200: {"model": PromotedMemoryResponse, "description": "It was already promoted"}},
    dependencies=IN_SCOPE,
)
@sends(promoted_response, lambda promoted: 201 if promoted.is_new else 200)
async def promote_memory(
    id: str, caller: Changer, res: ResourcesOf, call: CallOf, body: PromoteMemoryRequest | None = None
) -> PromotedMemory:
    """Copies it to `_global` for the same user and links the copy by PROMOTED_FROM. Repeating the request changes
    nothing."""
    return await promote(caller.workspace_id, uuid_of(id), body.reason if body else None, res, call)


def revision(body: PatchMemoryRequest, caller: Caller, now: datetime) -> Revision:
    """The change that a PATCH describes; raises InvalidInput or Forbidden for fields that the service keeps."""
    given = body.model_fields_set
    for name in SYSTEM:
        if name in given and not body.allow_system_fields:
            raise InvalidInput(f"{name}: is set by the service; pass allow_system_fields to change it.", field=name)
    if body.allow_system_fields and not caller.may(Right.SYSTEM):
        raise Forbidden(f"This key lacks the right {Right.SYSTEM}.", field="allow_system_fields")
    expiry(body.expires_at, now)
    level, value = body.importance_level, body.importance
    return Revision(
        text=body.content,
        tags=tags.split(body.tags or ()) if "tags" in given else None,
        metadata=None if "metadata" in given and body.metadata is None else body.metadata or {},
        type=MemoryType(body.type) if body.type else None,
        type_confidence=body.type_confidence,
        importance=Importance.of_level(level) if level else None if value is None else Importance.of_value(value),
        columns={name: getattr(body, name) for name in AS_SENT if name in given},
    )

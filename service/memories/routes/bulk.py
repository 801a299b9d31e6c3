"""Routes for several memories by id: read and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from service.domain.filters import uuid_or_none
from service.domain.query import Detail
from service.domain.request import StoredAnswer
from service.domain.scope import Scope
from service.domain.sizes import MAX_ITEMS
from service.http.cursors import Cursor
from service.http.deps import Deleter, Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.reads import DETAIL, AuditReadOf, send_json
from service.http.schemas import Name, NextCursor, RequestModel, ResponseModel, example
from service.http.writes import CallOf, answer, send
from service.memories import reading
from service.memories.lifecycle import ForgottenMemory, forget_many
from service.memories.routes.memory_models import MemoryItem, memory_item

router = APIRouter(prefix="/v1/memories/batch", tags=["memories"], route_class=JsonRoute)


class MemoryIdsRequest(RequestModel):
    """Ids of memories; one that is not a UUID is not found."""

    model_config = example(ids=["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"])

    ids: list[Name] = Field(
        min_length=1,
        max_length=MAX_ITEMS,
        examples=[["0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]],
        description="UUIDs of memories; 1,000 at most",
    )


class GetMemoriesRequest(MemoryIdsRequest):
    """Ids of memories to read."""

    cursor: str | None = Field(None, max_length=100, description="next_cursor of the previous page, with the same ids")
    detail: Detail = Field("lean", description=DETAIL)


class MemoriesByIdResponse(ResponseModel):
    """The memories in the order of their ids."""

    results: list[MemoryItem] = Field(description="The memories that exist, each once")
    missing: list[str] = Field(description="Ids without a memory, as sent")
    next_cursor: NextCursor = None


class DeletedMemoryItem(ResponseModel):
    """The outcome for one id."""

    id: str = Field(description="As sent")
    status: int = Field(description="200: deleted now or before; 404: unknown")
    deleted: bool = Field(description="Whether it was deleted, now or before")
    already_deleted: bool = Field(description="Whether it had been deleted before")


class DeletedMemoriesResponse(ResponseModel):
    """The outcome for each id."""

    results: list[DeletedMemoryItem] = Field(description="One per id, in order")
    deleted: int = Field(description="Number of memories deleted by this request")


@router.post("/get", summary="Read memories by their ids", response_model=MemoriesByIdResponse)
async def get_memories(body: GetMemoriesRequest, caller: Reader, res: ResourcesOf, note: AuditReadOf) -> Response:
    """Archived memories included, expired ones not. Does not count as use."""
    cursor, known = Cursor("batch", body.cursor), _uuids(body.ids)
    (skip,) = cursor.counts()
    unique = list(dict.fromkeys(known.values()))
    memories, count = await reading.get_items(caller.workspace_id, unique[skip:], body.detail, res)
    end = skip + count
    note("batch/get", Scope(caller.workspace_id), list(memories.values()), ids=len(body.ids))
    by_name = {name: known.get(name) for name in body.ids}
    unread = {*unique[skip:end], *(() if skip else (None,))} - memories.keys()
    missing = [name for name, memory_id in by_name.items() if memory_id in unread]
    more = cursor.pack(end) if end < len(unique) else None
    results = [memory_item(memories[key], body.detail) for key in unique[skip:end] if key in memories]
    return send_json({"results": results, "missing": missing, "next_cursor": more})


@router.post("/delete", summary="Delete memories by their ids", response_model=DeletedMemoriesResponse)
async def delete_memories_by_id(body: MemoryIdsRequest, caller: Deleter, res: ResourcesOf, call: CallOf) -> Response:
    """Deletes all in one transaction. An unknown id gets status 404 and does not stop the others."""
    known = _uuids(body.ids)
    shown = partial(answer_deleted, ids=body.ids, known=known)
    unique = list(dict.fromkeys(known.values()))
    return send(shown(await forget_many(caller.workspace_id, unique, res, call.with_serializer(shown))))


def _uuids(ids: Sequence[str]) -> dict[str, UUID]:
    """The valid UUIDs by the ids as sent."""
    return {name: memory_id for name in ids if (memory_id := uuid_or_none(name))}


def answer_deleted(
    outcomes: Sequence[ForgottenMemory], *, ids: Sequence[str], known: Mapping[str, UUID]
) -> StoredAnswer:
    by_id = {outcome.id: outcome for outcome in outcomes}
    items = [_item(name, by_id.get(known[name]) if name in known else None) for name in ids]
    count = sum(outcome.deleted for outcome in outcomes)
    return answer(200, DeletedMemoriesResponse(results=items, deleted=count))


def _item(name: str, outcome: ForgottenMemory | None) -> DeletedMemoryItem:
    deleted, before = (outcome.deleted, outcome.already_deleted) if outcome else (False, False)
    status = 200 if deleted or before else 404
    return DeletedMemoryItem(id=name, status=status, deleted=deleted or before, already_deleted=before)

"""Routes for several memories by id: read, change, delete, check existence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from fastapi import APIRouter, Response

from service.domain.access import Caller
from service.domain.errors import InvalidInput, ServiceError
from service.domain.request import Replay, StoredAnswer, WriteContext
from service.domain.scope import Scope
from service.domain.sizes import MAX_BATCH_ITEMS, check_texts
from service.http import cursors, errors
from service.http.deps import Changer, Deleter, Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.reads import AuditReadOf, send_json
from service.http.schemas import BatchItemError
from service.http.writes import BatchOf, WriteOf, answer, of_item, send
from service.memories import reading
from service.memories.forget import ForgottenMemory, forget_many
from service.memories.revise import revise
from service.memories.routes.change_models import (
    DeletedMemoriesResponse,
    DeletedMemoryItem,
    GetMemoriesRequest,
    MemoriesByIdResponse,
    MemoriesExistResponse,
    MemoryExistsItem,
    MemoryIdsRequest,
    PatchedMemoryItem,
    PatchMemoriesRequest,
    PatchMemoriesResponse,
    PatchMemoryInput,
)
from service.memories.routes.memories import memory_answer, revision
from service.memories.routes.memory_models import MemoryResponse, memory_item
from service.runtime.resources import Resources
from service.runtime.transactions import parse_id, refuse_repeated

router = APIRouter(prefix="/v1/memories/batch", tags=["memories"], route_class=JsonRoute)

CONCURRENCY = 4


@router.post(
    "/get",
    summary="Read memories by their ids",
    response_model=MemoriesByIdResponse,
    responses=errors.keyed(400, 413),
)
async def get_memories(body: GetMemoriesRequest, caller: Reader, res: ResourcesOf, note: AuditReadOf) -> Response:
    """Archived memories included, expired ones not. Does not count as use."""
    (skip,), known = cursors.counts(body.cursor), _uuids(body.ids)
    unique = list(dict.fromkeys(known.values()))
    memories, count = await reading.get_items(caller.workspace_id, unique[skip:], body.detail, res)
    end = skip + count
    note("batch/get", Scope(caller.workspace_id), list(memories.values()), ids=len(body.ids))
    asked = {each: known.get(each) for each in body.ids}
    unread = {*unique[skip:end], *(() if skip else (None,))} - memories.keys()
    missing = [written for written, each in asked.items() if each in unread]
    more = cursors.after_counts(end) if end < len(unique) else None
    results = [memory_item(memories[each], body.detail) for each in unique[skip:end] if each in memories]
    return send_json({"results": results, "missing": missing, "next_cursor": more})


@router.post("/exists", summary="Check which memories exist", responses=errors.keyed(400, 413))
async def memories_exist(body: MemoryIdsRequest, caller: Reader, res: ResourcesOf) -> MemoriesExistResponse:
    """Archived memories exist, expired ones do not."""
    known = _uuids(body.ids)
    ids = await reading.existing(caller.workspace_id, list(set(known.values())), res)
    return MemoriesExistResponse(
        results=[MemoryExistsItem(id=each, exists=known.get(each) in ids) for each in body.ids]
    )


@router.post(
    "/delete",
    summary="Delete memories by their ids",
    response_model=DeletedMemoriesResponse,
    responses=errors.keyed(400, 413),
)
async def delete_memories_by_id(body: MemoryIdsRequest, caller: Deleter, res: ResourcesOf, write: WriteOf) -> Response:
    """Deletes all in one transaction. An unknown id gets status 404 and does not stop the others."""
    known = _uuids(body.ids)
    shown = partial(answer_deleted, ids=body.ids, known=known)
    unique = list(dict.fromkeys(known.values()))
    return send(shown(await forget_many(caller.workspace_id, unique, res, write.answered_by(shown))))


@router.post("/update", summary="Change parts of several memories", responses=errors.keyed(400, 413))
async def patch_memories(
    body: PatchMemoriesRequest, caller: Changer, res: ResourcesOf, write: BatchOf
) -> PatchMemoriesResponse:
    """Each item is its own transaction; a failing one does not stop the others. With an Idempotency-Key every item has
    the key `key:index`, so repeating the batch completes what is missing."""
    if len(body.items) > MAX_BATCH_ITEMS:
        raise InvalidInput(
            f"items: {len(body.items)} were sent, the maximum is {MAX_BATCH_ITEMS}.",
            field="items",
        )
    check_texts("items", (one.content or "" for one in body.items))
    turn, ends = asyncio.Semaphore(CONCURRENCY), res.context.deadline.lift()

    async def item(index: int, one: PatchMemoryInput) -> PatchedMemoryItem:
        async with turn:
            return await _patch(index, one, caller, res, of_item(write, index), ends)

    items = await asyncio.gather(*(item(index, one) for index, one in enumerate(body.items)))
    good = sum(each.error is None for each in items)
    return PatchMemoriesResponse(results=items, succeeded=good, failed=len(items) - good)


async def _patch(
    index: int, one: PatchMemoryInput, caller: Caller, res: Resources, write: WriteContext, ends: float | None
) -> PatchedMemoryItem:
    try:
        async with res.until(ends) as own:
            await refuse_repeated(write, caller.workspace_id, own)
            change = revision(one, caller, own.clock())
            context = write.answered_by(memory_answer)
            patched = memory_answer(await revise(caller.workspace_id, parse_id(one.id), change, own, context))
    except Replay as replay:
        patched = replay.answer
    except ServiceError as exc:
        problem = BatchItemError(status=errors.status_of(exc), code=exc.code, detail=exc.detail, field=exc.field)
        return PatchedMemoryItem(index=index, status=problem.status, error=problem)
    return PatchedMemoryItem(index=index, status=patched.status, memory=MemoryResponse.read_again(patched.body))


def _uuids(ids: Sequence[str]) -> dict[str, UUID]:
    """The valid UUIDs by the ids as sent."""
    uuids = {}
    for each in ids:
        try:
            uuids[each] = UUID(each)
        except ValueError:
            continue
    return uuids


def answer_deleted(
    outcomes: Sequence[ForgottenMemory], *, ids: Sequence[str], known: Mapping[str, UUID]
) -> StoredAnswer:
    by_id = {one.id: one for one in outcomes}
    items = [_item(each, by_id.get(known[each]) if each in known else None) for each in ids]
    count = sum(one.deleted for one in by_id.values())
    return answer(200, DeletedMemoriesResponse(results=items, deleted=count))


def _item(written: str, one: ForgottenMemory | None) -> DeletedMemoryItem:
    deleted, before = (one.deleted, one.already_deleted) if one else (False, False)
    status = 200 if deleted or before else 404
    return DeletedMemoryItem(id=written, status=status, deleted=deleted or before, already_deleted=before)

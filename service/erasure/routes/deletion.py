"""Routes for deletion: one memory, the memories of a scope, everything in a workspace."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from service.domain.access import Caller, Right
from service.domain.errors import Forbidden, InvalidInput
from service.domain.request import StoredAnswer
from service.domain.scope import Extent
from service.erasure.forget_scope import empty_workspace, forget_scope
from service.erasure.purge import purge_memory, purge_scope
from service.erasure.values import PurgeReceiptResponse
from service.http.deps import Admin, AgentId, CallerOf, ChannelName, Deleter, ResourcesOf, RunId, UserId, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, uuid_of
from service.http.schemas import ScopeDeletionResponse
from service.http.writes import CallOf, answer, send
from service.memories.lifecycle import ForgottenMemory, forget
from service.memories.routes.memories import IN_SCOPE
from service.memories.routes.memory_models import DeletedMemoryResponse

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": ScopeDeletionResponse,
        "description": "An operation deletes the rest and reports the progress",
    }
}


receipt_answer = partial(answer, 200)
PURGED_ONE_BY_ONE = "purge: shared memories are erased one by one, by their ids."


async def _extent(
    caller: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    shared: Annotated[bool, Query(description="Memories of the whole workspace instead (right memory:share)")] = False,
) -> Extent:
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    scope = scope_of(caller, ids, channel, shared=shared)
    return Extent(scope, channel or caller.own_channel)


ExtentOf = Annotated[Extent, Depends(_extent)]


async def prepare_purge(request: Request, caller: Caller) -> None:
    """Raises Forbidden without the right to purge. Writes the audit entries of earlier reads, or they would follow the
    erasure."""
    if not caller.may(Right.PURGE):
        raise Forbidden(f"This key lacks the right {Right.PURGE}.", field="purge")
    await request.app.state.reads.flush()


async def _purge(
    request: Request,
    caller: CallerOf,
    purge: Annotated[
        bool,
        Query(
            description="Also erase it from history, decisions, audit, jobs, responses and caches (right memory:purge)"
        ),
    ] = False,
) -> bool:
    if purge:
        await prepare_purge(request, caller)
    return purge


PurgeOf = Annotated[bool, Depends(_purge)]


@router.delete(
    "/memories",
    summary="Delete every memory of a scope",
    response_model=ScopeDeletionResponse | PurgeReceiptResponse,
    responses=ACCEPTED,
)
async def delete_memories(
    extent: ExtentOf, caller: Deleter, res: ResourcesOf, purge: PurgeOf, call: CallOf
) -> Response:
    """Deletes every memory that has all given ids, in the given channel or in any, archived ones included. For more
    than 1,000 memories an operation continues after the response.

    With `purge=true` the subject is erased from every table at once, and the response is a receipt.
    """
    if purge:
        if extent.scope.is_shared:
            raise InvalidInput(PURGED_ONE_BY_ONE, field="purge")
        return send(receipt_answer(await purge_scope(extent, res, call.with_serializer(receipt_answer))))
    return send(answer_count(await forget_scope(extent, res, call.with_serializer(answer_count))))


@router.delete(
    "/memories/{id}",
    summary="Delete a memory",
    response_model=DeletedMemoryResponse | PurgeReceiptResponse,
    dependencies=IN_SCOPE,
)
async def delete_memory(id: str, caller: Deleter, res: ResourcesOf, purge: PurgeOf, call: VersionedCallOf) -> Response:
    """Also deletes its vector and its relations; the history stays. Repeating the request returns `already_deleted`.

    With `purge=true` its history, decisions, promoted copies and the turns it came from are erased as well, even if it
    was deleted before, and the response is a receipt.
    """
    if purge:
        call = call.with_serializer(receipt_answer)
        erased = await purge_memory(caller.workspace_id, uuid_of(id), res, call)
        return send(receipt_answer(erased))
    gone = await forget(caller.workspace_id, uuid_of(id), res, call.with_serializer(answer_deleted))
    return send(answer_deleted(gone))


@router.post(
    "/reset", summary="Delete everything in the workspace", response_model=ScopeDeletionResponse, responses=ACCEPTED
)
async def reset_workspace(caller: Admin, res: ResourcesOf, call: CallOf) -> Response:
    """Deletes every memory, conversation and entity of the key's workspace, with all history. Keys, settings and the
    audit log stay. This cannot be undone."""
    return send(answer_count(await empty_workspace(caller.workspace_id, res, call.with_serializer(answer_count))))


def answer_count(forgotten: ScopeDeletionResponse) -> StoredAnswer:
    """200 with the count, or 202 with the operation."""
    return answer(200 if forgotten.operation_id is None else 202, forgotten)


def answer_deleted(forgotten: ForgottenMemory) -> StoredAnswer:
    message = f"Memory {forgotten.id} deleted"
    body = DeletedMemoryResponse(
        id=forgotten.id, deleted=True, already_deleted=forgotten.already_deleted, message=message
    )
    return answer(200, body)

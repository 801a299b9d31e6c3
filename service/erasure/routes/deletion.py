"""Routes for deletion: one memory, the memories of a scope, everything in a workspace."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from service.domain.access import Caller, Right
from service.domain.errors import Forbidden, InvalidInput
from service.domain.scope import Extent
from service.erasure.forget_scope import empty_workspace, forget_scope
from service.erasure.purge import purge_memory, purge_scope
from service.erasure.values import PurgeReceiptResponse
from service.http.deps import Admin, AgentId, CallerOf, ChannelName, Deleter, ResourcesOf, RunId, UserId, scope_of
from service.http.json_body import JsonRoute
from service.http.preconditions import VersionedCallOf, uuid_of
from service.http.schemas import ScopeDeletionResponse
from service.http.writes import CallOf, sends
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


PURGED_ONE_BY_ONE = "purge: shared memories can only be erased one at a time, by id."


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


def scope_deletion_status(deleted: ScopeDeletionResponse | PurgeReceiptResponse) -> int:
    """202 for one that an operation continues."""
    return 202 if isinstance(deleted, ScopeDeletionResponse) and deleted.operation_id else 200


@router.delete("/memories", summary="Delete every memory of a scope", responses=ACCEPTED)
@sends(status=scope_deletion_status)
async def delete_memories(
    extent: ExtentOf, caller: Deleter, res: ResourcesOf, purge: PurgeOf, call: CallOf
) -> ScopeDeletionResponse | PurgeReceiptResponse:
    """Deletes every memory that has all given ids, in the given channel or in any, archived ones included. For more
    than 1,000 memories an operation continues after the response.

    With `purge=true` the subject is erased from every table at once, and the response is a receipt.
    """
    if purge:
        if extent.scope.is_shared:
            raise InvalidInput(PURGED_ONE_BY_ONE, field="purge")
        return await purge_scope(extent, res, call)
    return await forget_scope(extent, res, call)


def deleted_memory_response(
    deleted: ForgottenMemory | PurgeReceiptResponse,
) -> DeletedMemoryResponse | PurgeReceiptResponse:
    if isinstance(deleted, PurgeReceiptResponse):
        return deleted
    message = f"Memory {deleted.id} deleted"
    return DeletedMemoryResponse(id=deleted.id, deleted=True, already_deleted=deleted.already_deleted, message=message)


@router.delete("/memories/{id}", summary="Delete a memory", dependencies=IN_SCOPE)
@sends(deleted_memory_response)
async def delete_memory(
    id: str, caller: Deleter, res: ResourcesOf, purge: PurgeOf, call: VersionedCallOf
) -> ForgottenMemory | PurgeReceiptResponse:
    """Also deletes its vector and its relations; the history stays. Repeating the request returns `already_deleted`.

    With `purge=true` its history, decisions, promoted copies and the turns it came from are erased as well, even if it
    was deleted before, and the response is a receipt.
    """
    if purge:
        return await purge_memory(caller.workspace_id, uuid_of(id), res, call)
    return await forget(caller.workspace_id, uuid_of(id), res, call)


@router.post("/reset", summary="Delete everything in the workspace", responses=ACCEPTED)
@sends(status=scope_deletion_status)
async def reset_workspace(caller: Admin, res: ResourcesOf, call: CallOf) -> ScopeDeletionResponse:
    """Deletes every memory, conversation and entity of the key's workspace, with all history. Keys, settings and the
    audit log stay. This cannot be undone."""
    return await empty_workspace(caller.workspace_id, res, call)

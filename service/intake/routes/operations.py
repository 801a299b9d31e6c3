"""Routes for operations: the progress of requests that returned 202."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from service.domain.errors import InvalidInput
from service.http.deps import PrimaryReader, ResourcesOf, Writer
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, ResponseModel, Time
from service.http.writes import CallOf
from service.intake.deferred import progress
from service.intake.routes.store import AcceptedResponse, accept_conversation
from service.intake.routes.store_models import StoreRequest

router = APIRouter(prefix="/v1/operations", tags=["operations"], route_class=JsonRoute)


@router.post("", summary="Store a conversation asynchronously", status_code=202, response_model=AcceptedResponse)
async def store_conversation_later(body: StoreRequest, caller: Writer, res: ResourcesOf, call: CallOf) -> Response:
    """Takes `messages` like POST /v1/memories, stores them durably, and returns before facts are extracted."""
    if body.messages is None:
        raise InvalidInput("messages: are required; send a single text to POST /v1/memories.", field="messages")
    if body.dry_run:
        raise InvalidInput("dry_run: send it to POST /v1/memories.", field="dry_run")
    return await accept_conversation(body, caller, res, call)


class OperationProgress(ResponseModel):
    """The progress of a deletion."""

    done: int = Field(description="Memories deleted so far")
    total: int = Field(description="Memories to delete in total")


class OperationResponse(ResponseModel):
    """The progress of a request that returned 202."""

    id: Id = Field(description="UUID")
    kind: str = Field(
        description="record stores a conversation, forget_scope deletes a scope, reset empties a workspace"
    )
    status: Literal["queued", "running", "done", "failed"] = Field(description="done and failed are final")
    progress: OperationProgress | None = Field(description="Progress of a deletion; null: unknown")
    result: dict[str, Any] | None = Field(
        description="With status done: event and id of each message, in order, or the number deleted; else null"
    )
    error: dict[str, Any] | None = Field(
        description="With status failed: `code`, `detail`, and `field` if one is invalid; else null"
    )
    created_at: Time = Field(description="When the request was accepted")
    finished_at: Time | None = Field(description="When it finished or failed; null: not yet")


@router.get("/{id}", summary="Get the progress of an operation")
async def get_operation(id: str, caller: PrimaryReader, res: ResourcesOf) -> OperationResponse:
    """The state of a request that returned 202. Finished operations are kept as long as finished jobs, 7 days by
    default."""
    operation = await progress(caller.workspace_id, uuid_of(id, "operation"), res)
    done = OperationProgress(**operation.progress) if operation.progress else None
    return OperationResponse.of(operation, status=operation.state, progress=done, result=operation.result or None)

"""Routes for operations: the progress of requests that returned 202."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from service.domain.access import Caller
from service.domain.errors import InvalidInput
from service.domain.request import Call, StoredAnswer
from service.http.deps import PrimaryReader, ResourcesOf, Writer
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, ResponseModel, Time
from service.http.writes import CallOf, answer, send, url_of
from service.intake.deferred import accept, progress
from service.intake.routes.store_drafts import conversation_draft
from service.intake.routes.store_models import StoreRequest
from service.runtime.resources import Resources

router = APIRouter(prefix="/v1/operations", tags=["operations"], route_class=JsonRoute)


class AcceptedResponse(ResponseModel):
    """The request is stored and will be processed; `url` reports the progress."""

    operation_id: Id = Field(description="UUID of the operation")
    status: Literal["queued"] = Field(default="queued", description="Always queued; `url` reports the progress")
    url: str = Field(
        description="URL of the operation", examples=["/v1/operations/0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"]
    )


def answer_accepted(operation_id: UUID) -> StoredAnswer:
    return answer(202, AcceptedResponse(operation_id=operation_id, url=url_of(operation_id)))


@router.post("", summary="Store a conversation asynchronously", status_code=202, response_model=AcceptedResponse)
async def store_conversation_later(body: StoreRequest, caller: Writer, res: ResourcesOf, call: CallOf) -> Response:
    """Takes `messages` like POST /v1/memories, stores them durably, and returns before facts are extracted."""
    if body.messages is None:
        raise InvalidInput("messages: are required; send a single text to POST /v1/memories.", field="messages")
    if body.dry_run:
        raise InvalidInput("dry_run: send it to POST /v1/memories.", field="dry_run")
    return await accept_conversation(body, caller, res, call)


async def accept_conversation(body: StoreRequest, caller: Caller, res: Resources, call: Call) -> Response:
    """202 with the operation, once the conversation is committed."""
    conversation, _ = await conversation_draft(body, caller, res)
    return send(answer_accepted(await accept(conversation, res, call.with_serializer(answer_accepted))))


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

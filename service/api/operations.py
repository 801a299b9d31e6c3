"""Operations: the progress of requests that were answered with 202."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from service.api import errors
from service.api.deps import Reader, ResourcesOf
from service.api.json_body import JsonRoute
from service.api.preconditions import uuid_of
from service.api.schemas import Id, ResponseModel, Time
from service.api.writes import answer
from service.db.jobs import operations
from service.domain.request import StoredAnswer
from service.errors import NotFound

router = APIRouter(prefix="/v1/operations", tags=["operations"], route_class=JsonRoute)


class AcceptedResponse(ResponseModel):
    """The request is stored and will be carried out; `url` tells the progress."""

    operation_id: Id = Field(description="UUID to ask by")
    status: Literal["queued"] = Field(default="queued", description="Always queued: `url` tells the progress")
    url: str = Field(description="Where to ask", examples=["/v1/operations/0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"])


def accepted(operation_id: UUID) -> StoredAnswer:
    return answer(202, AcceptedResponse(operation_id=operation_id, url=f"/v1/operations/{operation_id}"))


class OperationProgress(ResponseModel):
    """The progress of a deletion."""

    done: int = Field(description="Memories deleted so far")
    total: int = Field(description="Memories to delete in all")


class OperationResponse(ResponseModel):
    """The progress of a request that was answered with 202."""

    id: Id = Field(description="UUID")
    kind: str = Field(
        description="What it does: record stores a conversation, forget_scope deletes a scope, reset a workspace"
    )
    status: Literal["queued", "running", "done", "failed"] = Field(
        description="queued and running go on; done and failed are final"
    )
    progress: OperationProgress | None = Field(description="How far a deletion is; null where that cannot be told")
    result: dict[str, Any] | None = Field(
        description="With status done: event and id of each message, in order, or how many were deleted; null otherwise"
    )
    error: dict[str, Any] | None = Field(
        description="With status failed: `code`, `detail`, and `field` where one is to blame; null otherwise"
    )
    created_at: Time = Field(description="When the request was accepted")
    finished_at: Time | None = Field(description="When it was done or failed; null: not yet")


@router.get(
    "/{id}",
    operation_id="get_operation",
    summary="Get the progress of an operation",
    response_model=OperationResponse,
    responses=errors.documented(401, 403, 404, 503),
)
async def get_operation(id: str, caller: Reader, res: ResourcesOf) -> OperationResponse:
    """Of a request that was answered with 202. A finished one is kept as long as finished jobs, 7 days by default."""
    async with res.db.read(caller.workspace_id) as session:
        found = await operations.get(session, caller.workspace_id, uuid_of(id, _missing))
    if found is None:
        raise _missing()
    return OperationResponse(
        id=found.id,
        kind=found.kind,
        status=found.state,
        progress=OperationProgress(done=found.progress["done"], total=found.progress["total"])
        if found.progress
        else None,
        result=dict(found.result) if found.result else None,
        error=dict(found.error) if found.error else None,
        created_at=found.created_at,
        finished_at=found.finished_at,
    )


def _missing() -> NotFound:
    return NotFound("There is no operation with this id.", field="id")

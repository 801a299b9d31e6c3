"""Routes for reviews: memories that contradict known ones and wait for a person's decision (policy flag_review)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from service.http.deps import Changer, CursorOf, Reader, ReadScopeOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import CallOf, sends
from service.memories import review
from service.memories.review import ReviewWithMemories
from service.memories.routes.memory_models import MemoryResponse, memory_response

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], route_class=JsonRoute)


class ReviewResponse(ResponseModel):
    """A memory that waits for a person's decision; it is archived until then."""

    id: Id = Field(description="UUID of the review")
    state: Literal["pending", "accepted", "rejected"] = Field(description="accepted and rejected are final")
    memory_id: Id = Field(description="UUID of the memory that waits")
    memory: MemoryResponse | None = Field(description="The memory that waits; null: deleted")
    contradicts: list[MemoryResponse] = Field(description="The memories that accepting archives, without deleted ones")
    created_at: Time = Field(description="When it was flagged")
    resolved_at: Time | None = Field(description="When it was accepted or rejected; null: pending")


class ReviewPage(ResponseModel):
    """Oldest first."""

    results: list[ReviewResponse] = Field(description="At most `limit` reviews")
    next_cursor: NextCursor = None


def review_response(shown: ReviewWithMemories) -> ReviewResponse:
    return ReviewResponse.of(
        shown.review,
        memory=memory_response(shown.memory) if shown.memory else None,
        contradicts=[memory_response(memory) for memory in shown.contradicts],
    )


@router.get("", summary="List the pending reviews")
async def list_reviews(
    caller: Reader,
    scope: ReadScopeOf,
    res: ResourcesOf,
    cursor: CursorOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ReviewPage:
    """Memories under review do not appear in searches or lists."""
    after = cursor.moment_and_id()
    page, has_more = await review.pending(scope, res, after=after, limit=limit)
    last = page[-1].review if has_more else None
    more = cursor.pack(last.created_at, last.id) if last else None
    return ReviewPage(results=[review_response(each) for each in page], next_cursor=more)


@router.post("/{id}/accept", summary="Accept a flagged memory")
@sends(review_response)
async def accept_review(id: str, caller: Changer, res: ResourcesOf, call: CallOf) -> ReviewWithMemories:
    """It becomes valid, and the memories it contradicts are archived. The decision can be undone."""
    return await review.resolve(caller.workspace_id, uuid_of(id, "review"), "accepted", res, call)


@router.post("/{id}/reject", summary="Remove a flagged memory")
@sends(review_response)
async def reject_review(id: str, caller: Changer, res: ResourcesOf, call: CallOf) -> ReviewWithMemories:
    """The memory it contradicts stays unchanged. The history of the flagged memory is kept."""
    return await review.resolve(caller.workspace_id, uuid_of(id, "review"), "rejected", res, call)

"""Routes for reviews: memories that contradict known ones and wait for a person's decision (policy flag_review)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from service.domain.errors import NotFound
from service.domain.request import StoredAnswer
from service.http import cursors, errors
from service.http.deps import Changer, Reader, ReadScopeOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import ExpectedOf, uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import WriteOf, answer, send
from service.memories import review
from service.memories.review import ReviewWithMemories
from service.memories.routes.memory_models import MemoryResponse, memory_response

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], route_class=JsonRoute)

RESOLVED = errors.keyed(404, 409, 412)


class ReviewChange(ResponseModel):
    """What accepting does to one memory."""

    verb: Literal["UPDATE", "DELETE"] = Field(
        description="UPDATE: the target gets the flagged text; DELETE: it is archived"
    )
    target_id: Id = Field(description="UUID of the memory it changes")


class ReviewResponse(ResponseModel):
    """A memory that waits for a person's decision; it is archived until then."""

    id: Id = Field(description="UUID of the review")
    state: Literal["pending", "accepted", "rejected"] = Field(description="accepted and rejected are final")
    memory_id: Id = Field(description="UUID of the memory that waits")
    memory: MemoryResponse | None = Field(description="The memory that waits; null: deleted")
    changes: list[ReviewChange] = Field(description="What accepting does, in order")
    contradicts: list[MemoryResponse] = Field(description="The memories that accepting changes, without deleted ones")
    created_at: Time = Field(description="When it was flagged")
    resolved_at: Time | None = Field(description="When it was accepted or rejected; null: pending")
    version: int = Field(description="The ETag, for If-Match: different, not necessarily greater, after a change")


class ReviewPage(ResponseModel):
    """Oldest first."""

    results: list[ReviewResponse] = Field(description="At most `limit` reviews")
    next_cursor: NextCursor = None


@router.get("", summary="List the pending reviews", responses=errors.keyed(400))
async def list_reviews(
    caller: Reader,
    scope: ReadScopeOf,
    res: ResourcesOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> ReviewPage:
    """Memories under review do not appear in searches or lists."""
    after = cursors.decode(cursor)
    read, has_more = await review.pending(scope, res, after=after, limit=limit)
    page, _ = cursors.cut(read, limit)
    last = page[-1].review if has_more or len(page) < len(read) else None
    more = cursors.encode(last.created_at, last.id) if last else None
    return ReviewPage(results=[_out(each) for each in page], next_cursor=more)


@router.post("/{id}/accept", summary="Accept a flagged memory", response_model=ReviewResponse, responses=RESOLVED)
async def accept_review(id: str, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """It replaces the text of the memory it contradicts, which keeps its id. The decision can be undone."""
    resolved = await review.accept(
        caller.workspace_id, uuid_of(id, _missing), res, write.answered_by(review_answer), expected=expected
    )
    return send(review_answer(resolved))


@router.post("/{id}/reject", summary="Remove a flagged memory", response_model=ReviewResponse, responses=RESOLVED)
async def reject_review(id: str, caller: Changer, res: ResourcesOf, write: WriteOf, expected: ExpectedOf) -> Response:
    """The memory it contradicts stays unchanged. The history of the flagged memory is kept."""
    resolved = await review.reject(
        caller.workspace_id, uuid_of(id, _missing), res, write.answered_by(review_answer), expected=expected
    )
    return send(review_answer(resolved))


def review_answer(resolved: ReviewWithMemories) -> StoredAnswer:
    return answer(200, _out(resolved))


def _missing() -> NotFound:
    return NotFound("There is no review with this id.", field="id")


def _out(shown: ReviewWithMemories) -> ReviewResponse:
    return ReviewResponse.of(
        shown.review,
        memory=memory_response(shown.memory) if shown.memory else None,
        changes=[ReviewChange.of(change) for change in shown.review.changes],
        contradicts=[memory_response(memory) for memory in shown.contradicts],
        version=shown.version,
    )

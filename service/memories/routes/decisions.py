"""Routes for decisions about memories, undoing them, and the origin of a memory."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from service.domain.memory import MemorySourceItem
from service.http.deps import Changer, CursorOf, Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.http.writes import CallOf, sends
from service.memories import reading, review
from service.memories.routes.memories import IN_SCOPE
from service.memories.routes.memory_models import MemoryResponse, memory_response
from service.memories.values import DecisionResponse, MemoryHistoryItem

router = APIRouter(prefix="/v1", tags=["decisions"], route_class=JsonRoute)


class DecisionPage(ResponseModel):
    """Oldest first."""

    results: list[DecisionResponse] = Field(description="At most `limit` decisions")
    next_cursor: NextCursor = None


class UndoDecisionResponse(ResponseModel):
    """An undone decision, with those that were undone together with it."""

    id: Id = Field(description="UUID of the decision")
    state: Literal["undone"] = Field(description="Always undone")
    undone_at: Time = Field(description="When it was first undone")
    decisions: list[Id] = Field(description="UUIDs of all decisions that were undone, including this one")
    memories: list[MemoryResponse] = Field(description="The restored memories, as they are now")
    removed: list[Id] = Field(description="UUIDs of memories that the decisions had created and that were removed")


class ExplainMemoryResponse(ResponseModel):
    """The origin of a memory. Without sources if it was stored directly or its turns have been deleted."""

    id: Id = Field(description="UUID of the memory")
    memory: str | None = Field(description="Its current text; null if deleted")
    sources: list[MemorySourceItem] = Field(description="At most `limit` turns, oldest first")
    decisions: list[DecisionResponse] = Field(description="At most `limit` decisions")
    changes: list[MemoryHistoryItem] = Field(description="At most `limit` changes, oldest first")
    next_cursor: NextCursor = None


@router.get("/memories/{id}/decisions", summary="List the decisions about a memory", dependencies=IN_SCOPE)
async def get_memory_decisions(
    id: str,
    caller: Reader,
    res: ResourcesOf,
    cursor: CursorOf,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
) -> DecisionPage:
    """Available for a deleted memory too, until it is purged; 404 only for an id that never existed."""
    before = cursor.counts()
    decisions = await reading.decisions_about(caller.workspace_id, uuid_of(id), res, skip=before[0], limit=limit + 1)
    (page,), more = cursor.cut_each(limit, decisions)
    return DecisionPage(results=list(page), next_cursor=more)


@router.get("/memories/{id}/why", summary="Get the origin and history of a memory", dependencies=IN_SCOPE)
async def explain_memory(
    id: str, caller: Reader, res: ResourcesOf, cursor: CursorOf, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> ExplainMemoryResponse:
    """Available for a deleted memory too, until it is purged."""
    wanted = uuid_of(id)
    quotes_before, decisions_before, changes_before = cursor.counts(3)
    before = (quotes_before, decisions_before, changes_before)
    text, *lists = await reading.origin(caller.workspace_id, wanted, res, skip=before, limit=limit + 1)
    (quotes, decisions, changes), next_cursor = cursor.cut_each(limit, *lists)
    return ExplainMemoryResponse(
        id=wanted,
        memory=text,
        sources=list(quotes),
        decisions=list(decisions),
        changes=list(changes),
        next_cursor=next_cursor,
    )


def undo_response(decision: review.UndoneDecision) -> UndoDecisionResponse:
    assert decision.decision.undone_at is not None, "it was just undone"
    return UndoDecisionResponse(
        id=decision.decision.id,
        state="undone",
        undone_at=decision.decision.undone_at,
        decisions=list(decision.together),
        memories=[memory_response(memory) for memory in decision.memories],
        removed=list(decision.removed),
    )


@router.post("/decisions/{id}/undo", summary="Undo a decision")
@sends(undo_response)
async def undo_decision(id: str, caller: Changer, res: ResourcesOf, call: CallOf) -> review.UndoneDecision:
    """Restores text, vector, validity, tags, sources, entities and edges. 409 if the memory has changed since the
    decision; an erased memory is not restored. Repeating the request changes nothing."""
    return await review.undo_decision(caller.workspace_id, uuid_of(id, "decision"), res, call)

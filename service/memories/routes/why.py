"""Route for the origin of a memory: its source turns, the decisions about it, and its history."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from service.http import cursors, errors
from service.http.deps import Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.preconditions import uuid_of
from service.http.reads import ReadOn
from service.http.schemas import Id, NextCursor, ResponseModel, Time
from service.memories import reading
from service.memories.routes.decisions import DecisionResponse, decision_response
from service.memories.routes.in_scope import IN_SCOPE
from service.memories.routes.memory_models import MemoryHistoryItem, history_item

router = APIRouter(prefix="/v1/memories/{id}", tags=["decisions"], route_class=JsonRoute)


class MemorySourceItem(ResponseModel):
    """A turn that the memory was extracted from; the span is half-open, in characters."""

    conversation_id: Id = Field(description="UUID of the conversation")
    external_id: str = Field(description="The name of the conversation")
    turn_id: Id = Field(description="UUID of the turn")
    turn_index: int = Field(description="Its index in the conversation, from 0")
    role: str = Field(description="user, assistant, system, tool, or any other word")
    speaker: str | None = Field(description="Name of the speaker; null: unknown")
    timestamp: Time = Field(description="When it was said")
    start: int | None = Field(description="Index of the first character of the span, from 0; null: unknown")
    end: int | None = Field(description="Index after the last character of the span; null: unknown")
    quote: str = Field(description="The text of the span; if unknown, the first 2,000 characters of the turn")


class ExplainMemoryResponse(ResponseModel):
    """The origin of a memory. Without sources if it was stored directly or its turns have been deleted."""

    id: Id = Field(description="UUID of the memory")
    memory: str | None = Field(description="Its current text; null if deleted")
    sources: list[MemorySourceItem] = Field(description="At most `limit` turns, oldest first")
    decisions: list[DecisionResponse] = Field(description="At most `limit` decisions")
    changes: list[MemoryHistoryItem] = Field(description="At most `limit` changes, oldest first")
    next_cursor: NextCursor = None


@router.get(
    "/why",
    summary="Get the origin and history of a memory",
    responses=errors.keyed(400, 404),
    dependencies=IN_SCOPE,
)
async def explain_memory(
    id: str, caller: Reader, res: ResourcesOf, limit: Annotated[int, Query(ge=1, le=1_000)] = 100, cursor: ReadOn = None
) -> ExplainMemoryResponse:
    """Available for a deleted memory too, until it is purged."""
    wanted = uuid_of(id)
    quotes_before, decisions_before, changes_before = cursors.counts(cursor, 3)
    before = (quotes_before, decisions_before, changes_before)
    origin = await reading.origin(caller.workspace_id, wanted, res, skip=before, limit=limit + 1)
    lists = (origin.quotes, origin.decisions, origin.changes)
    (quotes, decisions, changes), next_cursor = cursors.cut_each(before, limit, *lists)
    return ExplainMemoryResponse(
        id=wanted,
        memory=origin.text,
        sources=[MemorySourceItem(**asdict(quote)) for quote in quotes],
        decisions=[decision_response(decision) for decision in decisions],
        changes=[history_item(change) for change in changes],
        next_cursor=next_cursor,
    )

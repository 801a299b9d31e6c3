"""Route for the timeline: memories, turns, strategies and goals by time."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from service.domain.errors import InvalidInput
from service.domain.query import Window
from service.http import cursors
from service.http.deps import CursorOf, Reader, ReadScopeOf, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.query_parameters import REPEATABLE, SplitAtCommas
from service.http.reads import AuditReadOf
from service.http.schemas import Id, NextCursor, OfChannel, ResponseModel, Time, example
from service.runtime.pii import clean_words
from service.search import timeline
from service.search.values import EventKind, TimelineQuery

NEAREST = "Only the `limit` events nearest to this text; the latest, without `similarity`, if it has no vector"

router = APIRouter(prefix="/v1/timeline", tags=["recall"], route_class=JsonRoute)


class TimelineItem(ResponseModel):
    """A memory, a turn, a strategy or a goal with its time."""

    model_config = example(
        id="0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c",
        memory_type="semantic",
        event_time="2026-03-02T09:30:00+00:00",
        summary="Moved to Lisbon",
        importance_score=0.7,
        access_count=2,
        last_accessed="2026-03-05T18:00:00+00:00",
        channel="_global",
        archived=False,
        metadata={},
    )

    id: Id = Field(description="UUID of the memory, turn, strategy or goal")
    memory_type: EventKind = Field(description="semantic: a memory; episodic: a turn; procedural: a strategy")
    event_time: Time = Field(description="When it was said or happened; for strategies and goals when they were stored")
    summary: str = Field(description="One sentence of at most 240 characters")
    importance_score: float = Field(description="0..1; 0.5 if not rated")
    access_count: int = Field(description="How often the memory was found or the strategy used; 0 for turns and goals")
    last_accessed: Time | None = Field(description="When that last happened; null: never, or not counted")
    channel: OfChannel
    archived: bool = Field(
        description="Whether the memory, or the turn's conversation, is archived; false for strategies and goals"
    )
    metadata: dict[str, Any] = Field(
        description="For memories and turns their own, with role, conversation_id and turn_index for turns; for "
        "strategies tool_sequence; for goals status and priority"
    )
    similarity: float | None = Field(None, description="Similarity to the query, 0..1; null without a query")


class TimelinePage(ResponseModel):
    """Latest first; pass `next_cursor` as `cursor` for the next page."""

    results: list[TimelineItem] = Field(description="At most `limit` events")
    next_cursor: NextCursor = None


@router.get("", summary="Read the timeline of a scope")
async def get_timeline(
    caller: Reader,
    scope: ReadScopeOf,
    res: ResourcesOf,
    audit_read: AuditReadOf,
    cursor: CursorOf,
    types: Annotated[
        Annotated[list[EventKind], Field(max_length=4)] | None,
        SplitAtCommas,
        Query(description=f"{REPEATABLE}; default all four"),
    ] = None,
    start: Annotated[Time | None, Query(description="Only events at or after this moment")] = None,
    end: Annotated[Time | None, Query(description="Only events before this moment")] = None,
    include_archived: bool = False,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    query: Annotated[str | None, Query(min_length=1, max_length=20_000, description=NEAREST)] = None,
) -> TimelinePage:
    """Memories, turns, strategies and goals of a scope; with `channel`, those of that channel and of _global. A turn
    that is also stored as a memory appears once, as a turn."""
    if start is not None and end is not None and start >= end:
        raise InvalidInput("start: must be before end.", field="start")
    if query is not None and cursor.text is not None:
        raise InvalidInput("cursor: results for a query come in a single page; raise limit instead.", field="cursor")
    text = await clean_words(query, "query", res) if query else None
    window, after = Window(start, end), cursor.moment_and_id()
    wanted = TimelineQuery(scope, types or list(EventKind), window, include_archived, after, limit + 1, text)
    read = await timeline.read_page(wanted, res)
    page, last = cursors.cut(read, limit)
    events = sorted(page, key=lambda event: (event.event_time, event.id), reverse=True)
    audit_read("timeline", scope, events, subject="timeline", query=text, limit=limit)
    similarity = res.embedder.query_similarity
    return TimelinePage(
        results=[
            TimelineItem.of(event, similarity=None if event.cosine is None else similarity(event.cosine))
            for event in events
        ],
        next_cursor=cursor.pack(last.event_time, last.id) if last and query is None else None,
    )

"""Route for the change feed, as pages or as a stream of events."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import Field

from service.domain.errors import InvalidInput
from service.domain.kinds import MemoryType
from service.feed.feed import from_now, read_on
from service.feed.routes.change_stream import stream
from service.feed.values import ChangeKind, FeedCursor, FeedEntry, FeedPage, FeedPosition
from service.http import cursors, errors
from service.http.deps import PrimaryReader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import Id, Metadata, OfAgent, OfChannel, OfRun, OfUser, ResponseModel, Time

router = APIRouter(prefix="/v1/changes", tags=["changes"], route_class=JsonRoute)

NOW = "now"
MAX_CURSOR = 200
EVENTS = "text/event-stream"


class ChangedMemory(ResponseModel):
    """A memory after a change, without the values that change by use, ageing and jobs."""

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, redacted", examples=["Prefers tea over coffee in the morning"])
    type: MemoryType = Field(description="One of seven types", examples=["Preference"])
    fact_confidence: float | None = Field(
        description="0..1; null for memories not extracted from a conversation", examples=[0.9]
    )
    importance: float = Field(description="0..1", examples=[0.6])
    tags: list[str] = Field(description="Lower case; 100 at most", examples=[["drink", "morning:tea"]])
    categories: list[str] = Field(description="What it is about, lower case", examples=[["food"]])
    metadata: Metadata = Field(description="Your own data", examples=[{"project": "atlas"}])
    timestamp: Time = Field(description="When it was said or happened")
    t_valid: Time | None = Field(description="Valid from this moment on; null: no start")
    t_invalid: Time | None = Field(description="Valid until this moment; null: no end")
    expires_at: Time | None = Field(description="When it expires; null: never")
    archived: bool = Field(description="Whether it is archived")
    version: int = Field(description="Incremented by each change", examples=[2])
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was last changed")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    session_id: str | None = Field(description="The session_id it was stored with; null: none", examples=["session-1"])


class ChangeItem(ResponseModel):
    """One change."""

    id: str = Field(description="Identifies the change; equal for all readers", examples=["7512-48"])
    cursor: str = Field(description="Pass it as `after` to continue after this change")
    event: ChangeKind = Field(
        description="memory.added; memory.updated; memory.ended: its validity ended, because it was superseded or by "
        "request; memory.archived; memory.restored; memory.deleted; memory.erased: deleted with its history"
    )
    memory_id: Id = Field(description="UUID")
    changed_at: Time = Field(description="When it changed; the feed is not ordered by these times")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    memory: ChangedMemory | None = Field(description="The memory after the change; null: deleted or erased")


class ChangesPage(ResponseModel):
    """Changes, in an order that is the same for all readers."""

    results: list[ChangeItem] = Field(description="At most `limit` changes; possibly fewer even if there are more")
    next_cursor: str = Field(description="Pass it as `after` to continue, now or later")
    has_more: bool = Field(description="Whether more changes may already be available")


@router.get(
    "",
    summary="List changes, in order",
    response_model=ChangesPage,
    responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}, **errors.document(410)},
)
async def list_changes(
    request: Request,
    caller: PrimaryReader,
    res: ResourcesOf,
    after: Annotated[
        str | None,
        Query(
            max_length=MAX_CURSOR,
            description="A cursor; `now`: only future changes; default: the oldest change that is kept",
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    last_event_id: Annotated[
        str | None, Header(max_length=MAX_CURSOR, description="Like `after`; sent by clients that resume a stream")
    ] = None,
) -> Any:
    """Every change of a memory once, in an order that is the same for all readers; a restricted key sees changes in its
    scope. With `Accept: text/event-stream` the response is a stream that continues with new changes: `id` is the
    cursor, `event` and `data` are as in `results`."""
    begins_after = parse_cursor(last_event_id or after)
    if EVENTS in request.headers.get("accept", ""):
        begin = await from_now(caller.workspace_id, res) if begins_after is None and after == NOW else None
        return await stream(request, caller, res, begin.end if begin else begins_after, tell=as_event)
    if begins_after is None and after == NOW:
        return page_of(await from_now(caller.workspace_id, res))
    return page_of(await read_on(caller.workspace_id, begins_after, res, limit=limit))


def parse_cursor(cursor: str | None) -> FeedCursor | None:
    """Raises InvalidInput for a cursor that is not one of ours."""
    if cursor is None or cursor == NOW:
        return None
    try:
        source, position, seq, moment = cursors.unpack(cursor, str, cursors.Number, cursors.Number, cursors.Moment)
    except InvalidInput:
        raise InvalidInput("after: must be the next_cursor of a page, or now.", field="after") from None
    return FeedCursor(source, FeedPosition(position, seq), moment)


def format_cursor(cursor: FeedCursor) -> str:
    return cursors.pack(cursor.source, cursor.at.position, cursor.at.seq, cursor.moment)


def page_of(feed_page: FeedPage) -> ChangesPage:
    page, last = cursors.cut(feed_page.entries, len(feed_page.entries))
    end = replace(feed_page.end, at=last.at) if last else feed_page.end
    return ChangesPage(
        results=[change_item(entry, feed_page.end) for entry in page],
        next_cursor=format_cursor(end),
        has_more=feed_page.has_more or last is not None,
    )


def change_item(entry: FeedEntry, end: FeedCursor) -> ChangeItem:
    """`end`: the place after the page that contains the entry."""
    memory = None if entry.memory is None else ChangedMemory(**entry.memory)
    cursor = format_cursor(FeedCursor(end.source, entry.at, end.moment))
    return ChangeItem.of(entry, id=entry.at.id, cursor=cursor, event=entry.kind, memory=memory)


def as_event(entry: FeedEntry, end: FeedCursor) -> bytes:
    """A change as Server-Sent Event."""
    item = change_item(entry, end)
    return f"id: {item.cursor}\nevent: {item.event}\ndata: {item.model_dump_json()}\n\n".encode()

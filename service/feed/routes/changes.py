"""The change feed: page by page, or as a stream of events for as long as the client listens."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import Field

from service.domain.errors import InvalidInput
from service.domain.feed import ChangeKind, FeedEntry, FeedPage, FeedPlace, FeedPosition
from service.domain.kinds import MemoryType
from service.feed.feed import from_now, read_on
from service.feed.routes.change_stream import streamed
from service.http import cursors, errors
from service.http.deps import Reader, ResourcesOf
from service.http.json_body import JsonRoute
from service.http.schemas import Id, Metadata, OfAgent, OfChannel, OfRun, OfUser, ResponseModel, Time

router = APIRouter(prefix="/v1/changes", tags=["changes"], route_class=JsonRoute)

NOW = "now"
MAX_CURSOR = 200
EVENTS = "text/event-stream"


class ChangedMemory(ResponseModel):
    """A memory as a change left it: what somebody wrote or decided, not what use, age and jobs make of it."""

    id: Id = Field(description="UUID")
    memory: str = Field(description="Its text, redacted", examples=["Prefers tea over coffee in the morning"])
    type: MemoryType = Field(description="One of seven types", examples=["Preference"])
    fact_confidence: float | None = Field(description="0..1; null for what was stored as it is", examples=[0.9])
    importance: float = Field(description="0..1", examples=[0.6])
    tags: list[str] = Field(description="In lower case, 100 at most", examples=[["drink", "morning:tea"]])
    categories: list[str] = Field(description="What it is about, in lower case", examples=[["food"]])
    metadata: Metadata = Field(description="The caller's own", examples=[{"project": "atlas"}])
    timestamp: Time = Field(description="When it was said or happened")
    t_valid: Time | None = Field(description="It holds from then on; null: not said")
    t_invalid: Time | None = Field(description="It holds until then; null: not said")
    expires_at: Time | None = Field(description="It is deleted some time after; null: never")
    archived: bool = Field(description="Retired: searches leave it out")
    version: int = Field(description="Counts its changes; a greater one is newer", examples=[2])
    created_at: Time = Field(description="When it was stored")
    updated_at: Time = Field(description="When it was changed last")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    channel: OfChannel
    session_id: str | None = Field(description="As it was stored with; null: none", examples=["session-1"])


class ChangeItem(ResponseModel):
    """One change."""

    id: str = Field(description="Of this change, the same for every reader", examples=["7512-48"])
    cursor: str = Field(description="Send it as `after` to read on behind this change")
    event: ChangeKind = Field(
        description="memory.added; memory.updated; memory.ended: from some moment on it does not hold any more, as "
        "it was superseded or somebody said so; memory.archived; memory.restored; memory.deleted; memory.erased: gone "
        "with its history"
    )
    memory_id: Id = Field(description="UUID")
    changed_at: Time = Field(description="When. The order is that of the feed, not of these times")
    user_id: OfUser
    agent_id: OfAgent
    run_id: OfRun
    memory: ChangedMemory | None = Field(description="As this change left it; null: deleted or erased")


class ChangesPage(ResponseModel):
    """Changes in the order that all readers see."""

    results: list[ChangeItem] = Field(description="At most `limit`, perhaps fewer though there are more")
    next_cursor: str = Field(description="Send it as `after` to read on, now or later")
    has_more: bool = Field(description="Whether there may be more already")
    held_since: Time | None = Field(
        description="When the oldest change was written that cannot be told yet, because a transaction that began "
        "earlier has not ended; null: there is none"
    )


@router.get(
    "",
    summary="What has changed, in order",
    response_model=ChangesPage,
    responses={
        200: {"content": {EVENTS: {"schema": {"type": "string"}}}},
        **errors.documented(400, 401, 403, 410, 429, 503),
    },
)
async def list_changes(
    request: Request,
    caller: Reader,
    res: ResourcesOf,
    after: Annotated[
        str | None,
        Query(max_length=MAX_CURSOR, description="A cursor; `now`: only what comes; default: the oldest that is kept"),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    last_event_id: Annotated[
        str | None, Header(max_length=MAX_CURSOR, description="The same as `after`, as a stream is taken up again")
    ] = None,
) -> Any:
    """Every change of a memory once, in an order that is the same for every reader; a key with a wall sees those of
    what it may read. With `Accept: text/event-stream` the answer is a stream of events that goes on with what comes:
    `id` is the cursor, `event` and `data` are as in `results`."""
    place = place_of(last_event_id or after)
    if EVENTS in request.headers.get("accept", ""):
        begin = await from_now(caller.workspace_id, res) if place is None and after == NOW else None
        return await streamed(request, caller, res, begin.end if begin else place, tell=as_event)
    if place is None and after == NOW:
        return page_of(await from_now(caller.workspace_id, res))
    return page_of(await read_on(caller.workspace_id, place, res, limit=limit))


def place_of(cursor: str | None) -> FeedPlace | None:
    """Raises InvalidInput for what we did not give out."""

    def place(text: str) -> FeedPlace:
        source, position, seq, moment = text.split("|")
        at = FeedPosition(_number(position), _number(seq))
        return FeedPlace(source, at, cursors.aware(moment))

    if cursor is None or cursor == NOW:
        return None
    try:
        return cursors.unpack(cursor, place)
    except InvalidInput:
        raise InvalidInput(
            "after: is not one of ours; take next_cursor of the last page, or now.", field="after"
        ) from None


def _number(text: str) -> int:
    found = int(text)
    if not 0 <= found < 2**63:
        raise ValueError
    return found


def cursor_of(place: FeedPlace) -> str:
    return cursors.pack(f"{place.source}|{place.at.position}|{place.at.seq}|{place.moment.isoformat()}")


def page_of(found: FeedPage) -> ChangesPage:
    page, last = cursors.cut(found.entries, len(found.entries))
    end = replace(found.end, at=last.at) if last else found.end
    return ChangesPage(
        results=[change_item(each, found.end) for each in page],
        next_cursor=cursor_of(end),
        has_more=found.has_more or last is not None,
        held_since=found.held_since,
    )


def change_item(entry: FeedEntry, end: FeedPlace) -> ChangeItem:
    """`end`: the place behind the page that the entry was read with."""
    memory = None if entry.memory is None else ChangedMemory(**entry.memory)
    cursor = cursor_of(FeedPlace(end.source, entry.at, end.moment))
    return ChangeItem.of(entry, id=entry.at.id, cursor=cursor, event=entry.kind, memory=memory)


def as_event(entry: FeedEntry, end: FeedPlace) -> bytes:
    """A change as Server-Sent Event."""
    item = change_item(entry, end)
    return f"id: {item.cursor}\nevent: {item.event}\ndata: {item.model_dump_json()}\n\n".encode()

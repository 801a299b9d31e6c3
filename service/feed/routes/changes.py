"""Route for the change feed, as pages or as a stream of Server-Sent Events.

Every second a stream checks for changes, whether its key is still valid, and whether the process is shutting down.
While waiting it holds no database connection and does not count as a running request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any
from uuid import UUID

import structlog
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from service.domain.access import Caller, Right, Wall
from service.domain.errors import InvalidInput, PlaceLost, ServiceError, TooManyRequests, Unavailable
from service.feed.feed import from_now, read_on
from service.feed.values import ChangedMemory, ChangeKind, FeedCursor, FeedEntry, FeedPage, FeedPosition
from service.http import cursors, errors
from service.http.deps import PrimaryReader, ResourcesOf, authenticate
from service.http.json_body import JsonRoute
from service.http.schemas import Id, OfAgent, OfRun, OfUser, ResponseModel, Time
from service.kit import fair_gate, process
from service.runtime.resources import Resources

log = structlog.get_logger(__name__)

PAGE = 200
POLL_S = 1.0
HEARTBEAT_S = 15.0
"""Proxies commonly close an idle connection after a minute."""

RETRY_MS = 2_000
STREAMS_PER_CALLER, STREAMS_PER_KEY, STREAMS = 4, 100, 200
"""The most open streams of a process: of a key or of its tokens for one wall, of a key with all its tokens, and in all;
each looks for changes every second."""

HEAD = f"retry: {RETRY_MS}\n\n".encode()
HEARTBEAT = b": nothing new\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Tell = Callable[[FeedEntry, FeedCursor], bytes]


class OpenStreams:
    """Counts the open streams of this process, by key and wall, so that each end user's token has its own."""

    def __init__(self) -> None:
        self._open: Counter[tuple[UUID, Wall]] = Counter()

    def check(self, caller: Caller) -> None:
        """Raises TooManyRequests, or Unavailable if other keys use them all."""
        of_key = sum(count for (key, _), count in self._open.items() if key == caller.key_id)
        if self._open[caller.key_id, caller.wall] >= STREAMS_PER_CALLER or of_key >= STREAMS_PER_KEY:
            raise TooManyRequests(
                f"The limit is {STREAMS_PER_CALLER} open streams, and {STREAMS_PER_KEY} of a key with all its tokens.",
                retry_after_s=RETRY_MS / 1_000,
            )
        if self._open.total() >= STREAMS:
            raise Unavailable("The service has reached its limit of open streams.", retry_after_s=RETRY_MS / 1_000)

    @contextmanager
    def counted(self, caller: Caller) -> Iterator[None]:
        counted = caller.key_id, caller.wall
        self._open[counted] += 1
        try:
            yield
        finally:
            self._open[counted] -= 1
            if not self._open[counted]:
                del self._open[counted]


async def stream(
    request: Request, caller: Caller, res: Resources, after: FeedCursor | None, *, tell: Tell
) -> StreamingResponse:
    """The stream after `after`. The first page is read before the response begins, so that an expired `after` is an
    error. Raises PlaceLost, TooManyRequests or Unavailable."""
    await read_on(caller.workspace_id, after, res, limit=1)
    streams: OpenStreams = request.app.state.streams
    streams.check(caller)
    events = _events(request, caller, res, after, streams, tell)
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


async def _events(
    request: Request, caller: Caller, res: Resources, cursor: FeedCursor | None, streams: OpenStreams, tell: Tell
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    with streams.counted(caller):
        fair_gate.leave()
        yield HEAD
        last = loop.time()
        while not process.is_shutting_down():
            try:
                page = await read_on(caller.workspace_id, cursor, res, limit=PAGE)
            except PlaceLost:
                return  # the client reconnects and gets the error
            except ServiceError as exc:
                log.warning("unavailable", code=exc.code, detail=exc.detail)
                page = None
            if page is not None:
                cursor = page.end
                for entry in page.entries:
                    yield tell(entry, page.end)
                if page.entries:
                    last = loop.time()
            if page is None or not page.has_more:
                if loop.time() - last >= HEARTBEAT_S:
                    yield HEARTBEAT
                    last = loop.time()
                await asyncio.sleep(POLL_S)
            try:
                caller = await authenticate(request)
            except Unavailable:
                continue
            except ServiceError:
                return
            if not caller.may(Right.READ):
                return
            res = res.within(replace(res.context, wall=caller.wall))


router = APIRouter(prefix="/v1/changes", tags=["changes"], route_class=JsonRoute)

NOW = "now"
MAX_CURSOR = 200
EVENTS = "text/event-stream"


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
    return ChangeItem.of(entry, cursor=format_cursor(FeedCursor(end.source, entry.at, end.moment)))


def as_event(entry: FeedEntry, end: FeedCursor) -> bytes:
    """A change as Server-Sent Event."""
    item = change_item(entry, end)
    return f"id: {item.cursor}\nevent: {item.event}\ndata: {item.model_dump_json()}\n\n".encode()

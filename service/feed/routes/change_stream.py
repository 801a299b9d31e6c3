"""The change feed as Server-Sent Events.

Every second a stream checks for changes, whether its key is still valid, and whether the process is shutting down.
While waiting it holds no database connection and does not count as a running request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

import structlog
from fastapi import Request
from fastapi.responses import StreamingResponse

from service.domain.access import Caller, Right
from service.domain.errors import PlaceLost, ServiceError, TooManyRequests, Unavailable
from service.feed.feed import read_on
from service.feed.values import FeedCursor, FeedEntry
from service.http.deps import authenticate
from service.kit import draining, fair_gate
from service.runtime.resources import Resources

log = structlog.get_logger(__name__)

PAGE = 200
POLL_S = 1.0
HEARTBEAT_S = 15.0
"""Proxies commonly close an idle connection after a minute."""

RETRY_MS = 2_000
STREAMS_PER_KEY, STREAMS = 4, 200
"""The most open streams of a process, per key and in all; each looks for changes every second."""

HEAD = f"retry: {RETRY_MS}\n\n".encode()
HEARTBEAT = b": nothing new\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Tell = Callable[[FeedEntry, FeedCursor], bytes]


class OpenStreams:
    """Counts the open streams of this process, by key."""

    def __init__(self) -> None:
        self._open: Counter[UUID] = Counter()

    def check(self, key: UUID) -> None:
        """Raises TooManyRequests, or Unavailable if other keys use them all."""
        if self._open[key] >= STREAMS_PER_KEY:
            raise TooManyRequests(
                f"This key has reached its limit of {STREAMS_PER_KEY} open streams.",
                retry_after_s=RETRY_MS / 1_000,
            )
        if self._open.total() >= STREAMS:
            raise Unavailable("The service has reached its limit of open streams.", retry_after_s=RETRY_MS / 1_000)

    @contextmanager
    def counted(self, key: UUID) -> Iterator[None]:
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


async def stream(
    request: Request, caller: Caller, res: Resources, after: FeedCursor | None, *, tell: Tell
) -> StreamingResponse:
    """The stream after `after`. The first page is read before the response begins, so that an expired `after` is an
    error. Raises PlaceLost, TooManyRequests or Unavailable."""
    await read_on(caller.workspace_id, after, res, limit=1)
    streams: OpenStreams = request.app.state.streams
    streams.check(caller.key_id)
    events = _events(request, caller, res, after, streams, tell)
    return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)


async def _events(
    request: Request, caller: Caller, res: Resources, cursor: FeedCursor | None, streams: OpenStreams, tell: Tell
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    with streams.counted(caller.key_id):
        fair_gate.leave()
        yield HEAD
        last = loop.time()
        while not draining.begun():
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

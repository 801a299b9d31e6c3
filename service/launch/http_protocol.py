"""uvicorn's HTTP/1.1 with limits on the head of a request, which it has none of: how long it may take, how large it may
be, and how many connections may wait for one. What follows the head is limited by the application
(service/http/json_body.py).

Connections that wait for a head, and have shown no good key, cost little and do not count against
the limit of connections: closing them at once would only make a flood open them again at once. When one too many comes,
the oldest of the address that has most of them is closed; when one too many sends a head, one without a good key. So
requests with a key or to /livez are answered.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.domain.errors import Unavailable
from service.http import errors

HEAD_S = 10.0
"""The longest time from the opening of a connection, or the first byte of a later request on it, to the end of the
head."""

HEAD_BYTES = 64 * 1024
WAITING = 4
"""Connections that may wait, for each one that the limit allows; one address may have half of all."""

OTHER_FILES = 300
ALWAYS_ANSWERED = b"/livez"


@cache
def places(most: int) -> int:
    """How many connections this process may hold in all; raises its limit of open files for them, if it may."""
    _, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = min(hard, most * (1 + WAITING) + OTHER_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, limits[0]), hard))
    return files - OTHER_FILES


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed when the head of a request takes too long, and answered 400 when it is too large."""

    _waiting: ClassVar[dict[str, dict[BoundedHttp, None]]] = {}
    """The connections of this process that wait for a head and have shown no good key, by address, the oldest first."""

    _head_bytes = 0
    _in_head = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._wait()
        self._begin_head()
        if self.config.limit_concurrency is not None:
            self._make_room(places(self.config.limit_concurrency))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:
            self._begin_head()

    def data_received(self, data: bytes) -> None:
        if not self._in_head:
            super().data_received(data)
            return
        room = HEAD_BYTES - self._head_bytes
        self._head_bytes += len(data[:room])
        super().data_received(data[:room])
        if len(data) <= room or self.transport.is_closing():
            return
        if self._in_head and self._head_bytes == HEAD_BYTES:
            self.send_400_response("The head of the request is too large.")
        else:
            self.data_received(data[room:])

    def on_headers_complete(self) -> None:
        self._end_head()
        self._leave_waiting()
        most, in_requests = self.config.limit_concurrency, len(self.connections) - sum(map(len, self._waiting.values()))
        is_full = most is not None and in_requests >= most and not self._evict_first(self._strangers())
        app, self.limit_concurrency = self.app, None
        if is_full and self.url.partition(b"?")[0] != ALWAYS_ANSWERED:
            self.app = errors.of(None, Unavailable("Too many connections are open. Try again in a second."))
        super().on_headers_complete()
        self.app = app

    def send_400_response(self, msg: str) -> None:
        """Answers bytes that are no HTTP request with the body that every error has, and closes the connection."""
        answer = errors.reply(None, 400, code="invalid_input", detail=msg, headers={"Connection": "close"})
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(STATUS_LINE[400] + lines + b"\r\n" + answer.body)
        self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        is_idle = self.cycle.response_complete and not self.transport.is_closing()
        if is_idle and self._is_stranger() and not self.transport.get_write_buffer_size():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._leave_waiting()
        super().connection_lost(exc)

    def _make_room(self, most: int) -> None:
        if len(own := self._waiting[self._address]) > most // 2:
            self._evict_first(own)
        elif len(self.connections) > most:
            address = max(self._waiting, key=lambda each: len(self._waiting[each]))
            self._evict_first(self._waiting[address])

    def _evict_first(self, those: Iterable[Any]) -> bool:
        """Closes the first that is not this one; returns whether there was one."""
        first = next((each for each in those if each is not self), None)
        if first is not None:
            self.connections.discard(first)
            first._leave_waiting()
            first.transport.abort()
        return first is not None

    def _is_stranger(self) -> bool:
        """Whether the connection's last request, if any, has shown no good key."""
        return self.cycle is None or "caller" not in self.cycle.scope["state"]

    def _strangers(self) -> Iterator[Any]:
        """The connections in a request that has shown no good key."""
        waiting = {each for those in self._waiting.values() for each in those}
        return (each for each in set[Any](self.connections) - waiting if each._is_stranger())

    def _wait(self) -> None:
        self._waiting.setdefault(self._address, {})[self] = None

    def _leave_waiting(self) -> None:
        own = self._waiting.get(self._address, {})
        own.pop(self, None)
        if not own:
            self._waiting.pop(self._address, None)

    def _begin_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _end_head(self) -> None:
        self._in_head = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

"""uvicorn's HTTP/1.1 with limits on the head of a request, which it has none of: how long it may take and how large it
may be. What follows the head is limited by the application (service/api/request_body.py)."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S = 10.0
"""From the opening of a connection, or the first byte of a later request on it, to the end of the head."""

HEAD_BYTES = 64 * 1024


class BoundedHttp(HttpToolsProtocol):
    """A connection that is closed when the head of a request takes too long, and answered 400 when it is too large."""

    _head_bytes = 0
    _in_head = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin_head()

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
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

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

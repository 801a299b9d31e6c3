"""How do the bytes of a request reach a server and its answer us, with little in between?

A general client takes half a millisecond to a whole one of CPU for each request: layers, a pool, a parser in Python.
That was a fifth of what a conversation costs the API. Here: HTTP/1.1 over connections that are kept, one request at a
time on each, parsed by llhttp. Redirects and proxies are not for here.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.staggered import staggered_race
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httptools

IDLE_S = 4.0
"""Seconds after which an idle connection is not used again: uvicorn, so vLLM and many others, closes it after 5."""

HEAD_START_S = 0.25
"""Seconds that each address of a host has before the next is tried beside it (RFC 8305)."""


class Broken(Exception):
    """The connection failed, or what came over it is no answer. Carries no text of request or answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of headers in lower case; of equal ones the last."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Connections:
    """The connections to one server: as many as requests are in flight. `tls` None: in the clear."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, *, connect_timeout_s: float) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_timeout_s = connect_timeout_s
        self._idle: list[_Connection] = []

    async def exchange(self, request: bytes) -> Answer:
        """The answer to a whole request. Raises Broken, or TimeoutError when no connection comes about in time; how
        long the answer may take is the caller's to say. Whoever stops waiting costs the connection."""
        connection = self._kept() or await self._connect()
        try:
            answer = await connection.exchange(request)
        except BaseException:
            connection.abort()
            raise
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    async def close(self) -> None:
        """Ends the idle connections; those of requests in flight end with them."""
        ended, self._idle = self._idle, []
        for each in ended:
            each.abort()
        if ended:
            await asyncio.wait([each.lost for each in ended], timeout=1.0)

    def _kept(self) -> _Connection | None:
        """The connection that was used last, if the server will hardly close it just now."""
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and connection.idle_s < IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await self._connected(await _reach(self._host, self._port))
        except TimeoutError:
            raise
        except OSError as exc:  # also of TLS and of names that nobody has
            raise Broken("The server cannot be reached.") from exc

    async def _connected(self, sock: socket.socket) -> _Connection:
        loop = asyncio.get_running_loop()
        name = self._host if self._tls else None
        try:
            _, connection = await loop.create_connection(_Connection, sock=sock, ssl=self._tls, server_hostname=name)
        except BaseException:
            sock.close()
            raise
        return connection


async def _reach(host: str, port: int) -> socket.socket:
    """A connected socket, to the first address of the host that answers. uvloop's own connecting tries them one after
    the other, so that a dead IPv6 takes all the time there is."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    reached, _, errors = await staggered_race([partial(_dial, each) for each in found], HEAD_START_S)
    if reached is None:
        raise next((error for error in errors if error is not None), OSError("no address"))
    assert isinstance(reached, socket.socket)
    return reached


async def _dial(found: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, address = found
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


class _Connection(asyncio.Protocol):
    """One request at a time. `reusable`: the last answer is whole, nothing came behind it, and both sides go on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._waiting: asyncio.Future[Answer] | None = None
        self._used_at = self._loop.time()
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._begun = self._whole = self._goes_on = False
        self.lost: asyncio.Future[None] = self._loop.create_future()

    @property
    def reusable(self) -> bool:
        return self._goes_on and not self.lost.done()

    @property
    def idle_s(self) -> float:
        return self._loop.time() - self._used_at

    async def exchange(self, request: bytes) -> Answer:
        """Raises Broken."""
        if self.lost.done():
            raise Broken("The connection was closed.")
        self._headers, self._parts = {}, []
        self._begun = self._whole = self._goes_on = False
        self._waiting = self._loop.create_future()
        self._transport.write(request)
        return await self._waiting

    def abort(self) -> None:
        self._transport.abort()

    # -- what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by type

    def data_received(self, data: bytes) -> None:
        if self._waiting is None or self._waiting.done():  # nobody asked
            self._goes_on = False
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._goes_on = False
            if not self._whole:
                self._waiting.set_exception(Broken("The server does not speak HTTP/1.1."))
                return
        if self._whole:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if self._waiting is None or self._waiting.done():
            return
        bounded = "content-length" in self._headers or "transfer-encoding" in self._headers
        if exc is None and self._begun and not bounded:  # such an answer ends with the connection
            self._finish()
        else:
            self._waiting.set_exception(Broken("The connection was lost before the whole answer."))

    def _finish(self) -> None:
        assert self._waiting is not None
        self._used_at = self._loop.time()
        self._waiting.set_result(Answer(self._parser.get_status_code(), self._headers, b"".join(self._parts)))

    # -- what the parser tells

    def on_message_begin(self) -> None:
        if self._whole:
            self._goes_on = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._whole:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._begun = True

    def on_body(self, body: bytes) -> None:
        if not self._whole:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._whole:
            return
        if self._parser.get_status_code() < 200:  # 100 or 103: the answer is still to come
            self._headers, self._begun = {}, False
            return
        self._whole, self._goes_on = True, self._parser.should_keep_alive()

"""A real HTTP server for tests, which can misbehave as real ones do.

HTTP/1.1 over a loopback socket, by hand: an ASGI server would protect its clients from exactly what is wanted here,
a body shorter than promised and a connection that is cut. It runs in a thread with a loop of its own, so that it
serves any test, synchronous ones and those that start the service as a process included.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What arrived; header names in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Cut(Enum):
    """Where the connection is cut."""

    NEVER = auto()
    BEFORE_ANSWER = auto()
    IN_BODY = auto()


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """What goes back, `delay_s` after the request has been read."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    cut: Cut = Cut.NEVER

    def encode(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines.append(f"content-length: {len(self.body)}")
        body = self.body[: len(self.body) // 2] if self.cut is Cut.IN_BODY else self.body
        return "\r\n".join([*lines, "", ""]).encode() + body


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


class HttpServer:
    """Answers every request with `answer(request)`; use it with `with` or `async with`."""

    def __init__(self, answer: Callable[[HttpRequest], ScriptedAnswer]) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake server", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(timeout=10)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        self.__exit__(kind, exc, at)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the client, or the test, is done
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        answer = self._answer(await _read(reader))
        await asyncio.sleep(answer.delay_s)
        if answer.cut is Cut.BEFORE_ANSWER:
            return False
        writer.write(answer.encode())
        await writer.drain()
        return answer.cut is Cut.NEVER


async def _read(reader: asyncio.StreamReader) -> HttpRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    return HttpRequest(method, parts.path, dict(parse_qsl(parts.query)), headers, body)

"""The application behind its real server on a free port, and a client that speaks HTTP by hand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI
from starlette.types import Message

from service.launch.http_protocol import BoundedHttp


@asynccontextmanager
async def listening(app: FastAPI, *, most: int | None = None) -> AsyncIterator[tuple[str, int]]:
    """Host and port of the server; `app` is started already. `most`: connections that it takes."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app, http=BoundedHttp, lifespan="off", log_config=None, access_log=False, limit_concurrency=most
        )
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        serving = asyncio.create_task(server.serve([bound]))
        while not server.started:  # noqa: ASYNC110 (it has no event to wait for)
            await asyncio.sleep(0.01)
        try:
            yield bound.getsockname()
        finally:
            server.should_exit = True
            server.force_exit = True
            await serving


@dataclass
class RawConnection:
    """A connection on which a test sends what it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def answer(self, within_s: float = 5.0) -> tuple[int, str]:
        """Status and head of the answer, whose body is read as well."""
        async with asyncio.timeout(within_s):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = head.partition("content-length: ")[2].partition("\r\n")[0]
            await self.reader.readexactly(int(length or 0))
        return int(head.split(" ", 2)[1]), head

    async def send_for_ever(self, chunk: bytes) -> None:
        """Returns when the server takes no more."""
        with contextlib.suppress(ConnectionError):
            while True:
                self.writer.write(chunk)
                await self.writer.drain()

    async def ended(self, within_s: float = 5.0) -> None:
        """Returns when the server has closed the connection."""
        async with asyncio.timeout(within_s):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(65_536):
                    pass


@asynccontextmanager
async def connection(address: tuple[str, int], *, source: str = "127.0.0.1") -> AsyncIterator[RawConnection]:
    reader, writer = await asyncio.open_connection(*address, local_addr=(source, 0))
    try:
        yield RawConnection(reader, writer)
    finally:
        writer.close()


async def asked(app: FastAPI, request: bytes, *bodies: bytes) -> tuple[int, bytes, int]:
    """Status and body of the answer, and how many messages of the body the application has taken. `request`: its head.
    After the last message of `bodies` nothing comes for a long time."""
    lines = request.decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    pairs = [line.split(": ", 1) for line in lines[1:] if line]
    headers = [(name.lower().encode(), value.encode()) for name, value in pairs]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
    sent: list[Message] = []
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        if taken == len(bodies):
            await asyncio.sleep(30)
        taken += 1
        return {"type": "http.request", "body": bodies[taken - 1], "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"], taken


def head(path: str, key: str | None, **headers: str | int) -> bytes:
    """The head of a POST request."""
    lines = [f"POST {path} HTTP/1.1", "Host: test", "Content-Type: application/json"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()

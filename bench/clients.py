"""An HTTP client for generating load with little CPU, since generator and service share the machine.

Keep-alive HTTP/1.1 over asyncio streams takes about a fifth of the CPU of a full client library. Bodies are serialised
before the clock starts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bench.numbers import Pace

LOST = (OSError, EOFError, asyncio.IncompleteReadError, TimeoutError)
"""The connection ended without an answer: whether the request was carried out is unknown."""


@dataclass(frozen=True, slots=True)
class TimedResponse:
    """An HTTP answer; `ms` from the first byte sent to the last one read."""

    status: int
    body: bytes
    ms: float
    retry_after: bytes | None = None

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Client:
    """One connection at a time, opened when needed. Not for concurrent use: make one per worker."""

    def __init__(self, url: str, key: str, *, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._head = (
            f"Host: {parts.netloc}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n".encode()
        )
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> TimedResponse:
        """Raises one of LOST when there is no answer."""
        return await self.request("POST", path, body, headers or {})

    async def get(self, path: str) -> TimedResponse:
        return await self.request("GET", path, b"", {})

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> TimedResponse:
        """The same with any method."""
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        sent = f"{method} {path} HTTP/1.1\r\n{extra}Content-Length: {len(body)}\r\n".encode() + self._head + b"\r\n"
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                reader, writer = await self._connection()
                writer.write(sent + body)
                status, fields, found = await _read(reader)
        except BaseException:
            await self.close()  # else the next request would read this answer
            raise
        return TimedResponse(status, found, (time.perf_counter() - began) * 1000, fields.get(b"retry-after"))

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection(self._host, self._port)
        return self._streams


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes], bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    fields = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines[1:])}
    return int(lines[0].split(b" ", 2)[1]), fields, await reader.readexactly(int(fields[b"content-length"]))


@dataclass(frozen=True, slots=True)
class LoadRun:
    """The answers to one run of load; `generator_cpu`: the generator's share of one core, 0..1."""

    answers: list[TimedResponse]
    wall_s: float
    generator_cpu: float
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pace", Pace.of([answer.ms for answer in self.answers], self.wall_s))


async def post_all(url: str, key: str, path: str, bodies: Sequence[bytes], *, clients: int) -> LoadRun:
    """Sends every body once over `clients` connections, each as soon as its connection is free (a closed loop). The
    answers are in the order of the bodies."""
    rest = iter(enumerate(bodies))
    answers: dict[int, TimedResponse] = {}

    async def work() -> None:
        client = Client(url, key)
        for place, body in rest:
            answers[place] = await client.post(path, body)
        await client.close()

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    wall_s = time.perf_counter() - began
    return LoadRun([answers[place] for place in sorted(answers)], wall_s, (time.process_time() - cpu) / wall_s)

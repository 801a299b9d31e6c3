"""The service is quiet: no connection beyond this machine, no long work on the event loop, no telemetry."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from httpx2 import AsyncClient

reached: list[Any] = []


def _record(name: str, arguments: tuple[Any, ...]) -> None:
    if name in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        reached.append((name, arguments[1] if name != "socket.getaddrinfo" else arguments[0]))


sys.addaudithook(_record)


def is_remote(where: Any) -> bool:
    """Whether an address is on another machine."""
    host = where[0] if isinstance(where, tuple) else where
    if not isinstance(host, str) or host.startswith("/") or host in ("", "localhost"):
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True


async def test_no_connection_beyond_this_machine(client: AsyncClient) -> None:
    reached.clear()
    await client.post("/v1/memories", json={"content": "Meeting at 3pm tomorrow in Hamburg", "user_id": "iris"})
    await client.get("/v1/memories/search", params={"query": "meeting", "user_id": "iris"})
    await client.get("/v1/health")
    assert [where for _, where in reached if is_remote(where)] == []


SPY = """
import sys
reached = []
sys.addaudithook(lambda name, args: reached.append((name, args)) if name in
                 ("socket.connect", "socket.getaddrinfo", "socket.sendto") else None)
import asyncio, os
from service.providers.choose import open_embedder_of
from service.providers.local import DIMENSION, MODEL
from service.kit.settings import Settings
async def main():
    embedder = open_embedder_of(Settings(), MODEL, DIMENSION)
    await embedder.embed(["a text"])
    await embedder.close()
asyncio.run(main())
assert os.environ.get("ORT_DISABLE_TELEMETRY") == "1", "telemetry"
assert not reached, reached
import onnxruntime
print("quiet")
"""


def test_the_local_model_is_silent() -> None:
    """In a process of its own, so that the environment of the first import is seen."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORT_")}
    done = subprocess.run([sys.executable, "-c", SPY], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.strip() == "quiet"


@contextmanager
def watched() -> Iterator[list[tuple[float, str]]]:
    """Every callback of the event loop with the CPU milliseconds it took: the clock of a busy machine says nothing."""
    found: list[tuple[float, str]] = []
    original = asyncio.events.Handle._run

    def run(self: Any) -> None:
        began = time.thread_time()
        original(self)
        found.append(((time.thread_time() - began) * 1_000, repr(self)))

    asyncio.events.Handle._run = run  # type: ignore[method-assign]
    try:
        yield found
    finally:
        asyncio.events.Handle._run = original  # type: ignore[method-assign]


SENTENCE = "On {n} May the team in Hamburg decided to move shelf {n} because the old one leaks. "


@pytest.mark.parametrize(
    ("characters", "at_most_ms"),
    [(300, 30), (5_000, 40), (200_000, 60)],
)
async def test_a_long_text_does_not_stop_the_loop(client: AsyncClient, characters: int, at_most_ms: int) -> None:
    """The aim is 2 ms; a slow shared machine measures several times that for the framework alone."""
    await client.post("/v1/memories", json={"content": SENTENCE.format(n=0), "user_id": "warm"})
    text = "".join(SENTENCE.format(n=number) for number in range(characters // len(SENTENCE) + 1))
    with watched() as callbacks:
        answer = await client.post("/v1/memories", json={"content": text, "user_id": "iris"})
    assert answer.status_code == 201, answer.text
    slowest = max(callbacks)
    assert slowest[0] < at_most_ms, f"{slowest[0]:.0f} ms of CPU in {slowest[1][:200]}"

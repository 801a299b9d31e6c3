"""Many connections that ask for nothing: whoever has a key, and the probe, are answered."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from fastapi import FastAPI

from service.launch import http_protocol
from service.launch.http_protocol import BoundedHttp
from tests.conftest import Tenant
from tests.support.listening import RawConnection, connection, head, listening

LIVEZ = b"GET /livez HTTP/1.1\r\nHost: test\r\n\r\n"
MOST = 8
LIMIT_S = 0.1 if os.environ.get("THOROUGH") else 1.0
"""What the 95th percentile of answers has to stay below; on a busy machine it says little."""

FLOOD = """
import resource, selectors, socket, sys
count, port, sent = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = selectors.DefaultSelector()
def open_one():
    made = socket.create_connection(("127.0.0.1", port))
    made.send(sent)
    held.register(made, selectors.EVENT_READ)
for _ in range(count):
    open_one()
print("open", flush=True)
while True:
    for key, _ in held.select():
        if not key.fileobj.recv(65_536):
            held.unregister(key.fileobj)
            key.fileobj.close()
            open_one()
"""


@asynccontextmanager
async def flood(address: tuple[str, int], count: int, sent: str) -> AsyncIterator[None]:
    """Within the block another process holds so many connections, and opens those again that are closed."""
    command = [sys.executable, "-c", FLOOD, str(count), str(address[1]), sent]
    running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert running.stdout is not None
    try:
        assert await asyncio.wait_for(running.stdout.readline(), 30) == b"open\n"
        yield
    finally:
        running.kill()
        await running.wait()


def keyed(tenant: Tenant) -> bytes:
    return head("/v1/whoami", tenant.key).replace(b"POST", b"GET", 1)


async def status(raw: RawConnection, request: bytes) -> int:
    raw.writer.write(request)
    return (await raw.answer())[0]


@asynccontextmanager
async def opened(
    address: tuple[str, int], count: int, sent: bytes = b"", **source: str
) -> AsyncIterator[list[RawConnection]]:
    """So many connections; answers to `sent` are read."""
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(await stack.enter_async_context(connection(address, **source)))
            if sent:
                await status(made[-1], sent)
        yield made


@pytest.mark.parametrize("sent", ["", "GET /v1/memories HT"], ids=["nothing", "half a head"])
async def test_a_flood_of_connections_without_a_head(app: FastAPI, tenant: Tenant, sent: str) -> None:
    took: list[float] = []
    async with listening(app, most=800) as address, flood(address, 2_000, sent):
        for request in (LIVEZ, keyed(tenant)) * 30:
            began = time.perf_counter()
            async with connection(address) as raw:
                assert await status(raw, request) == 200
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
    assert sorted(took)[int(len(took) * 0.95)] < LIMIT_S


async def test_of_one_address_the_oldest_without_a_head_is_closed(app: FastAPI, tenant: Tenant) -> None:
    places = http_protocol.places(MOST)
    async with listening(app, most=MOST) as address, opened(address, places // 2) as old:
        async with opened(address, 3), connection(address, source="127.0.0.2") as other:
            for each in old[:3]:
                await each.ended()
            assert await status(old[3], keyed(tenant)) == 200
            assert await status(other, keyed(tenant)) == 200
        async with opened(address, places // 2, source="127.0.0.3"), connection(address) as late:
            assert await status(late, keyed(tenant)) == 200
            assert await status(old[3], keyed(tenant)) == 200, "it has shown its key"


@pytest.mark.parametrize("path", ["/livez", "/v1/whoami", "/nowhere"])
async def test_strangers_that_stay_take_no_places(app: FastAPI, tenant: Tenant, path: str) -> None:
    """Also those that have asked for something once, with no key or a wrong one."""
    request = head(path, "lox_" + "x" * 43).replace(b"POST", b"GET", 1)
    async with listening(app, most=MOST) as address, connection(address) as friend:
        assert await status(friend, keyed(tenant)) == 200
        async with opened(address, 3 * MOST, request), connection(address) as late:
            assert await status(late, keyed(tenant)) == 200
            assert await status(friend, keyed(tenant)) == 200


async def test_a_stranger_in_a_request_gives_its_place_up(app: FastAPI, tenant: Tenant) -> None:
    announced = head("/v1/memories", None, Content_Length=1_000)
    async with listening(app, most=MOST) as address, opened(address, MOST) as strangers:
        for each in strangers:
            each.writer.write(announced)
        async with connection(address) as late:
            assert await status(late, keyed(tenant)) == 200


async def test_livez_answers_where_every_place_is_taken(app: FastAPI, tenant: Tenant) -> None:
    async with listening(app, most=MOST) as address, opened(address, MOST - 1, keyed(tenant)):
        async with connection(address) as late:
            late.writer.write(keyed(tenant))
            full, answered = await late.answer()
            assert (full, "application/problem+json" in answered, "retry-after: 1" in answered) == (503, True, True)
        async with connection(address) as probe:
            assert await status(probe, LIVEZ.replace(b"/livez", b"/livez?from=probe")) == 200
    assert await gone()


async def gone() -> bool:
    """Whether nothing is kept of connections that have ended."""
    for _ in range(100):
        if not BoundedHttp._waiting:
            return True
        await asyncio.sleep(0.02)
    return False

"""Who is let in, and at what cost: the key before the body, slow bodies, unknown keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.access.statements import keys
from service.app import main
from service.domain.errors import RateLimited
from service.http import json_body, middleware
from service.http.key_ring import KeyRing
from service.launch import http_protocol
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.ticks import Ticks
from tests.support.application import client_of, serving
from tests.support.listening import asked, connection, head, listening

MEMORIES = "/v1/memories"
MEGABYTES = 4_000_000


@pytest.fixture
async def address(app: FastAPI) -> AsyncIterator[tuple[str, int]]:
    async with listening(app) as found:
        yield found


# -- the key before the body -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "lox_" + "x" * 43])
async def test_nothing_of_a_body_is_read_without_a_good_key(app: FastAPI, key: str | None) -> None:
    status, _, taken = await asked(app, head(MEMORIES, key, Content_Length=16), b'{"content": "x"}')
    assert (status, taken) == (401, 0)


@pytest.mark.parametrize("sized", [True, False])
async def test_a_large_body_without_a_key_is_answered_while_it_is_sent(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, sized: bool
) -> None:
    """And no more than its beginning is taken from the client, which goes on and on."""
    taken: list[int] = []
    usual = http_protocol.BoundedHttp.data_received

    def counted(self: http_protocol.BoundedHttp, data: bytes) -> None:
        taken.append(len(data))
        usual(self, data)

    monkeypatch.setattr(http_protocol.BoundedHttp, "data_received", counted)
    size: dict[str, str | int] = {"Content_Length": 40 * MEGABYTES} if sized else {"Transfer_Encoding": "chunked"}
    async with connection(address) as raw:
        raw.writer.write(head(MEMORIES, None, **size))
        status, answered = await raw.answer()
        assert (status, "connection: close" in answered) == (401, True)
        chunk = b"x" * 50_000
        async with asyncio.timeout(5):
            await raw.send_for_ever(chunk if sized else b"c350\r\n" + chunk + b"\r\n")
    assert sum(taken) < json_body.MAX_DRAINED_BYTES + 700_000  # what is thrown away, and what a server reads at once


@pytest.mark.parametrize("size", [100_000, 5_000_000, 12_000_000])
@pytest.mark.parametrize("with_key", [True, False])
async def test_who_sends_all_before_reading_reads_the_answer(
    address: tuple[str, int], tenant: Tenant, size: int, with_key: bool
) -> None:
    """As urllib does: the connection is not reset under a client that still sends."""
    too_large = size > MEGABYTES
    body = b" " * size if too_large else b'{"content": 1}'.ljust(size)

    def ask() -> int:
        sent = {"Authorization": f"Bearer {tenant.key}"} if with_key else {}
        with closing(HTTPConnection(*address, timeout=20)) as asked:
            asked.request("POST", MEMORIES, body, {**sent, "Content-Type": "application/json"})
            with asked.getresponse() as answer:
                return answer.status

    assert await asyncio.to_thread(ask) == (401 if not with_key else 413 if too_large else 400)


async def test_a_small_refused_body_does_not_cost_the_connection(address: tuple[str, int], tenant: Tenant) -> None:
    async with connection(address) as raw:
        for key, status in ((None, 401), (tenant.key, 400), (None, 401)):
            raw.writer.write(head(MEMORIES, key, Content_Length=12) + b'{"content":1')
            assert (await raw.answer())[0] == status


async def test_a_body_that_is_announced_too_large_is_not_read(address: tuple[str, int], tenant: Tenant) -> None:
    async with connection(address) as raw:
        raw.writer.write(head(MEMORIES, tenant.key, Content_Length=MEGABYTES + 1))
        status, answered = await raw.answer()
        assert (status, "connection: close" in answered) == (413, True)
        await raw.ended()
    async with connection(address) as raw:
        raw.writer.write(head(MEMORIES, tenant.key, Content_Length=MEGABYTES + 1, Expect="100-continue"))
        assert (await raw.answer())[0] == 413, "curl asks before it sends a megabyte"


async def test_a_chunked_body_is_measured(address: tuple[str, int], tenant: Tenant) -> None:
    async with connection(address) as raw:
        raw.writer.write(head(MEMORIES, tenant.key, Transfer_Encoding="chunked"))
        part = b"%x\r\n%s\r\n" % (500_000, b" " * 500_000)
        raw.writer.writelines([part] * 9)
        assert (await raw.answer())[0] == 413


async def test_open_routes_read_no_body(address: tuple[str, int]) -> None:
    async with connection(address) as raw:
        raw.writer.write(head("/livez", None, Content_Length=MEGABYTES))
        status, answered = await raw.answer()
        assert (status, "connection: close" in answered) == (405, True)
        await raw.ended()


@pytest.mark.parametrize(("path", "status"), [("/livez", 200), ("/v1/whoami", 200), ("/v1/search", 404)])
async def test_head_is_answered_like_get_without_the_body(
    address: tuple[str, int], tenant: Tenant, path: str, status: int
) -> None:
    url, keyed = "http://{}:{}".format(*address), {"Authorization": f"Bearer {tenant.key}"}
    async with AsyncClient(base_url=url, headers=keyed) as client:
        head, got = await client.head(path), await client.get(path)
    assert (head.status_code, got.status_code) == (status, status)
    assert head.content == b""
    assert head.headers["content-type"] == got.headers["content-type"]


# -- slow bodies and heads ---------------------------------------------------------------------------------------------


async def test_half_sent_bodies_hold_nothing(
    address: tuple[str, int], tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_body, "GRACE_S", 0.3)

    async def half() -> int:
        async with connection(address) as raw:
            raw.writer.write(head(MEMORIES, tenant.key, Content_Length=1_000) + b'{"content": ')
            status, _ = await raw.answer()
            return status

    assert await half() == 408  # the key is known then, so that only the bodies are waited for
    began = time.perf_counter()
    assert set(await asyncio.gather(*(half() for _ in range(60)))) == {408}
    assert time.perf_counter() - began < 3


async def test_a_body_that_trickles_in_is_given_up(
    address: tuple[str, int], tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_body, "GRACE_S", 0.2)
    async with connection(address) as raw:
        raw.writer.write(head(MEMORIES, tenant.key, Content_Length=1_000))
        answer = asyncio.create_task(raw.answer())
        for _ in range(40):
            if answer.done():
                break
            raw.writer.write(b" ")
            await asyncio.sleep(0.02)
        assert (await answer)[0] == 408


async def test_the_error_of_a_slow_body(resources: Resources, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_TIMEOUT_S", 0.05)
    settings = resources.settings.model_copy(update={"max_body_bytes": 1_000_000})  # for an application of its own
    async with serving(replace(resources, settings=settings)) as app:
        status, body, _ = await asked(app, head(MEMORIES, tenant.key, Content_Length=16), b"{")
    assert status == 408
    assert b'"code":"request_timeout"' in body
    assert b'"field":"body"' in body


async def test_slow_and_large_heads_are_given_up(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    async with connection(address) as raw:
        raw.writer.write(b"GET /livez HTTP/1.1\r\nX-Long: ")
        raw.writer.write(b"x" * (http_protocol.HEAD_BYTES + 300_000))
        status, answered = await raw.answer()
        assert (status, "application/problem+json" in answered) == (400, True)
    begin, end = b"GET /livez HTTP/1.1\r\nX-Long: ", b"\r\n\r\n"
    for more, status in ((0, 200), (1, 400), (40_000, 400)):  # whole, in one read
        async with connection(address) as raw:
            raw.writer.write(begin + b"x" * (http_protocol.HEAD_BYTES - len(begin + end) + more) + end)
            assert (await raw.answer())[0] == status
    async with connection(address) as raw:
        raw.writer.write(b"GET /livez HTTP/1.1\r\n\r\n" * 4_000)  # 92 kB, each of them small
        assert (await raw.answer())[0] == 200
        assert (await raw.answer())[0] == 200
    monkeypatch.setattr(http_protocol, "HEAD_S", 0.2)
    for begun in (b"", b"GET /livez HTTP/1.1\r\nX-Slow: "):
        async with connection(address) as raw:
            raw.writer.write(begun)
            await raw.ended(within_s=2)
    async with connection(address) as raw:
        raw.writer.write(b"GET /livez HTTP/1.1\r\n\r\n")
        assert (await raw.answer())[0] == 200
        raw.writer.write(b"GET /livez HTTP/1.1\r\nX-Slow: ")
        await raw.ended(within_s=2)


# -- unknown keys ------------------------------------------------------------------------------------------------------


async def test_a_key_that_was_tried_before_it_was_made_works_at_once(database: Database) -> None:
    ring, secret = KeyRing(database), keys.new_secret()
    assert await ring.caller(secret) is None
    issued = await keys.create_workspace(database, "late", rights=keys.EVERY_RIGHT, secret=secret)
    found = await ring.caller(secret)
    assert found is not None
    assert found.workspace_id == issued.workspace_id


async def test_an_address_with_many_wrong_keys_is_told_to_wait(database: Database, tenant: Tenant) -> None:
    clock = Ticks()
    ring = KeyRing(database, failed_per_min=3, clock=clock)
    assert await ring.caller(tenant.key, "192.0.2.7") is not None
    for number in range(3):
        assert await ring.caller(f"wrong {number}", "192.0.2.7") is None
    for wrong in ("wrong 0", "wrong 9"):
        with pytest.raises(RateLimited) as refused:
            await ring.caller(wrong, "192.0.2.7")
        assert refused.value.retry_after_s == pytest.approx(20)
    clock.now += 10
    assert await ring.caller(tenant.key, "192.0.2.7") is not None, "a key that worked goes on working"
    assert await ring.caller("wrong 9", "192.0.2.8") is None, "another address"
    clock.now += 10
    assert await ring.caller("wrong 9", "192.0.2.7") is None


async def test_the_answer_to_many_wrong_keys(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "FAILED_KEYS_PER_MIN", 2)
    async with serving(resources) as app:
        statuses = []
        for number in range(3):
            async with client_of(app, f"wrong {number}") as client:
                answer = await client.get("/v1/whoami")
                statuses.append(answer.status_code)
        async with client_of(app, None) as nobody:
            assert (await nobody.get("/v1/whoami")).status_code == 401, "no key at all costs nothing"
    assert statuses == [401, 401, 429]
    assert answer.json()["code"] == "rate_limited"
    assert int(answer.headers["Retry-After"]) >= 1


async def test_a_new_key_works_at_once(client: AsyncClient, app: FastAPI) -> None:
    made = await client.post("/v1/api-keys", json={"name": "new", "rights": ["memory:read"]})
    async with client_of(app, made.json()["api_key"]) as new:
        assert (await new.get("/v1/whoami")).status_code == 200


# -- more than it can do -----------------------------------------------------------------------------------------------


async def test_a_burst_is_answered_or_refused_at_once(client: AsyncClient) -> None:
    """32 at once of a workspace, as ever they come; of more some are told to come again, and are not kept waiting."""

    async def store(number: int) -> tuple[int, str | None, float]:
        began = time.perf_counter()
        answer = await client.post(MEMORIES, json={"content": f"Note {number} of a burst", "user_id": f"u{number}"})
        return answer.status_code, answer.headers.get("Retry-After"), time.perf_counter() - began

    few = await asyncio.gather(*(store(number) for number in range(32)))
    assert {status for status, _, _ in few} == {201}
    many = await asyncio.gather(*(store(number) for number in range(100, 200)))
    assert {(status, wait) for status, wait, _ in many} == {(201, None), (429, "1")}
    assert sum(status == 201 for status, _, _ in many) >= 32
    slowest = max(took_s for status, _, took_s in many if status == 429)
    assert slowest < max(took_s for status, _, took_s in many if status == 201), "who is refused does not wait"


async def test_a_workspace_that_floods_makes_room_for_another(client: AsyncClient, other_client: AsyncClient) -> None:
    async def search(of: AsyncClient, number: int) -> int:
        body = {"query": f"Who is number {number}?", "user_id": "alice"}
        return (await of.post(f"{MEMORIES}/search", json=body)).status_code

    flooding = [asyncio.create_task(search(client, number)) for number in range(100)]
    await asyncio.sleep(0)
    found = await asyncio.gather(*(search(other_client, number) for number in range(6)))
    assert set(found) == {200}
    assert set(await asyncio.gather(*flooding)) == {200, 429}

"""Reads from a standby over real streaming replication: what was written is seen, and no read fails."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from sqlalchemy import text

from bench.standby import asked
from bench.superuser import login_url
from service.domain.access import NO_WALL
from service.observability.metrics import REPLICA_FALLBACKS, REPLICA_READS
from service.postgres.engine import Access, ReplicaFailed, driver
from service.postgres.replicas import Replica, RequestPosition, open_replicas
from service.postgres.roles import APP
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import client_of
from tests.support.standby import (
    MAX_LAG_S,
    POSITION,
    PositionedClient,
    StandbyServer,
    reading_from,
    standing_by,
    terminate_backend,
    usable,
)
from tests.support.workers import until
from tests.thorough import many

USERS, ROUNDS = 4, many(50, 500)
"""Users write and read at the same time, each so often."""


@pytest.fixture(scope="module")
def standby(owner_url: str) -> Iterator[StandbyServer]:
    with standing_by(owner_url) as found:
        yield found


@pytest.fixture
async def replicated(standby: StandbyServer, resources: Resources) -> AsyncIterator[FastAPI]:
    async with reading_from(standby, resources) as app:
        yield app


@asynccontextmanager
async def unsteady(standby: StandbyServer, seed: int) -> AsyncIterator[None]:
    """The standby delays, pauses and resumes at random during the block, and has caught up at its end."""
    chance = random.Random(seed)

    async def disturb() -> None:
        while True:
            await standby.ask("SELECT pg_wal_replay_resume()")
            await standby.delay(chance.choice((0, 0, 10, 40, 100)))
            await asyncio.sleep(chance.uniform(0.1, 0.6))
            if chance.random() < 0.3:
                await standby.ask("SELECT pg_wal_replay_pause()")
                await asyncio.sleep(chance.uniform(0.05, 0.3))

    disturbing = asyncio.create_task(disturb())
    try:
        yield
    finally:
        disturbing.cancel()
        await asyncio.gather(disturbing, return_exceptions=True)
        await standby.ask("SELECT pg_wal_replay_resume()")
        await standby.delay(0)


def reads(target: str) -> float:
    return float(REPLICA_READS.labels(target)._value.get())


async def has_read(times: float) -> bool:
    return reads("replica") >= times


@pytest.mark.timeout(many(120, 1200))
async def test_each_reads_what_it_wrote(replicated: FastAPI, standby: StandbyServer, tenant: Tenant) -> None:
    before = reads("replica")
    async with unsteady(standby, seed=1):
        seen = await asyncio.gather(*(_write_and_read(replicated, tenant, user) for user in range(USERS)))
    assert [each for one in seen for each in one] == []
    assert reads("replica") - before > USERS * ROUNDS / 10  # the standby was asked


async def _write_and_read(app: FastAPI, tenant: Tenant, user: int) -> list[str]:
    """Writes and reads in random order; returns what was not seen."""
    chance, client, stale = random.Random(user), PositionedClient(app, tenant), list[str]()
    scope, texts = {"user_id": f"u{user}"}, dict[str, str]()

    async def answer(method: str, path: str, **request: Any) -> Any:
        found = await client.send(method, path, **request)
        assert found.status_code < 300, found.text
        return found.json()

    for number in range(ROUNDS):
        write = chance.random()
        if write < 0.5 or not texts:
            content = f"Parcel {number} of {user} has {chance.randrange(10_000)} stamps"
            stored = await answer("POST", "/v1/memories", json={"content": content, **scope})
            texts[stored["results"][0]["id"]] = content
        elif write < 0.75:
            changed = chance.choice(list(texts))
            texts[changed] = f"Parcel {number} of {user} now has {chance.randrange(10_000)} stamps"
            await answer("PATCH", f"/v1/memories/{changed}", json={"content": texts[changed]})
        else:
            gone = chance.choice(list(texts))
            await answer("DELETE", f"/v1/memories/{gone}")
            del texts[gone]
        read = chance.choice(("list", "search", "get", "history"))
        if read == "list":
            page = await answer("GET", "/v1/memories", params={"limit": 1000, **scope})
            if {each["id"]: each["memory"] for each in page["results"]} != texts:
                stale.append(f"list {number}")
        elif read == "search" and texts:
            wanted = next(reversed(texts))
            page = await answer("POST", "/v1/memories/search", json={"query": texts[wanted], "limit": 100, **scope})
            if texts[wanted] not in [each["memory"] for each in page["results"]]:
                stale.append(f"search {number}")
        elif texts:
            wanted = chance.choice(list(texts))
            tail = "/history" if read == "history" else ""
            found = await answer("GET", f"/v1/memories/{wanted}{tail}")
            current = found["results"][-1]["new_memory"] if tail else found["memory"]
            if current != texts[wanted]:
                stale.append(f"{read} {number}: {current}")
    await client.http.aclose()
    return stale


async def test_without_a_position_nothing_older_than_the_bound(
    replicated: FastAPI, standby: StandbyServer, tenant: Tenant
) -> None:
    stored: list[tuple[float, str]] = []
    late: list[str] = []
    before = reads("replica")
    async with client_of(replicated, tenant.key) as client, unsteady(standby, seed=2):
        ends = time.monotonic() + many(5, 30)

        async def write() -> None:
            while time.monotonic() < ends:
                body = {"content": f"Crate {len(stored)} is in hall {len(stored) * 7}", "user_id": "bounded"}
                answer = await client.post("/v1/memories", json=body)
                stored.append((time.monotonic(), answer.json()["results"][0]["id"]))
                await asyncio.sleep(0.03)

        async def read() -> None:
            while time.monotonic() < ends:
                due = {each for at, each in stored if at < time.monotonic() - MAX_LAG_S}
                page = await client.get("/v1/memories", params={"user_id": "bounded", "limit": 1000})
                late.extend(due - {each["id"] for each in page.json()["results"]})
                await asyncio.sleep(0.01)

        await asyncio.gather(write(), read(), read())
    assert late == []
    assert reads("replica") > before


async def test_a_paused_standby_is_not_read(replicated: FastAPI, standby: StandbyServer, tenant: Tenant) -> None:
    """Longer than the bound, every read sees everything, because the primary answers."""
    await standby.ask("SELECT pg_wal_replay_pause()")
    try:
        async with client_of(replicated, tenant.key) as client:
            body = {"content": "The ferry leaves at noon", "user_id": "p"}
            assert (await client.post("/v1/memories", json=body)).headers[POSITION]
            await asyncio.sleep(MAX_LAG_S + 0.2)
            before = reads("replica")
            assert len((await client.get("/v1/memories?user_id=p")).json()["results"]) == 1
            assert reads("replica") == before
    finally:
        await standby.ask("SELECT pg_wal_replay_resume()")


async def test_a_standby_is_read_after_a_switch_to_a_new_wal_file(
    replicated: FastAPI, standby: StandbyServer, tenant: Tenant
) -> None:
    """The primary's position is then behind the header of a page that nothing is on."""
    await standby.caught_up()
    await asked(standby.primary.replace("+asyncpg", ""), "SELECT pg_switch_wal()::text")
    await asyncio.sleep(MAX_LAG_S + 0.2)
    before = reads("replica")
    async with client_of(replicated, tenant.key) as client:
        assert (await client.get("/v1/memories?user_id=w")).status_code == 200
    assert reads("replica") == before + 1


async def test_a_killed_standby_fails_no_request(replicated: FastAPI, standby: StandbyServer, tenant: Tenant) -> None:
    seen: Counter[int] = Counter()
    done = asyncio.Event()

    async def read(client: AsyncClient) -> None:
        while not done.is_set():
            for path in ("/v1/memories?user_id=k", "/v1/memories/search?user_id=k&query=lamp"):
                seen[(await client.get(path)).status_code] += 1

    async with client_of(replicated, tenant.key) as client:
        await client.post("/v1/memories", json={"content": "The lamp is green", "user_id": "k"})
        reading = [asyncio.create_task(read(client)) for _ in range(4)]
        for _ in range(many(2, 10)):
            before = reads("replica")
            await until(partial(has_read, before + 20))
            standby.kill()
            await asyncio.sleep(0.3)
            standby.server.start()
            await usable(replicated.state.resources.replicas)
        done.set()
        await asyncio.gather(*reading)
    assert seen.keys() == {200}, seen


@pytest.mark.parametrize("ended_by", ["terminated", "conflict"])
async def test_a_read_that_breaks_off_is_repeated_on_the_primary(
    replicated: FastAPI, standby: StandbyServer, tenant: Tenant, monkeypatch: pytest.MonkeyPatch, ended_by: str
) -> None:
    opened, broken = Replica.open, list[int]()

    async def doomed(self: Replica, opening: str, position: int) -> Any:
        session = await opened(self, opening, position)
        if session is not None:
            connection = await driver(session)
            broken.append(connection.get_server_pid())
            if ended_by == "terminated":
                await terminate_backend(standby.url, connection)
            else:
                with pytest.raises(Exception, match="recovery"):
                    await connection.execute("DO $$BEGIN RAISE EXCEPTION 'recovery' USING ERRCODE = '40001'; END$$")
        return session

    async with client_of(replicated, tenant.key) as client:
        await client.post("/v1/memories", json={"content": "The kite is red", "user_id": "b"})
        failed = REPLICA_FALLBACKS.labels("failed")._value.get()
        monkeypatch.setattr(Replica, "open", doomed)
        answer = await client.post("/v1/memories/search", json={"query": "kite", "user_id": "b"})
        assert answer.status_code == 200
        assert [each["memory"] for each in answer.json()["results"]] == ["The kite is red"]
    assert len(broken) == 1
    assert REPLICA_FALLBACKS.labels("failed")._value.get() == failed + 1


async def test_a_transaction_says_that_its_standby_failed(replicated: FastAPI, workspace: Any) -> None:
    res: Resources = replicated.state.resources
    assert res.replicas is not None
    position = RequestPosition(res.replicas, source="replicas")
    with pytest.raises(ReplicaFailed):
        async with res.db.within(NO_WALL, wal_position=position).read(workspace) as session:
            await session.execute(text("SELECT * FROM no_such_table"))


async def test_what_writes_or_reads_unlogged_tables_stays_on_the_primary(replicated: FastAPI, tenant: Tenant) -> None:
    client = PositionedClient(replicated, tenant)
    before = reads("replica"), reads("primary")
    notes = "/v1/working/s1"
    for _ in range(3):
        put = await client.send("PUT", f"{notes}/items/colour?user_id=w", json={"value": "blue"})
        assert put.status_code < 300, put.text
        assert (await client.send("GET", f"{notes}?user_id=w")).status_code == 200
        assert (await client.send("GET", "/v1/changes")).status_code == 200
    assert (reads("replica"), reads("primary")) == before


async def test_a_repeated_write_gets_a_position(replicated: FastAPI, tenant: Tenant) -> None:
    client = PositionedClient(replicated, tenant)
    body = {"content": "The door is oak", "user_id": "r"}
    first = await client.send("POST", "/v1/memories", json=body, headers={"Idempotency-Key": "k"})
    again = await client.send("POST", "/v1/memories", json=body, headers={"Idempotency-Key": "k"})
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers[POSITION] >= first.headers[POSITION]


async def test_an_unknown_position_is_read_on_the_primary(replicated: FastAPI, tenant: Tenant) -> None:
    before = reads("replica"), reads("primary")
    async with client_of(replicated, tenant.key) as client:
        for given in ("soon", "0" * 15, "FFFFFFFFFFFFFFFF0"):
            answer = await client.get("/v1/memories?user_id=x", headers={POSITION: given})
            assert answer.status_code == 200
            assert POSITION not in answer.headers
    assert (reads("replica"), reads("primary")) == before


async def test_tools_of_an_agent_see_what_it_wrote(replicated: FastAPI, standby: StandbyServer, tenant: Tenant) -> None:
    headers = {"Accept": "application/json, text/event-stream", "X-User-Id": "agent"}

    async def call(client: AsyncClient, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await client.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer

    await standby.delay(300)
    try:
        async with client_of(replicated, tenant.key) as client:
            for number in range(3):
                kept = await call(client, "remember", content=f"Box {number} holds {number * 3} nails")
                assert kept.headers[POSITION]
                found = await call(client, "search", query=f"Box {number}")
                assert f"holds {number * 3} nails" in found.text
    finally:
        await standby.delay(0)


async def test_a_primary_that_takes_no_writes_gives_no_bound(standby: StandbyServer) -> None:
    """Its position cannot be sampled, so nothing is known about how far a standby is behind."""
    url = login_url(standby.url, APP)
    async with open_replicas(Access(url), [url], max_lag_s=MAX_LAG_S, pool_size=1) as replicas:
        await asyncio.sleep(0.5)
        assert await replicas.open("BEGIN READ ONLY", 0) is None


@pytest.mark.parametrize("other", ["primary", "nothing"])
async def test_what_is_no_standby_is_reported(owner_url: str, other: str, capsys: pytest.CaptureFixture[str]) -> None:
    primary = login_url(owner_url, APP)
    named = {"primary": primary, "nothing": "postgresql+asyncpg://nobody@127.0.0.1:1/none"}[other]
    before = REPLICA_FALLBACKS.labels("unreachable")._value.get()

    async def has_fallen_back() -> bool:
        assert await found.open(["BEGIN READ ONLY"], 0) is None
        return bool(REPLICA_FALLBACKS.labels("unreachable")._value.get() > before)

    async with open_replicas(Access(primary), [named], max_lag_s=MAX_LAG_S, pool_size=1) as found:
        await until(has_fallen_back)
        await until(lambda: asyncio.sleep(0, "replica_unavailable" in capsys.readouterr().out))


async def test_the_watch_ends_even_if_a_look_does_not(standby: StandbyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that is rolling back swallows its cancellation."""
    looked = asyncio.Event()

    async def stubborn(self: Replica) -> None:
        looked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    monkeypatch.setattr(Replica, "look", stubborn)
    url = login_url(standby.url, APP)
    async with asyncio.timeout(10), open_replicas(Access(url), [url], max_lag_s=MAX_LAG_S, pool_size=1):
        await looked.wait()


async def test_without_standbys_nobody_gets_a_position(client: AsyncClient) -> None:
    answer = await client.post("/v1/memories", json={"content": "The path is dry", "user_id": "n"})
    assert answer.status_code == 201
    assert POSITION not in answer.headers


async def test_a_promoted_standby_is_not_read(replicated: FastAPI, standby: StandbyServer, tenant: Tenant) -> None:
    """It may serve what the primary never had. It stays as it is, so this is the last test of the file."""
    await standby.ask("SELECT pg_promote()")
    client = PositionedClient(replicated, tenant)
    before = reads("replica")
    for number in range(3):
        body = {"content": f"Shelf {number} is full", "user_id": "m"}
        assert (await client.send("POST", "/v1/memories", json=body)).status_code == 201
        assert len((await client.send("GET", "/v1/memories?user_id=m")).json()["results"]) == number + 1
    assert reads("replica") == before

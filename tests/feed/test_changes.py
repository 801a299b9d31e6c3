"""The change feed: every change once, in one order, for whoever may read the memory."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.access import Caller, Wall
from service.domain.decision import Action
from service.domain.errors import TooManyRequests
from service.domain.request import Call
from service.domain.scope import Scope
from service.feed.routes import changes
from service.feed.routes.changes import format_cursor, parse_cursor
from service.feed.values import FeedCursor, FeedPosition, MemoryState, kind_of
from service.http import key_ring
from service.kit import process
from service.memories import writing
from service.memories.statements import deletion, history
from service.memories.statements.history import Change
from service.memories.writing import ChangeContext
from service.postgres import migrate
from service.runtime.resources import Resources
from service.runtime.transactions import write_transaction
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import store
from tests.support.listening import listening

LIVE = MemoryState(archived=False, hidden=False, t_invalid=None)
ARCHIVED = MemoryState(archived=True, hidden=False, t_invalid=None)
HIDDEN = MemoryState(archived=False, hidden=True, t_invalid=None)
SOON, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, LIVE, "memory.added"),
        (HIDDEN, LIVE, "memory.added"),
        (LIVE, LIVE, "memory.updated"),
        (LIVE, ARCHIVED, "memory.archived"),
        (ARCHIVED, LIVE, "memory.restored"),
        (LIVE, MemoryState(archived=False, hidden=False, t_invalid=LATER), "memory.ended"),
        (
            MemoryState(archived=False, hidden=False, t_invalid=LATER),
            MemoryState(archived=False, hidden=False, t_invalid=SOON),
            "memory.ended",
        ),
        (
            MemoryState(archived=False, hidden=False, t_invalid=SOON),
            MemoryState(archived=False, hidden=False, t_invalid=LATER),
            "memory.updated",
        ),
        (LIVE, None, "memory.deleted"),
        (LIVE, HIDDEN, "memory.deleted"),
        (None, None, None),
        (None, HIDDEN, None),
        (HIDDEN, None, None),
    ],
)
def test_what_a_reader_is_told(before: MemoryState | None, after: MemoryState | None, kind: str | None) -> None:
    assert kind_of(before, after) == kind


async def read(client: AsyncClient, after: str | None = None, *, limit: int = 100) -> list[dict[str, Any]]:
    """All changes behind `after`, page by page."""
    found: list[dict[str, Any]] = []
    more = True
    while more:
        answer = await client.get("/v1/changes", params={"limit": limit, **({"after": after} if after else {})})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        found, after, more = found + body["results"], body["next_cursor"], body["has_more"]
    return found


def told(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["event"].removeprefix("memory."), each["memory_id"]) for each in found]


async def test_each_change_is_told_once_with_the_memory_as_it_left_it(client: AsyncClient) -> None:
    begin = (await client.get("/v1/changes", params={"after": "now"})).json()
    assert (begin["results"], begin["has_more"]) == ([], False)
    one = await store(client, "Feeds the cat at seven", tags=["cat"], metadata={"a": 1})
    assert (await client.patch(f"/v1/memories/{one}", json={"tags": ["dog"]})).status_code == 200
    assert (await client.patch(f"/v1/memories/{one}", json={"content": "Feeds the dog at eight"})).status_code == 200
    assert (await client.patch(f"/v1/memories/{one}", json={"t_invalid": "2030-01-01"})).status_code == 200
    two = await store(client, "Walks along the harbour wall", user_id="bob")
    assert (await client.delete(f"/v1/memories/{one}")).status_code == 200
    found = await read(client, begin["next_cursor"])
    expected = [("added", one), ("updated", one), ("updated", one), ("ended", one), ("added", two), ("deleted", one)]
    assert told(found) == expected, "what a memory said before is a row of its own, and no change"
    memories = [each["memory"] for each in found]
    assert [each and (each["memory"], each["tags"]) for each in memories] == [
        ("Feeds the cat at seven", ["cat"]),
        ("Feeds the cat at seven", ["dog"]),
        ("Feeds the dog at eight", ["dog"]),
        ("Feeds the dog at eight", ["dog"]),
        ("Walks along the harbour wall", []),
        None,
    ]
    assert [each["version"] for each in memories[:4]] == [1, 2, 3, 4]
    assert [each["user_id"] for each in found] == ["alice"] * 4 + ["bob", "alice"]
    one_by_one = await read(client, begin["next_cursor"], limit=1)
    assert [{**each, "cursor": ""} for each in one_by_one] == [{**each, "cursor": ""} for each in found]
    for number, each in enumerate(found):
        assert [later["id"] for later in await read(client, each["cursor"])] == [e["id"] for e in found[number + 1 :]]


async def test_archived_restored_and_again_under_the_same_id(client: AsyncClient, resources: Resources) -> None:
    one = await store(client, "Keeps bees behind the shed")
    scope = Scope(UUID((await client.get("/v1/whoami")).json()["workspace_id"]), "alice")
    async with write_transaction(scope, resources, Call()) as write:
        assert await writing.archive(ChangeContext(write, scope), [UUID(one)])
    assert (await client.post(f"/v1/memories/{one}/restore")).status_code == 200
    assert (await client.delete(f"/v1/memories/{one}")).status_code == 200
    assert await store(client, "Keeps bees again, this time on the roof", id=one) == one
    found = await read(client)
    assert told(found) == [(kind, one) for kind in ("added", "archived", "restored", "deleted", "added")]
    assert [each["memory"] and each["memory"]["archived"] for each in found] == [False, True, False, None, False]


async def test_what_is_erased_is_told_without_a_word_of_it(client: AsyncClient, tables: Tables) -> None:
    begin = (await client.get("/v1/changes", params={"after": "now"})).json()["next_cursor"]
    one = await store(client, "Grows Xanthorrhoea in pots", user_id="erasable")
    await client.patch(f"/v1/memories/{one}", json={"content": "Grows Xanthorrhoea outdoors"})
    two = await store(client, "Likes the sea in November")
    assert (await client.delete(f"/v1/memories/{one}?purge=true")).status_code == 200
    found = await read(client, begin)
    assert told([each for each in found if each["memory_id"] in (one, two)]) == [("added", two), ("erased", one)]
    assert "Xanthorrhoea" not in json.dumps(found)
    assert "erasable" not in json.dumps(found)


async def test_a_reset_tells_that_everything_is_gone(client: AsyncClient) -> None:
    kept = await store(client, "Paints the fence green every spring")
    gone = await store(client, "Paints the fence blue every autumn")
    await client.delete(f"/v1/memories/{gone}")
    cursor = (await client.get("/v1/changes", params={"after": "now"})).json()["next_cursor"]
    answer = await client.post("/v1/reset")
    assert answer.status_code == 200, answer.text
    assert sorted(told(await read(client, cursor))) == sorted([("erased", kept), ("erased", gone)])
    assert sorted(told(await read(client))) == sorted([("erased", kept), ("erased", gone)])


async def change(session: Any, memory_id: UUID) -> None:
    """Changes a memory as a verb does, in a transaction of the test's."""
    assert await history.lock(session, [memory_id])
    await history.append(session, [Change(memory_id, Action.UPDATE)], generation=1)
    await session.exec_driver_sql("UPDATE memory SET version = version + 1 WHERE id = $1", (memory_id,))


async def test_nothing_is_told_before_what_began_earlier_has_ended(client: AsyncClient, resources: Resources) -> None:
    workspace = UUID((await client.get("/v1/whoami")).json()["workspace_id"])
    one = await store(client, "Collects stamps of small islands")
    cursor = (await client.get("/v1/changes", params={"after": "now"})).json()["next_cursor"]
    async with resources.db.begin(workspace) as slow:
        await change(slow, UUID(one))
        apart = contextvars.Context()  # in this one a transaction is open, and a store would embed with it
        two = await asyncio.create_task(store(client, "Sails a small dinghy on Sundays"), context=apart)
        page = (await client.get("/v1/changes", params={"after": cursor})).json()
        assert page["results"] == []
        assert page["has_more"] is False
    page = (await client.get("/v1/changes", params={"after": page["next_cursor"]})).json()
    assert told(page["results"]) == [("updated", one), ("added", two)]


async def test_changes_of_a_memory_stand_in_their_own_order(client: AsyncClient, resources: Resources) -> None:
    """The transaction that began first may be the second to change a memory: a copy must not bring it back."""
    workspace = UUID((await client.get("/v1/whoami")).json()["workspace_id"])
    first, one = await store(client, "Knits socks of red wool"), await store(client, "Bakes rye bread on Fridays")
    cursor = (await client.get("/v1/changes", params={"after": "now"})).json()["next_cursor"]
    async with resources.db.begin(workspace) as early:
        await change(early, UUID(first))
        async with resources.db.begin(workspace) as late:
            await change(late, UUID(one))
        await deletion.delete_memories(early, [UUID(one)], generation=1)
    found = told(await read(client, cursor))
    assert sorted(found) == sorted([("updated", first), ("updated", one), ("deleted", one)])
    assert found.index(("updated", one)) < found.index(("deleted", one))


async def test_a_walled_key_is_told_of_its_own_alone(client: AsyncClient, app: FastAPI) -> None:
    begin = (await client.get("/v1/changes", params={"after": "now"})).json()["next_cursor"]
    mine = await store(client, "Alice sings in the choir", user_id="alice", channel="music")
    gone = await store(client, "Alice sold her violin", user_id="alice", channel="music")
    other = await store(client, "Bob restores old radios", user_id="bob")
    await client.delete(f"/v1/memories/{gone}")
    away = await store(client, "Alice hides her diary", user_id="alice")
    await client.delete(f"/v1/memories/{away}?purge=true")
    rights = ["memory:read"]
    for wall, expected in (
        ({"user_id": "alice"}, [("added", mine), ("added", gone), ("deleted", gone)]),
        ({"channels": ["music"]}, [("added", mine), ("added", gone), ("deleted", gone)]),
        ({"user_id": "bob"}, [("added", other)]),
        ({"agent_id": "nobody"}, []),
    ):
        made = await client.post("/v1/api-keys", json={"name": "walled", "rights": rights, **wall})
        async with client_of(app, made.json()["api_key"]) as walled:
            assert told(await read(walled, begin)) == expected, wall
    made = await client.post("/v1/api-keys", json={"name": "blind", "rights": ["memory:write"]})
    async with client_of(app, made.json()["api_key"]) as blind:
        assert (await blind.get("/v1/changes")).status_code == 403


async def test_another_workspace_is_told_nothing(client: AsyncClient, other_client: AsyncClient) -> None:
    await store(client, "Plays the accordion at weddings")
    assert await read(other_client) == []


async def test_a_place_that_is_lost_is_said_to_be(client: AsyncClient, resources: Resources) -> None:
    await store(client, "Paddles a canoe down the river")
    place = parse_cursor((await client.get("/v1/changes")).json()["next_cursor"])
    assert place is not None
    old = place.moment - timedelta(days=resources.settings.history.retention_days + 1)
    lost = [
        FeedCursor("other", place.at, place.moment),
        FeedCursor(place.source, FeedPosition(2**62, 1), place.moment),
        FeedCursor(place.source, place.at, old),
    ]
    for each in lost:
        answer = await client.get("/v1/changes", params={"after": format_cursor(each)})
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (410, "place_lost", "after")
    for nonsense in ("x", "bm9wZQ", format_cursor(place)[:-6]):
        answer = await client.get("/v1/changes", params={"after": nonsense})
        assert (answer.status_code, answer.json()["field"]) == (400, "after")


async def test_after_a_restore_into_another_server_history_comes_first(client: AsyncClient, tables: Tables) -> None:
    one = await store(client, "Skates on the frozen canal")
    await client.patch(f"/v1/memories/{one}", json={"tags": ["winter"]})
    workspace = UUID((await client.get("/v1/whoami")).json()["workspace_id"])
    ahead = "UPDATE memory_history SET position = position + 1000000000 WHERE workspace_id = $1 RETURNING 1"
    await tables.fetch(ahead, workspace)
    await client.patch(f"/v1/memories/{one}", json={"tags": ["ice"]})
    assert await read(client) == []
    await tables.fetch(str(migrate.RENUMBER_FEED))
    assert told(await read(client)) == [("added", one), ("updated", one), ("updated", one)]
    assert await tables.fetch(str(migrate.RENUMBER_FEED) + " RETURNING 1") == []


# -- as a stream ----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def stream(at: tuple[str, int], key: str, **headers: str) -> AsyncIterator[httpx2.Response]:
    told = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream", **headers}
    async with (
        AsyncClient(base_url=f"http://{at[0]}:{at[1]}", headers=told, timeout=10.0, trust_env=False) as client,
        client.stream("GET", "/v1/changes") as answer,
    ):
        yield answer


async def events(answer: httpx2.Response, count: int) -> list[dict[str, str]]:
    """The next events of a stream."""
    found: list[dict[str, str]] = []
    fields: dict[str, str] = {}
    async with asyncio.timeout(10):
        async for line in answer.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "event" in fields:
                found.append(fields)
                fields = {}
                if len(found) == count:
                    break
            else:
                fields = {}
    return found


async def test_a_stream_goes_on_with_what_comes_and_is_taken_up_again(
    client: AsyncClient, app: FastAPI, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "POLL_S", 0.05)
    monkeypatch.setattr(changes, "HEARTBEAT_S", 0.1)
    one = await store(client, "Repairs clocks in a small shop")
    async with listening(app) as at:
        async with stream(at, tenant.key) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.aiter_lines()
            assert [await anext(lines) for _ in range(2)] == ["retry: 2000", ""]
            first = [await anext(lines) for _ in range(4)]
            assert first[1] == "event: memory.added"
            assert json.loads(first[2].removeprefix("data: "))["memory"]["id"] == one
            assert await asyncio.wait_for(anext(lines), 5) == ": nothing new"
        two = await store(client, "Reads tide tables for fun")
        async with stream(at, tenant.key, **{"Last-Event-ID": first[0].removeprefix("id: ")}) as answer:
            (event,) = await events(answer, 1)
            assert json.loads(event["data"])["memory_id"] == two
        async with stream(at, tenant.key, **{"Last-Event-ID": "nonsense"}) as answer:
            assert answer.status_code == 400


def test_end_users_have_streams_of_their_own(tenant: Tenant) -> None:
    streams = changes.OpenStreams()
    server = Caller(tenant.workspace_id, uuid4(), frozenset())
    users = [replace(server, wall=Wall(user_id=f"user {number}")) for number in range(25)]
    with contextlib.ExitStack() as opened:
        for user in users:
            streams.check(server)
            for _ in range(changes.STREAMS_PER_CALLER):
                streams.check(user)
                opened.enter_context(streams.counted(user))
            with pytest.raises(TooManyRequests):
                streams.check(user)
        with pytest.raises(TooManyRequests):
            streams.check(server)
        streams.check(replace(server, key_id=uuid4()))
    streams.check(server)


async def test_streams_are_few_and_end_with_their_key_and_the_process(
    client: AsyncClient, app: FastAPI, tenant: Tenant, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "POLL_S", 0.05)
    made = (await client.post("/v1/api-keys", json={"name": "listener", "rights": ["memory:read"]})).json()
    async with listening(app) as at, contextlib.AsyncExitStack() as open_streams:
        running = [
            await open_streams.enter_async_context(stream(at, made["api_key"]))
            for _ in range(changes.STREAMS_PER_CALLER)
        ]
        async with stream(at, made["api_key"]) as refused:
            assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert (await client.delete(f"/v1/api-keys/{made['id']}")).status_code == 204
        for each in running:
            async with asyncio.timeout(5):
                assert [line async for line in each.aiter_lines() if line] == ["retry: 2000"]
        async with stream(at, tenant.key) as last:
            monkeypatch.setattr(process, "_is_shutting_down", True)
            async with asyncio.timeout(5):
                assert [line async for line in last.aiter_lines() if line] == ["retry: 2000"]


@pytest.mark.parametrize("by_token", [False, True], ids=["key", "token"])
@pytest.mark.parametrize("end", ["revoked", "expired"])
@pytest.mark.parametrize("wall", [{}, {"user_id": "alice"}, {"channels": ["music"]}], ids=["none", "user", "channel"])
async def test_a_walled_stream_stays_open_until_its_key_ends(
    client: AsyncClient, app: FastAPI, clock: SetClock, monkeypatch: pytest.MonkeyPatch,
    wall: dict[str, Any], end: str, *, by_token: bool,
) -> None:  # fmt: skip
    """Also when the key is looked up again from within the stream."""
    monkeypatch.setattr(changes, "POLL_S", 0.05)
    monkeypatch.setattr(key_ring, "REMEMBERED_S", 0.0)
    expires = {"expires_at": (clock() + timedelta(seconds=60)).isoformat()} if end == "expired" else {}
    rights = ["memory:read", "tokens"]
    made = (await client.post("/v1/api-keys", json={"name": "x", "rights": rights, **wall, **expires})).json()
    key = made["api_key"]
    if by_token:
        async with client_of(app, key) as server:
            body = {"user_id": "alice", "channels": ["music"], "rights": ["memory:read"]}
            key = (await server.post("/v1/tokens", json=body)).json()["token"]
    async with listening(app) as at, stream(at, key) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 2000"
        await asyncio.sleep(0.5)
        mine = await store(client, "Alice conducts a brass band", user_id="alice", channel="music")
        if wall or by_token:
            await store(client, "Bob restores old radios", user_id="bob", channel="radio")
        async with asyncio.timeout(5):
            data = [line async for line in _until(lines, "data: ")][-1]
        assert json.loads(data.removeprefix("data: "))["memory_id"] == mine
        if end == "revoked":
            assert (await client.delete(f"/v1/api-keys/{made['id']}")).status_code == 204
        else:
            clock.forward(seconds=61)
        async with asyncio.timeout(5):
            assert [line async for line in lines if line] == [], "it ends, and tells nothing of others"


async def _until(lines: AsyncIterator[str], begin: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line.startswith(begin):
            return

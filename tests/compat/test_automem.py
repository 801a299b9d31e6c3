"""AutoMem's contract in process; whose memories its clients see; its ways to send a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.compat.automem import CALLS, AutomemCaller
from tests.conftest import Tenant
from tests.support.application import client_of
from tests.support.calls import body_of, listed, store


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_the_contract_holds(client: AsyncClient, call: Callable[[AutomemCaller], Awaitable[None]]) -> None:
    await call(AutomemCaller(client))


async def test_each_key_has_a_store_of_its_own(app: FastAPI, client: AsyncClient, other_client: AsyncClient) -> None:
    """A key for a user has that user's memories; one for nobody those of the user automem."""
    bobs = await store(client, "Bob's clock", user_id="bob")
    everybodys = await AutomemCaller(client).stored("The clock is slow")
    assert await listed(client, user_id="automem") == {everybodys}
    made = await client.post("/v1/api-keys", json={"name": "bob", "rights": ["memory:read"], "user_id": "bob"})
    async with client_of(app, made.json()["api_key"]) as key:
        bob = AutomemCaller(key)
        assert await bob.recalled(query="clock") == [bobs]
        await bob.refused("GET", f"/memory/{everybodys}", 404, "no memory")
        await bob.refused("POST", "/memory", 403, "memory:write", json={"content": "x"})
    nobody = AutomemCaller(client)
    assert await nobody.recalled(query="clock") == [everybodys]
    for method in ("GET", "DELETE"):
        await nobody.refused(method, f"/memory/{bobs}", 404, "no memory")
    await nobody.refused("POST", "/associate", 404, "no memory", json={"memory1_id": bobs, "memory2_id": everybodys})
    assert await AutomemCaller(other_client).recalled(query="clock") == []


async def test_the_key_also_comes_in_its_own_header(anonymous: AsyncClient, tenant: Tenant) -> None:
    found = AutomemCaller(anonymous)
    assert (await found("GET", "/recall", headers={"X-API-Key": tenant.key}))["status"] == "success"
    await found.refused("GET", "/recall", 401, "in the URL", params={"api_key": tenant.key})


BASE = "/v1/compat/automem"


async def kept(client: AsyncClient, content: str, *tags: str) -> str:
    answer = await client.post(f"{BASE}/memory", json={"content": content, "tags": list(tags)})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["memory_id"]
    return found


async def test_an_id_that_is_no_uuid_is_a_bad_request(client: AsyncClient) -> None:
    boat = await kept(client, "Owns a boat")
    for method, path, body, field in (
        ("GET", "/memory/nothing", None, "id"),
        ("PATCH", "/memory/nothing", {"content": "x"}, "id"),
        ("DELETE", "/memory/nothing", None, "id"),
        ("GET", "/memories/nothing/related", None, "id"),
        ("POST", "/associate", {"memory1_id": boat, "memory2_id": "nothing"}, "memory2_id"),
        ("POST", "/associate", {"memory1_id": "nothing", "memory2_id": boat}, "memory1_id"),
    ):
        answer = await client.request(method, BASE + path, json=body)
        found = answer.json()
        assert (answer.status_code, found["field"], found["error"]) == (400, field, f"{field}: must be a UUID."), path


async def test_associations_that_all_fail_are_told_one_by_one(client: AsyncClient) -> None:
    boat = await kept(client, "Owns a boat")
    wrong = [{"memory1_id": boat, "memory2_id": each} for each in (boat, "nothing", str(uuid4()))]
    answer = await client.post(f"{BASE}/associate", json={"associations": wrong})
    found = answer.json()
    assert (answer.status_code, found["status"], found["created_count"]) == (207, "partial_success", 0)
    assert [each["index"] for each in found["failed"]] == [0, 1, 2]


async def test_a_recall_shows_its_window_and_the_scope_of_its_tags(client: AsyncClient) -> None:
    boat, car = await kept(client, "Owns a red boat", "sea:boat"), await kept(client, "Owns a red car", "land")

    async def recall(**asked: Any) -> dict[str, Any]:
        return await body_of(client.get(f"{BASE}/recall", params=asked))

    for asked in ({"time_query": "today"}, {"time_query": "last 7 days", "query": "red"}, {"start": "2020-01-01"}):
        assert (await recall(**asked))["time_window"]["start"], asked
    assert "time_window" not in await recall(query="red")
    assert "tag_scope" not in await recall(query="red")
    scoped = await recall(query="red", tags="sea")
    assert (scoped["tag_scope"]["filtered"], scoped["count"]) == (True, 1)
    assert "scope_fallback" not in scoped
    assert (await recall(tags="sea"))["tag_scope"]["pool_size_hint"] is None
    filled = await recall(query="red", tags="sea", scope_fallback="true")
    assert [each["id"] for each in filled["results"]] == [boat, car]
    assert ["outside_tag_scope" in each for each in filled["results"]] == [False, True]
    assert (filled["scope_fallback"], filled["count"]) == (True, 2)
    full = await recall(query="red", tags="sea", scope_fallback="true", limit=1)
    assert ("scope_fallback" in full, full["count"]) == (False, 1)


async def test_a_change_shows_the_memory(client: AsyncClient) -> None:
    answer = await client.patch(f"{BASE}/memory/{await kept(client, 'Owns a boat')}", json={"content": "Owns a ship"})
    assert answer.json()["memory"]["content"] == "Owns a ship"

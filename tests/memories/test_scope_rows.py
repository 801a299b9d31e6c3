"""Whose memories are found, in which channels, and what a deletion of the same scope takes."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from tests.support.calls import store

SCOPE_ERROR = "At least one of user_id, agent_id, or run_id must be provided."


async def seen(client: AsyncClient, **scope: Any) -> list[set[str]]:
    """The texts that each way of reading a scope shows."""
    tree = '{"field": "memory", "operator": "ne", "value": "x"}'
    answers = [
        await client.post("/v1/memories/search", json={"query": "what is known", **scope}),
        await client.post("/v1/memories/search", json={"tags": ["t"], **scope}),
        await client.get("/v1/memories/search", params={"query": "what is known", "filters": tree, **scope}),
        await client.get("/v1/memories", params=scope),
        await client.get("/v1/memories/by-tag", params={"tags": "t", **scope}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 5
    return [{each["memory"] for each in answer.json()["results"]} for answer in answers]


async def test_alices_memories_are_not_found_by_bob(client: AsyncClient) -> None:
    await store(client, "of alice", user_id="alice", tags=["t"])
    await store(client, "of bob", user_id="bob", tags=["t"])
    assert await seen(client, user_id="alice") == [{"of alice"}] * 5
    assert await seen(client, user_id="bob") == [{"of bob"}] * 5
    assert await seen(client, user_id="carol") == [set()] * 5


async def test_every_id_that_is_named_must_match(client: AsyncClient) -> None:
    """An id that is not named does not filter."""
    await store(client, "both", user_id="alice", agent_id="guide", tags=["t"])
    await store(client, "alone", user_id="alice", tags=["t"])
    assert await seen(client, user_id="alice", agent_id="guide") == [{"both"}] * 5
    assert await seen(client, user_id="alice", agent_id="other") == [set()] * 5
    assert await seen(client, user_id="bob", agent_id="guide") == [set()] * 5
    assert await seen(client, user_id="alice") == [{"both", "alone"}] * 5
    assert await seen(client, agent_id="guide") == [{"both"}] * 5
    for mode, texts in (("given", {"both", "alone"}), ("exact", {"alone"})):
        strict = {"user_id": "alice", "scope_mode": mode}
        answers = [
            await client.post("/v1/memories/search", json={"query": "what", **strict}),
            await client.get("/v1/memories/search", params={"query": "what", **strict}),
            await client.get("/v1/memories", params=strict),
        ]
        assert [{each["memory"] for each in answer.json()["results"]} for answer in answers] == [texts] * 3


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/memories", {"content": "Likes tea"}),
        ("POST", "/v1/memories", {"messages": [{"role": "user", "content": "Likes tea"}]}),
        ("POST", "/v1/memories/search", {"query": "tea"}),
        ("POST", "/v1/memories/search", {"tags": ["tea"]}),
        ("GET", "/v1/memories/search?query=tea", None),
        ("GET", "/v1/memories", None),
        ("GET", "/v1/memories/by-tag?tags=tea", None),
    ],
)
async def test_no_scope_is_a_scope_error(
    client: AsyncClient, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = await client.request(method, path, json=body)
    found = answer.json()
    assert (answer.status_code, found["code"], found["field"]) == (400, "scope_error", "user_id")
    assert found["error"] == found["detail"] == SCOPE_ERROR


# -- channels ----------------------------------------------------------------------------------------------------------

MEMORIES = {
    "_global": "The key is in the hall drawer",
    "proj": "The map is in the desk drawer",
    "proj2": "The pen is in the kitchen drawer",
}
LISTS = ["/v1/memories", "/v1/memories/by-tag", "/v1/timeline"]


@pytest.fixture
async def stored(client: AsyncClient) -> AsyncClient:
    for channel, text in MEMORIES.items():
        await store(client, text, user_id="ann", channel=channel, tags=["home"], dedup=False)
    return client


async def _texts(client: AsyncClient, url: str, **params: Any) -> list[str]:
    more = {"tags": "home"} if url.endswith("by-tag") else {}
    answer = await client.get(url, params={"user_id": "ann", **more, **params})
    assert answer.status_code == 200, answer.text
    return sorted(each.get("memory") or each["summary"] for each in answer.json()["results"])


@pytest.mark.parametrize("url", LISTS)
async def test_lists_show_every_channel(stored: AsyncClient, url: str) -> None:
    assert await _texts(stored, url) == sorted(MEMORIES.values())
    assert await _texts(stored, url, channel="proj") == sorted((MEMORIES["_global"], MEMORIES["proj"]))


async def test_the_count_and_every_page_agree_with_the_deletion(stored: AsyncClient) -> None:
    counted = (await stored.get("/v1/memories?user_id=ann&count=true&limit=2")).json()
    assert (counted["total"]["value"], len(counted["results"])) == (3, 2)
    rest = (await stored.get("/v1/memories", params={"user_id": "ann", "cursor": counted["next_cursor"]})).json()
    assert len(rest["results"]) == 1
    mem0 = await stored.post("/v1/compat/mem0/v3/memories/", json={"filters": {"user_id": "ann"}})
    assert mem0.json()["count"] == 3
    assert (await stored.delete("/v1/memories?user_id=ann")).json()["deleted"] == 3
    gone = (await stored.get("/v1/memories?user_id=ann&state=deleted")).json()["results"]
    assert len(gone) == 3


async def test_a_key_with_a_channel_of_its_own_lists_that(stored: AsyncClient) -> None:
    wanted = {"name": "app", "rights": ["memory:read"], "defaults": {"channel": "proj"}}
    made = await stored.post("/v1/api-keys", json=wanted)
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['api_key']}"}
    found = await stored.get("/v1/memories?user_id=ann", headers=headers)
    assert len(found.json()["results"]) == 2


@pytest.mark.parametrize("kind", ["goals", "conversations", "strategies"])
async def test_other_lists_do_the_same(client: AsyncClient, kind: str) -> None:
    bodies: dict[str, Any] = {
        "goals": {"description": "Tidy up"},
        "conversations": {"external_id": "talk"},
        "strategies": {"task_type": "tidy", "description": "Tidy", "tool_sequence": ["look", "move"]},
    }
    for channel in MEMORIES:
        body = {"user_id": "ann", "channel": channel, **bodies[kind]}
        if kind == "conversations":
            body["external_id"] += channel
        made = await client.post(f"/v1/{kind}", json=body)
        assert made.status_code == 201, made.text
    assert len((await client.get(f"/v1/{kind}?user_id=ann")).json()["results"]) == 3
    assert len((await client.get(f"/v1/{kind}?user_id=ann&channel=proj")).json()["results"]) == 2

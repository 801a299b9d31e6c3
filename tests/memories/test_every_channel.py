"""A list that names no channel shows every channel of its scope, and a deletion takes what it shows."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from tests.support.calls import store

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

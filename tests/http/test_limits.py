"""Rate limits and page sizes."""

from __future__ import annotations

from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from service.http.buckets import REMEMBERED, Buckets
from tests.support.calls import store


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    clock, key = Seconds(), uuid4()
    buckets = Buckets(clock)
    assert [buckets.take(key, per_s=2, burst=3) for _ in range(4)] == [0, 0, 0, pytest.approx(0.5)]
    clock.now = 0.25
    assert buckets.take(key, per_s=2, burst=3) == pytest.approx(0.25)
    clock.now = 0.5
    assert [buckets.take(key, per_s=2, burst=3) for _ in range(2)] == [0, pytest.approx(0.5)]
    clock.now = 1_000.0
    assert [buckets.take(key, per_s=2, burst=3) for _ in range(4)][2:] == [0, pytest.approx(0.5)]


def test_keys_do_not_share() -> None:
    buckets, one = Buckets(Seconds()), uuid4()
    assert buckets.take(one, per_s=1, burst=1) == 0
    assert buckets.take(one, per_s=1, burst=1) > 0
    for _ in range(REMEMBERED):
        assert buckets.take(uuid4(), per_s=1, burst=1) == 0
    assert buckets.take(one, per_s=1, burst=1) == 0  # forgotten meanwhile


async def test_top_k_is_limit(client: AsyncClient) -> None:
    """Under either name, not under both."""
    for text in ("Zenobia Kwan sails", "Zenobia Marsh sails"):
        await store(client, text, dedup=False)
        name = {"name": text.removesuffix(" sails"), "type": "person", "user_id": "alice"}
        assert (await client.put("/v1/entities", json=name)).status_code in (200, 201)
    here = {"user_id": "alice", "q": "Zenobia"}
    for path in ("/v1/memories/search", "/v1/entities/search"):
        assert len((await client.get(path, params=here)).json()["results"]) == 2
        assert len((await client.get(path, params={**here, "top_k": 1})).json()["results"]) == 1
        both = await client.get(path, params={**here, "top_k": 1, "limit": 1})
        assert (both.status_code, both.json()["field"]) == (400, "limit"), both.text
    body = {"user_id": "alice", "query": "Zenobia"}
    assert len((await client.post("/v1/memories/search", json={**body, "top_k": 1})).json()["results"]) == 1
    assert (await client.post("/v1/memories/search", json={**body, "top_k": 1, "limit": 1})).status_code == 400
    assert (await client.post("/v1/memories/search", json={**body, "top_k": 0})).json()["field"] == "top_k"

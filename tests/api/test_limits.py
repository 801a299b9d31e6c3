"""Does a bucket give what it holds, and fill again? And how much is given at once?"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from service.api.limits import REMEMBERED_KEYS, Buckets
from service.resources import Resources
from tests.api.conftest import client_of, serving
from tests.api.helpers import store
from tests.conftest import Tenant


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    """R17.04"""
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
    for _ in range(REMEMBERED_KEYS):
        assert buckets.take(uuid4(), per_s=1, burst=1) == 0
    assert buckets.take(one, per_s=1, burst=1) == 0  # forgotten meanwhile


async def test_a_page_smaller_than_the_default(resources: Resources, tenant: Tenant) -> None:
    """C17: who says no limit gets a page, who asks for more than one is told."""
    settings = resources.settings.model_copy(update={"max_page_size": 2})
    async with serving(replace(resources, settings=settings)) as app, client_of(app, tenant.key) as client:
        for text in ("Red boat", "Blue boat", "Green boat"):
            await store(client, text, dedup=False)
        here = {"user_id": "alice"}
        for limit, status in ((None, 200), (1, 200), (2, 200), (3, 400), (100, 400)):
            given = {} if limit is None else {"limit": limit}
            for answer in (
                await client.post("/v1/memories/search", json={**here, "query": "boat", **given}),
                await client.get("/v1/memories/search", params={**here, "q": "boat", **given}),
                await client.get("/v1/memories", params={**here, **given}),
            ):
                assert answer.status_code == status, answer.text
                if status == 200:
                    assert len(answer.json()["results"]) == (limit or 2)
                else:
                    assert answer.json()["field"] == "limit"
        first = (await client.get("/v1/memories", params=here)).json()
        rest = (await client.get("/v1/memories", params={**here, "cursor": first["next_cursor"]})).json()
        assert len({each["id"] for each in (*first["results"], *rest["results"])}) == 3

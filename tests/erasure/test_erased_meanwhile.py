"""A request whose memory a bulk delete, which takes no scope lock, erases while it is written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.blocking import blocking
from tests.support.calls import listed, store
from tests.support.judging import judged, tell

ERASE = "DELETE FROM memory WHERE id = $1"
RULED: dict[str, dict[str, Any]] = {
    "updated": {"event": "UPDATE", "id": 1, "text": "Lives in Porto"},
    "retired": {"event": "DELETE", "id": 1},
    "confirmed": {"event": "NONE", "id": 1},
}


@pytest.mark.parametrize("policy", ["in_place", "supersede"])
@pytest.mark.parametrize("ruled", RULED.values(), ids=RULED)
async def test_a_fact_is_decided_again(
    resources: Resources, tenant: Tenant, tables: Tables, owner_url: str, ruled: dict[str, Any], policy: str
) -> None:
    async with judged(resources, tenant, contradiction_policy=policy) as (client, judge):
        old = await store(client, "Lives in Lisbon")
        home = "Lisbon" if ruled["event"] == "NONE" else "Porto"
        judge.say("Lives in Lisbon." if home == "Lisbon" else "Lives in Porto", ruled)
        async with blocking(owner_url, tables, ERASE, old):
            results = await tell(client, f"I live in {home}")
        left = await listed(client, user_id="alice")
        assert old not in left
        # what was confirmed was so when it was said; everything else is a new fact by now
        assert left == set() if ruled["event"] == "NONE" else {each["id"] for each in results} == left
        assert await tables.value("SELECT count(*) FROM memory_source WHERE memory_id = $1", UUID(old)) == 0


async def test_a_text_of_its_own_is_decided_again(
    resources: Resources, tenant: Tenant, tables: Tables, owner_url: str
) -> None:
    async with judged(resources, tenant) as (client, _):
        old = await store(client, "Lives in Lisbon", id="6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
        async with blocking(owner_url, tables, ERASE, old):
            body = {"content": "Lives in Porto", "user_id": "alice", "id": old, "dedup": False}
            answer = await client.post("/v1/memories", json=body)
        assert answer.status_code == 201, answer.text
        assert [each["event"] for each in answer.json()["results"]] == ["ADD"]
        assert await listed(client, user_id="alice") == {old}


async def test_older_news_are_decided_again(client: AsyncClient, tables: Tables, owner_url: str) -> None:
    known = await store(client, "Ann lives in Porto.", timestamp="2026-06-01T00:00:00Z", t_valid="2026-06-01T00:00:00Z")
    async with blocking(owner_url, tables, ERASE, known):
        body = {"content": "Ann lives in Lisbon.", "user_id": "alice", "timestamp": "2026-01-01T00:00:00Z"}
        answer = await client.post("/v1/memories", json=body)
    assert answer.status_code == 201, answer.text
    [added] = answer.json()["results"]
    assert (added["event"], added["kept_as"]) == ("ADD", None)
    assert await listed(client, user_id="alice") == {added["id"]}

"""Requests that change several memories lock them by ascending id, as enrichment does: none of the two gives way."""

from __future__ import annotations

from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.memories import decide
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of, serving
from tests.support.blocking import blocking
from tests.support.calls import store
from tests.support.judging import tell

HOLD = "SELECT id FROM memory WHERE workspace_id = $1 AND id = $2 FOR KEY SHARE"
ERASE = "SELECT id FROM memory WHERE workspace_id = $1 AND id = $2 FOR UPDATE"
IRIS = {"user_id": "iris"}


async def test_a_batch(client: AsyncClient, tenant: Tenant, tables: Tables, owner_url: str) -> None:
    home = await store(client, "Iris lives in Lisbon.", **IRIS)
    job = await store(client, "Iris works at Acme.", **IRIS)
    assert home < job
    news = ["Iris works at Initech now.", "Iris moved to Porto."]
    async with blocking(owner_url, tables, HOLD, tenant.workspace_id, home, job):
        answer = await client.post("/v1/memories/batch", json={"items": [{"content": text, **IRIS} for text in news]})
    results = answer.json()["results"]
    assert [(each["status"], each["results"][0]["event"]) for each in results] == [(200, "UPDATE")] * 2, results
    assert [each["results"][0]["id"] for each in results] == [job, home]


async def test_facts_of_one_conversation(client: AsyncClient, tenant: Tenant, tables: Tables, owner_url: str) -> None:
    (home,) = await tell(client, "I live in Lisbon.")
    (job,) = await tell(client, "I work at Acme.")
    assert home["id"] < job["id"]
    async with blocking(owner_url, tables, HOLD, tenant.workspace_id, home["id"], job["id"]):
        talk = [{"role": "user", "content": f"I don't {what} anymore."} for what in ("work at Acme", "live in Lisbon")]
        answer = await client.post("/v1/memories", json={"messages": talk, "user_id": "alice"})
    results = answer.json()["results"]
    assert [(each["event"], each["id"]) for each in results] == [("UPDATE", job["id"]), ("UPDATE", home["id"])]


async def test_a_batch_with_a_text_that_may_outdate_something(
    resources: Resources,
    embedder: AngleEmbedder,
    tenant: Tenant,
    tables: Tables,
    owner_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = ["Iris drives a Fiat and a Vespa.", "Iris works at Acme."]
    news = ["Iris no longer drives a Fiat.", "Iris works at Initech now."]
    for axis, (old, new) in enumerate(zip(known, news, strict=True)):
        embedder.place(old, 1.0, axis=axis, side=3)
        embedder.place(new, 0.9, axis=axis, side=3)
    monkeypatch.setattr(decide, "CANDIDATES", 1)  # else each sees all of so few
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        car, job = [await store(client, text, **IRIS) for text in known]
        assert car < job
        body = {"items": [{"content": text, **IRIS} for text in news]}
        async with blocking(owner_url, tables, ERASE, tenant.workspace_id, car, job):
            answer = await client.post("/v1/memories/batch", json=body)
        results = answer.json()["results"]
        assert [(each["status"], each["results"][0]["event"]) for each in results] == [(201, "ADD"), (200, "UPDATE")]
        drawn = await tables.fetch("SELECT rel_type FROM memory_edge WHERE target_id = $1", UUID(car))
        assert [row["rel_type"] for row in drawn] == ["MAY_OUTDATE"]

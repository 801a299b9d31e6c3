"""All ways to query behave alike: counted as uses, noted in the audit, limited by the same rights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving
from tests.support.calls import opened, said, store

ALICE = {"user_id": "alice"}


async def test_what_recall_and_context_show_is_counted_as_used(
    resources: Resources, tenant: Tenant, clock: SetClock
) -> None:
    settings = resources.settings.changed(reinforce=True)
    async with serving(replace(resources, settings=settings)) as app, client_of(app, tenant.key) as client:
        memory_id = await store(client, "Priya keeps bees")
        entity = (await client.put("/v1/entities", json={"name": "Priya", "type": "person", **ALICE})).json()
        there = await opened(client, "chat-1")
        await said(client, there, "What does Priya keep?")
        clock.forward(hours=2)
        for reinforce in (True, False):
            body = {"query": "What does Priya keep?", "reinforce": reinforce, **ALICE}
            assert (await client.post("/v1/recall", json=body)).status_code == 200
            params = {"reinforce": str(reinforce).lower()}
            shown = await client.get(f"/v1/conversations/{there}/context", params=params)
            assert [each["id"] for each in shown.json()["memories"]] == [memory_id]
        await app.state.uses.flush()
        preview = {"reinforce": "false"}
        for _ in range(2):
            found = (await client.get(f"/v1/memories/{memory_id}", params=preview)).json()
            assert (found["access_count"], found["last_accessed"]) == (2, clock.now.isoformat())
            await app.state.uses.flush()
        for reads in ({}, preview):
            for path in ("/v1/entities/search", "/v1/entities/graph", "/v1/entities/priya/relations"):
                asked = {"search": {"query": "priya"}, "graph": {"ids": entity["id"]}}.get(path.rpartition("/")[2], {})
                answer = await client.get(path, params={**ALICE, **asked, **reads})
                assert answer.status_code == 200, answer.text
        assert (await client.get(f"/v1/entities/{entity['id']}")).json()["access_count"] == 4


async def test_searches_of_strategies_and_entities_stand_in_the_audit(client: AsyncClient, app: FastAPI) -> None:
    await client.patch("/v1/workspaces/current", json={"settings": {"audit_level": "reads"}})
    way = {"description": "Ask an agent first", "tool_sequence": ["call"], "channel": "work", **ALICE}
    strategy = (await client.post("/v1/strategies", json=way)).json()["id"]
    entity = (await client.put("/v1/entities", json={"name": "Acme", "type": "organization", **ALICE})).json()["id"]
    task = {"task": "Ask kim.weber@example.org first", "channels": ["work"], **ALICE}
    assert (await client.get("/v1/strategies/search", params=task)).status_code == 200
    assert (await client.get("/v1/entities/search", params={"query": "acme", **ALICE})).status_code == 200
    await app.state.reads.flush()
    log = (await client.get("/v1/audit", params={"operation": "retrieve"})).json()["results"]
    names, ways = log
    assert (names["memory_type"], names["affected_ids"], names["query_text"]) == ("entity", [entity], "acme")
    assert (ways["memory_type"], ways["affected_ids"], ways["result_count"]) == ("procedural", [strategy], 1)
    assert "kim.weber" not in ways["query_text"]
    assert set(ways["target_channels"]) == {"_global", "work"}
    assert ways["metadata"]["cross_channel_ids"] == [strategy]


async def test_entities_of_channels_that_are_named(client: AsyncClient) -> None:
    for name, channel in (("Acme", "_global"), ("Acme Labs", "work"), ("Acme Home", "home")):
        await client.put("/v1/entities", json={"name": name, "type": "organization", "channel": channel, **ALICE})

    async def found(**params: Any) -> set[str]:
        answer = await client.get("/v1/entities/search", params={"query": "acme", **ALICE, **params})
        return {each["name"] for each in answer.json()["results"]}

    assert await found() == {"Acme"}
    assert await found(channel="work") == {"Acme", "Acme Labs"}
    assert await found(channels=["work", "home"]) == {"Acme", "Acme Labs", "Acme Home"}
    assert await found(channels="work", limit=1) == {"Acme"}


async def test_without_an_embedder_entities_are_found_by_name(client: AsyncClient, embedder: AngleEmbedder) -> None:
    await client.put("/v1/entities", json={"name": "Acme", "type": "organization", **ALICE})
    embedder.down = True
    answer = await client.get("/v1/entities/search", params={"query": "acme", **ALICE})
    assert answer.status_code == 200, answer.text
    assert [each["name"] for each in answer.json()["results"]] == ["Acme"]
    assert answer.json()["warnings"][0].startswith("embedding_unavailable")


NOTHING = dict.fromkeys(("turns", "facts", "entities", "strategies", "recency"), 0)
BATCH = {"items": [{"content": "x", "importance": 0.5, "importance_level": 5, **ALICE}]}
BOTH = {"start": "2026-02-01", "end": "2026-01-01"}


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/v1/memories/search", {"query": "x", **BOTH}, "start"),
        ("POST", "/v1/memories/search", {"query": "x", "time_query": "today", "start": "2026-01-01"}, "time_query"),
        ("POST", "/v1/memories/search", {"query": "x", "channel": "a", "channels": ["b"]}, "channel"),
        ("POST", "/v1/recall", {}, "query"),
        ("POST", "/v1/recall", {"query": "x", "weights": NOTHING}, "weights"),
        ("POST", "/v1/memories", {}, "content"),
        ("POST", "/v1/memories", {"content": "x", "importance": 0.5, "importance_level": 5}, "importance"),
        ("POST", "/v1/memories", {"content": "x", "t_valid": "2026-02-01", "t_invalid": "2026-01-01"}, "t_valid"),
        ("POST", "/v1/conversations", {"external_id": "a", "run_id": "b"}, "external_id"),
        ("POST", "/v1/memories/batch", BATCH, "items[0].importance"),
    ],
)
async def test_a_check_of_several_fields_names_one(
    client: AsyncClient, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    sent = body if "items" in body else {**body, **ALICE}
    answer = await client.request(method, path, json=sent)
    assert answer.status_code == 400, answer.text
    problem = answer.json()
    assert problem["field"].startswith(field)
    assert problem["detail"].startswith(problem["field"] + ": ")


async def test_a_hit_shows_what_it_is_tied_to_most_strongly(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock
) -> None:
    embedder.place("boats", 1.0)
    embedder.place("The boat", 0.9)
    centre = await store(client, "The boat")
    hidden = {
        "In another channel": {"channel": "work"},
        "Over by now": {"t_invalid": "2020-01-01T00:00:00Z"},
        "Of another run": {"run_id": "r2"},
    }
    fields: dict[str, dict[str, Any]] = {f"Neighbour {number}": {} for number in range(7)} | hidden
    for number, (text, more) in enumerate(fields.items()):
        other = await store(client, text, **more)
        kinds = ("RELATES_TO", "LEADS_TO") if number == 6 else ("RELATES_TO",)
        for kind in kinds:
            body = {"target_id": other, "type": kind, "strength": (number + 1) / 10}
            assert (await client.post(f"/v1/memories/{centre}/relations", json=body)).status_code == 201

    async def connected(**more: Any) -> list[str] | None:
        body = {"query": "boats", "limit": 1, **ALICE, **more}
        answer = await client.post("/v1/memories/search", json=body)
        (hit,) = answer.json()["results"]
        assert hit["id"] == centre
        return None if "connected" not in hit else [each["memory"] for each in hit["connected"]]

    assert await connected() is None
    five = ["Of another run", *(f"Neighbour {number}" for number in (6, 5, 4, 3))]
    assert await connected(connected=True) == five
    assert await connected(connected=True, channels=["work"]) == [five[0], "In another channel", *five[1:4]]
    simple: dict[str, str | int] = {"query": "boats", "limit": 1, "connected": "true", **ALICE}
    (hit,) = (await client.get("/v1/memories/search", params=simple)).json()["results"]
    assert [each["memory"] for each in hit["connected"]] == five
    assert [each["strength"] for each in hit["connected"]] == [1.0, 0.7, 0.6, 0.5, 0.4]

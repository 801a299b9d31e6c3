"""GET /v1/timeline: all kinds of memory once each, by time, within the scope."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.job import Job
from service.memories.jobs import enrich
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import opened, pages, results_of, said, store

ALICE = {"user_id": "alice"}


async def timeline(client: AsyncClient, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/timeline", params={**ALICE, **params}))


async def store_each_kind(client: AsyncClient) -> dict[str, str]:
    """A memory, a turn, a strategy and a goal."""
    memory = await store(
        client, "Moved to Lisbon", timestamp="2026-01-02T00:00:00Z", importance=0.9, metadata={"of": "life"}
    )
    there = await opened(client, "chat-1")
    turn = await said(client, there, "I live in Lisbon now", timestamp="2026-01-03T00:00:00Z")
    learned = {"description": "Ask an agent first", "tool_sequence": ["call"], "success": True, **ALICE}
    strategy = (await client.post("/v1/strategies", json=learned)).json()["id"]
    goal = (await client.post("/v1/goals", json={"description": "Find a flat", **ALICE})).json()["id"]
    return {"semantic": memory, "episodic": turn, "procedural": strategy, "goal": goal}


async def test_all_kinds_in_the_order_of_their_times(client: AsyncClient, clock: SetClock) -> None:
    ids = await store_each_kind(client)
    found = await timeline(client)
    assert {each["memory_type"]: each["id"] for each in found} == ids
    assert [each["memory_type"] for each in found][2:] == ["episodic", "semantic"]
    assert [each["event_time"] for each in found] == sorted((each["event_time"] for each in found), reverse=True)
    of_kind = {each["memory_type"]: each for each in found}
    memory = of_kind["semantic"]
    assert (memory["summary"], memory["importance_score"], memory["access_count"]) == ("Moved to Lisbon", 0.9, 0)
    assert (memory["channel"], memory["archived"], memory["metadata"]["of"]) == ("_global", False, "life")
    assert of_kind["episodic"]["metadata"]["turn_index"] == 0
    assert (of_kind["procedural"]["access_count"], of_kind["goal"]["importance_score"]) == (1, 0.5)


async def test_a_summary_is_a_sentence(client: AsyncClient, resources: Resources, tenant: Tenant) -> None:
    """Before and after enrichment, of every kind; what the caller calls a summary is one."""
    long = "Ana moved to Lisbon. " + "She has a garden there and grows lemons and figs. " * 20
    memory_id = await store(client, long)
    assert [each["summary"] for each in await timeline(client)] == ["Ana moved to Lisbon."]
    await enrich.run(Job(tenant.workspace_id, uuid4(), "enrich", UUID(memory_id), {}, 1, 3, "test"), resources)
    assert [each["summary"] for each in await timeline(client)] == ["Ana moved to Lisbon."]
    await client.post("/v1/goals", json={"description": "Visit Ana. She has lemons.", **ALICE})
    assert [each["summary"] for each in await timeline(client, types="goal")] == ["Visit Ana."]
    await store(client, long + "More", metadata={"summary": "Ana's garden"}, dedup=False)
    assert "Ana's garden" in [each["summary"] for each in await timeline(client)]


async def test_a_query_without_a_vector_gets_the_latest(client: AsyncClient, embedder: AngleEmbedder) -> None:
    for text in ("Plants tulips", "Waters the ferns"):
        await store(client, text)
    embedder.down = True
    found = await timeline(client, query="花园", limit=1)
    assert [(each["summary"], each["similarity"]) for each in found] == [("Waters the ferns", None)]


async def test_a_query_finds_the_nearest_of_every_kind(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """In the order of time, like the whole timeline."""
    ids = await store_each_kind(client)
    embedder.place("gardens", 1.0)
    for number, angle in enumerate((0.9, 0.5, 0.8)):
        text = f"Lemons, {number}"
        embedder.place(text, angle, side=2)
        ids[text] = await store(client, text, dedup=False, timestamp=f"2026-01-0{number + 1}T00:00:00Z")
    found = await timeline(client, query="gardens", limit=2)
    assert [each["id"] for each in found] == [ids["Lemons, 2"], ids["Lemons, 0"]]
    assert [round(each["similarity"], 2) for each in found] == [0.8, 0.9]
    everything = await timeline(client, query="gardens")
    assert {each["memory_type"] for each in everything} == {"semantic", "episodic", "procedural", "goal"}
    assert all(each["similarity"] is None for each in await timeline(client))
    refused = await client.get("/v1/timeline", params={**ALICE, "query": "gardens", "cursor": "x"})
    assert (refused.status_code, refused.json()["field"]) == (400, "cursor")


async def test_a_turn_stored_as_a_memory_appears_once(client: AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "Hello there"}], "infer": False, **ALICE, "run_id": "s1"}
    assert (await client.post("/v1/memories", json=body)).status_code == 201
    assert [(each["memory_type"], each["summary"]) for each in await timeline(client)] == [("episodic", "Hello there")]


async def test_filters_by_type_time_and_archive(client: AsyncClient, tables: Tables) -> None:
    ids = await store_each_kind(client)
    assert [each["id"] for each in await timeline(client, types="goal")] == [ids["goal"]]
    assert len(await timeline(client, types=["goal", "semantic"])) == 2
    assert len(await timeline(client, types="goal, semantic")) == 2
    day = {"start": "2026-01-02T00:00:00Z", "end": "2026-01-03T00:00:00Z"}
    assert [each["id"] for each in await timeline(client, **day)] == [ids["semantic"]]
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(ids["semantic"]))
    assert await timeline(client, **day) == []
    assert [each["archived"] for each in await timeline(client, **day, include_archived=True)] == [True]


async def test_pages_have_no_gaps_and_no_duplicates(client: AsyncClient) -> None:
    await store_each_kind(client)
    for number in range(3):
        await store(client, f"At the same moment, {number}", timestamp="2026-01-02T00:00:00Z")
    whole = await timeline(client)
    paged = [page["results"] async for page in pages(client, "/v1/timeline", user_id="alice", limit=2)]
    read = [each["id"] for page in paged for each in page]
    assert read == [each["id"] for each in whole]
    assert len(set(read)) == 7


async def test_nothing_of_other_scopes_and_tenants(client: AsyncClient, other_client: AsyncClient) -> None:
    await store_each_kind(client)
    await store(client, "A secret project", channel="work")
    assert await timeline(client, user_id="bob") == []
    assert await timeline(other_client) == []
    assert len(await timeline(client)) == 5
    assert len(await timeline(client, channel="_global")) == 4
    assert len(await timeline(client, channel="work")) == 5


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"user_id": ""}, "user_id"),
        ({**ALICE, "types": "dream"}, "types[0]"),
        ({**ALICE, "types": "goal,dream"}, "types[1]"),
        ({**ALICE, "types": ","}, "types"),
        ({**ALICE, "limit": 0}, "limit"),
        ({**ALICE, "cursor": "nonsense"}, "cursor"),
        ({**ALICE, "start": "yesterday"}, "start"),
        ({**ALICE, "start": "2026-01-02", "end": "2026-01-01"}, "start"),
    ],
)
async def test_bad_requests_name_the_field(client: AsyncClient, params: dict[str, Any], field: str) -> None:
    answer = await client.get("/v1/timeline", params=params)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a_scope_is_required_and_reads_are_audited(client: AsyncClient, app: FastAPI) -> None:
    assert (await client.get("/v1/timeline")).json()["code"] == "scope_error"
    await client.patch("/v1/workspaces/current", json={"settings": {"audit_level": "reads"}})
    memory_id = await store(client, f"Something {uuid4()}")
    await timeline(client)
    await app.state.reads.flush()
    (entry,) = (await client.get("/v1/audit", params={"operation": "retrieve"})).json()["results"]
    assert (entry["memory_type"], entry["affected_ids"]) == ("timeline", [memory_id])

"""Search of turns over HTTP, and the latest turns of a scope."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain import sizes
from service.domain.job import Job
from service.runtime.resources import Resources
from service.upkeep.jobs import embed
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import opened, results_of, said


async def found(client: AsyncClient, q: str, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/turns/search", params={"query": q, "user_id": "alice", **params}))


async def test_a_turn_is_found_as_soon_as_it_is_answered(client: AsyncClient) -> None:
    there = await opened(client, "chat")
    for number in range(12):
        kept = await said(client, there, f"A remark about subject {number} and nothing else")
        assert (await found(client, f"A remark about subject {number} and nothing else"))[0]["id"] == kept


async def test_turns_are_found_by_meaning_within_hours_and_channels(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock
) -> None:
    embedder.place("What about water?", 1.0)
    embedder.place("The lake was cold", 0.9)
    embedder.place("We swam in the river", 0.8)
    there = await opened(client, "chat", channel="atlas")
    close = await said(client, there, "The lake was cold")
    clock.forward(hours=5)
    far = await said(client, await opened(client, "other", channel="borealis"), "We swam in the river")
    both = await found(client, "What about water?", channels=["atlas", "borealis"])
    assert [each["id"] for each in both] == [close, far]
    assert both[0]["similarity"] == pytest.approx(0.9, abs=1e-3)
    assert both[0]["score"] > both[1]["score"]
    assert [each["id"] for each in await found(client, "What about water?", channel="atlas")] == [close]
    assert await found(client, "What about water?") == []
    recent = await found(client, "What about water?", channels=["atlas", "borealis"], time_window_hours=1)
    assert [each["id"] for each in recent] == [far]


async def test_an_answer_is_found_by_the_question_before_it(client: AsyncClient, embedder: AngleEmbedder) -> None:
    there = await opened(client, "chat")
    await said(client, there, "How often do you water the ficus?", role="assistant")
    answer = await said(client, there, "Three times a week")
    for number in range(6):
        await said(client, there, f"Filler sentence {number}", role="assistant")
    embedder.down = True  # by words only, and the answer has none of them
    assert answer in [each["id"] for each in (await found(client, "water the ficus", limit=2))]


async def test_what_is_so_now_is_what_was_said_last(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock
) -> None:
    first, second = "The rent is 900 euros", "The rent is 950 euros"
    for text in ("What was the rent?", "What is the rent now?"):
        embedder.place(text, 1.0)
    embedder.place(first, 0.9)
    embedder.place(second, 0.88)
    there = await opened(client, "chat")
    old = await said(client, there, first)
    clock.forward(days=30)
    await said(client, there, "A heron on the roof")
    clock.forward(days=30)
    new = await said(client, there, second)
    assert [each["id"] for each in await found(client, "What was the rent?")][:2] == [old, new]
    assert [each["id"] for each in await found(client, "What is the rent now?")][:2] == [new, old]


async def test_search_within_one_conversation(client: AsyncClient) -> None:
    first, second = await opened(client, "one"), await opened(client, "two")
    kept = await said(client, first, "A heron on the roof")
    await said(client, second, "A heron in the garden")
    for name in (first, "one"):
        assert [each["id"] for each in await found(client, "heron", conversation_id=name)] == [kept]
    missing = await client.get("/v1/turns/search", params={"query": "x", "user_id": "alice", "conversation_id": "none"})
    assert missing.status_code == 404


async def test_turns_of_other_scopes_are_not_found(client: AsyncClient) -> None:
    await said(client, await opened(client, "a", user_id="bob"), "A heron of bob's")
    mine = await said(client, await opened(client, "b", agent_id="planner"), "A heron of alice's")
    assert [each["id"] for each in await found(client, "heron")] == [mine]
    assert [each["id"] for each in await found(client, "heron", agent_id="planner", run_id="b")] == [mine]
    assert await found(client, "heron", agent_id="another") == []
    assert await found(client, "heron", run_id="a") == []


async def test_the_latest_turns_come_first(client: AsyncClient, clock: SetClock) -> None:
    there = await opened(client, "chat")
    old = await said(client, there, "Long ago")
    clock.forward(hours=30)
    ids = [await said(client, there, f"Lately {number}") for number in range(3)]
    recent = await client.get("/v1/turns/recent", params={"user_id": "alice", "hours": 24})
    assert [each["id"] for each in recent.json()["results"]] == ids[::-1]
    whole = await client.get("/v1/turns/recent", params={"user_id": "alice", "limit": 4})
    assert [each["id"] for each in whole.json()["results"]] == [*ids[::-1], old]
    for params in ("user_id=alice&hours=0", "user_id=alice&limit=0", ""):
        assert (await client.get(f"/v1/turns/recent?{params}")).status_code == 400


async def test_bad_requests_name_the_field(client: AsyncClient) -> None:
    for params, field in (
        ("user_id=alice", "query"),
        ("user_id=alice&query=%20", "query"),
        ("user_id=alice&query=x&query=y", "query"),
        ("user_id=alice&query=x&time_window_hours=-1", "time_window_hours"),
        ("user_id=alice&query=x&time_window_hours=nan", "time_window_hours"),
        ("user_id=alice&query=x&limit=1001", "limit"),
        ("query=x", "user_id"),
    ):
        answer = await client.get(f"/v1/turns/search?{params}")
        assert (answer.status_code, answer.json()["field"]) == (400, field), params


async def test_turns_beyond_the_exact_limit_are_found_through_the_index(
    client: AsyncClient,
    resources: Resources,
    tenant: Tenant,
    embedder: AngleEmbedder,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedder.place("What about water?", 1.0)
    embedder.place("The lake was cold", 0.95)
    there = await opened(client, "chat")
    old = await said(client, there, "The lake was cold")
    for number in range(12):
        clock.forward(minutes=1)
        await said(client, there, f"Filler {number}")
    monkeypatch.setattr(sizes, "EXACT_ROWS", 5)
    assert [each["id"] for each in await found(client, "What about water?", limit=1)] == [old]


async def test_turns_of_curated_messages_get_their_vectors_from_a_job(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """Short messages are embedded while facts are extracted; long ones are left to a job."""
    short = {"messages": [{"role": "user", "content": "I keep bees."}], "user_id": "alice", "run_id": "short"}
    assert (await client.post("/v1/memories", json=short)).status_code in (200, 201)
    [turn] = (await client.get("/v1/conversations/short")).json()["turns"]
    assert turn["embedding"] == "stored"
    long = "My name is Ana and I work at Acme. " + "Then we spoke about the weather for a while. " * 200
    body = {"messages": [{"role": "user", "content": long}], "user_id": "alice", "run_id": "intro"}
    assert (await client.post("/v1/memories", json=body)).status_code in (200, 201)
    [turn] = (await client.get("/v1/conversations/intro")).json()["turns"]
    assert turn["embedding"] == "queued"
    assert turn["id"] in {each["id"] for each in await found(client, "who works at Acme?")}
    job = Job(tenant.workspace_id, uuid4(), "embed", None, {"conversation_id": turn["conversation_id"]}, 1, 3, "test")
    for _ in range(2):
        await embed.run(job, resources)
    vectors = "SELECT count(*) FROM turn_vector WHERE turn_id = $1"
    assert await tables.value(vectors, UUID(turn["id"])) == 1
    [turn] = (await client.get("/v1/conversations/intro")).json()["turns"]
    assert turn["embedding"] == "stored"


async def test_hits_of_another_channel_are_audited(app: FastAPI, client: AsyncClient, clock: SetClock) -> None:
    await client.patch("/v1/workspaces/current", json={"settings": {"audit_level": "reads"}})
    here = await said(client, await opened(client, "a", channel="atlas"), "A heron here")
    there = await said(client, await opened(client, "b"), "A heron everywhere")
    assert {each["id"] for each in await found(client, "heron", channel="atlas")} == {here, there}
    await app.state.reads.flush()
    [entry] = (await client.get("/v1/audit", params={"operation": "retrieve"})).json()["results"]
    assert entry["memory_type"] == "episodic"
    assert entry["target_channels"] == ["atlas", "_global"]
    assert entry["metadata"]["cross_channel_ids"] == [there]

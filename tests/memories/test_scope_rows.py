"""Whose memories are found, and what their history tells."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from httpx2 import AsyncClient

from tests.conftest import SetClock
from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import results_of, store

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


async def history(client: AsyncClient, memory_id: str) -> list[dict[str, Any]]:
    return await results_of(client.get(f"/v1/memories/{memory_id}/history"))


async def test_a_near_meaning_is_found_with_a_good_score(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("programming languages", 1.0)
    for text, cosine in (("User likes Python", 0.75), ("User has a cat", 0.1), ("User lives in Oslo", 0.2)):
        embedder.place(text, cosine, side=2)
        await store(client, text)
    body = {"query": "programming languages", "user_id": "alice"}
    first = (await client.post("/v1/memories/search", json=body)).json()["results"][0]
    assert first["memory"] == "User likes Python"
    assert first["score"] > 0.5
    assert first["similarity"] > 0.5


async def test_no_more_than_the_limit(client: AsyncClient) -> None:
    for number in range(5):
        await store(client, f"Memory with number {number}", dedup=False)
    answer = await client.post("/v1/memories/search", json={"query": "memory", "user_id": "alice", "limit": 3})
    assert len(answer.json()["results"]) == 3


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
    assert (answer.status_code, answer.json()["code"], answer.json()["error"]) == (400, "scope_error", SCOPE_ERROR)


async def test_sessions_are_apart(client: AsyncClient) -> None:
    await store(client, "first", run_id="session-1", tags=["t"])
    await store(client, "second", run_id="session-2", tags=["t"])
    assert await seen(client, run_id="session-1") == [{"first"}] * 5
    assert await seen(client, run_id="session-2") == [{"second"}] * 5
    assert await seen(client, user_id="alice", run_id="session-3") == [set()] * 5


async def test_history_tells_what_happened(client: AsyncClient, clock: SetClock) -> None:
    """ADD, then UPDATE, then DELETE with is_deleted, in the order of time, and in that order also at one instant."""
    memory_id = await store(client, "Likes tea")
    assert [entry["event"] for entry in await history(client, memory_id)] == ["ADD"]
    for text in ("Likes coffee", "Likes cocoa"):
        answer = await client.patch(f"/v1/memories/{memory_id}", json={"content": text})
        assert answer.status_code == 200, answer.text
    assert [entry["event"] for entry in await history(client, memory_id)] == ["ADD", "UPDATE", "UPDATE"]
    assert (await client.delete(f"/v1/memories/{memory_id}")).status_code == 200
    entries = await history(client, memory_id)
    assert [entry["event"] for entry in entries] == ["ADD", "UPDATE", "UPDATE", "DELETE"]
    assert [entry["is_deleted"] for entry in entries] == [False, False, False, True]
    assert [entry["new_memory"] for entry in entries[:3]] == ["Likes tea", "Likes coffee", "Likes cocoa"]
    times = [datetime.fromisoformat(entry["recorded_from"]) for entry in entries]
    assert times == sorted(times)

"""Whose memories are found, and what their history tells."""

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

"""Lists have the fields that callers act on; detail=full gives all of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.conversations.models import TurnListItem, TurnResponse
from service.memories.routes.memory_models import MemoryItem, MemoryResponse
from tests.support.application import Tables
from tests.support.calls import store

USER = {"user_id": "alice"}
LEAN, FULL = MemoryItem.model_fields.keys() - {"archived"}, MemoryResponse.model_fields.keys()
TURN_LEAN, TURN_FULL = TurnListItem.model_fields.keys(), TurnResponse.model_fields.keys()

Item = dict[str, Any]


async def every_list(client: AsyncClient, memory_id: str, **detail: str) -> list[tuple[str, Item, bool]]:
    """What every route that lists memories or turns shows: its path, an item, and whether that is a turn."""
    gets: dict[str, Item] = {
        "/v1/memories": {},
        "/v1/memories/by-tag": {"tags": "drink"},
        "/v1/memories/search": {"query": "tea", "turns": False},
        "/v1/turns/recent": {},
        "/v1/turns/search": {"query": "tea"},
        f"/v1/memories/{memory_id}/related": {},
        "/v1/conversations/chat/context": {"query": "tea"},
    }
    posts: dict[str, Item] = {
        "/v1/memories/search": {"query": "tea", "turns": False, **USER},
        "/v1/memories/batch/get": {"ids": [memory_id]},
        "/v1/recall": {"query": "tea", **USER},
    }
    answers = [(path, await client.get(path, params={**USER, **more, **detail})) for path, more in gets.items()]
    answers += [(path, await client.post(path, json={**more, **detail})) for path, more in posts.items()]
    found = []
    for path, answer in answers:
        assert answer.status_code == 200, (path, answer.text)
        body = answer.json()
        for name, are_turns in (("results", "/turns/" in path), ("turns", True), ("facts", False), ("memories", False)):
            found += [(path, each, are_turns) for each in body.get(name, [])[:1]]
    return found


@pytest.fixture
async def memory_id(client: AsyncClient) -> str:
    known = await store(client, "Prefers tea over coffee", tags=["drink"])
    other = await store(client, "Buys tea by the kilo")
    related = await client.post(f"/v1/memories/{known}/relations", json={"target_id": other, "type": "RELATES_TO"})
    assert related.status_code == 201, related.text
    said = {"messages": [{"role": "user", "content": "Shall we have some tea?"}], "session_id": "chat", "infer": False}
    assert (await client.post("/v1/memories", json={**said, **USER})).status_code == 201
    return known


async def test_lists_are_lean(client: AsyncClient, memory_id: str) -> None:
    lists = await every_list(client, memory_id)
    assert len(lists) >= 12, [path for path, *_ in lists]
    for path, item, is_turn in lists:
        lean, full = (TURN_LEAN, TURN_FULL) if is_turn else (LEAN, FULL)
        assert item.keys() & full == lean, path


async def test_full_lists_have_every_field(client: AsyncClient, memory_id: str) -> None:
    whole = (await client.get(f"/v1/memories/{memory_id}")).json()
    assert whole.keys() == FULL
    for path, item, is_turn in await every_list(client, memory_id, detail="full"):
        assert item.keys() >= (TURN_FULL if is_turn else FULL), path
        if item["id"] == memory_id:
            changing = {"access_count", "last_accessed", "salience"}
            assert {name: item[name] for name in FULL - changing} == {name: whole[name] for name in FULL - changing}


@pytest.mark.parametrize("path", ["/v1/memories", "/v1/memories/search", "/v1/turns/recent"])
async def test_another_detail_is_refused(client: AsyncClient, path: str) -> None:
    answer = await client.get(path, params={**USER, "detail": "all"})
    assert (answer.status_code, answer.json()["field"]) == (400, "detail")
    assert "lean" in answer.json()["detail"]
    answer = await client.post("/v1/memories/search", json={"query": "tea", **USER, "detail": "all"})
    assert (answer.status_code, answer.json()["field"]) == (400, "detail")


async def test_archived_memories_say_so(client: AsyncClient, memory_id: str, tables: Tables) -> None:
    archived = await store(client, "Used to drink mate")
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(archived))
    answer = await client.get("/v1/memories", params={**USER, "include_archived": True})
    shown = {each["id"]: each.get("archived") for each in answer.json()["results"]}
    assert (shown[archived], shown[memory_id]) == (True, None)

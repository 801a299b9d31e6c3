"""Memories can be archived; archived and deleted ones can be restored."""

from __future__ import annotations

from uuid import UUID, uuid4

from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.support.application import Tables, client_of
from tests.support.calls import events, listed, store


async def archive(tables: Tables, memory_id: str) -> None:
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(memory_id))


async def test_what_faded_is_as_fresh_as_new(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Drinks tea")
    fresh = (await client.get(f"/v1/memories/{memory_id}")).json()
    await archive(tables, memory_id)
    await tables.fetch(
        "UPDATE memory_stat SET relevance = 0.004, salience = 0.005 WHERE memory_id = $1", UUID(memory_id)
    )
    found = (await client.post(f"/v1/memories/{memory_id}/restore")).json()
    assert (found["relevance"], found["salience"]) == (fresh["relevance"], fresh["salience"])


async def test_an_active_one_stays_as_it_is(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    assert (await client.post(f"/v1/memories/{memory_id}/restore")).json()["version"] == 1
    assert await events(client, memory_id) == ["ADD"]


async def test_a_twin_in_the_way_is_a_conflict(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Drinks tea")
    await archive(tables, memory_id)
    await store(client, "Drinks tea")
    answer = await client.post(f"/v1/memories/{memory_id}/restore")
    assert (answer.status_code, answer.json()["field"]) == (409, "content")
    assert (await client.get(f"/v1/memories/{memory_id}")).json()["archived"] is True


async def test_archived_and_back(client: AsyncClient, other_client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}/archive"
    assert (await other_client.post(path)).status_code == 404
    assert (await client.post(f"/v1/memories/{uuid4()}/archive")).status_code == 404
    assert (await client.post(path, headers={"If-Match": '"9"'})).status_code == 412
    for _ in range(2):  # the second time it stays as it is
        answer = await client.post(path)
        assert (answer.status_code, answer.json()["archived"], answer.json()["version"]) == (200, True, 2)
        assert answer.json()["lifecycle_state"] == "archived"
    assert await listed(client, user_id="alice") == set()
    assert len((await client.get("/v1/audit", params={"operation": "archive"})).json()["results"]) == 1
    assert (await client.post(f"/v1/memories/{memory_id}/restore")).json()["archived"] is False
    assert await events(client, memory_id) == ["ADD", "UPDATE", "UPDATE"]


async def test_a_deleted_memory_comes_back_as_it_was(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks oat milk", tags=["kitchen"], importance=0.9)
    other = await store(client, "Plays chess on Sundays")
    await client.post(f"/v1/memories/{memory_id}/relations", json={"target_id": other, "type": "LEADS_TO"})
    await client.delete(f"/v1/memories/{memory_id}")
    restored = (await client.post(f"/v1/memories/{memory_id}/restore")).json()
    assert (restored["id"], restored["memory"], restored["tags"]) == (memory_id, "Drinks oat milk", ["kitchen"])
    assert (restored["importance"], restored["embedding"]) == (0.9, "stored")
    assert await events(client, memory_id) == ["ADD", "DELETE", "ADD"]
    assert await listed(client, user_id="alice") == {memory_id, other}
    assert await listed(client, user_id="alice", state="deleted") == set()
    hits = (await client.post("/v1/memories/search", json={"query": "oat milk", "user_id": "alice"})).json()["results"]
    assert memory_id in [hit["id"] for hit in hits]
    relations = (await client.get(f"/v1/memories/{memory_id}/relations")).json()["results"]
    assert ("LEADS_TO", other) in [(each["type"], each["target_id"]) for each in relations]
    assert (await client.post(f"/v1/memories/{memory_id}/restore")).json()["version"] == restored["version"]
    assert len((await client.get("/v1/audit", params={"operation": "restore"})).json()["results"]) == 1


async def test_a_relation_sent_again_keeps_what_it_does_not_say(client: AsyncClient) -> None:
    ends = [await store(client, text) for text in ("Drinks oat milk", "Plays chess on Sundays")]
    path, named = f"/v1/memories/{ends[0]}/relations", {"target_id": ends[1], "type": "LEADS_TO"}
    whole = {"strength": 0.5, "properties": {"why": "a walk"}, "t_invalid": "2026-01-01T00:00:00Z"}
    await client.post(path, json={**named, **whole})
    again = await client.post(path, json=named)
    assert again.status_code == 200, again.text
    found = again.json()
    assert (found["strength"], found["properties"]) == (0.5, {"why": "a walk"})
    assert found["t_invalid"] is None, "it holds again"
    changed = (await client.post(path, json={**named, "strength": 0.7, "properties": {}})).json()
    assert (changed["strength"], changed["properties"]) == (0.7, {})
    assert len((await client.get(path)).json()["results"]) == 1


async def test_its_sentence_and_its_past_versions_come_back(client: AsyncClient) -> None:
    session = {"user_id": "alice", "session_id": "colours"}
    for sentence, day in (("My favourite colour is red.", 1), ("My favourite colour is brown now.", 2)):
        message = {"role": "user", "content": sentence, "timestamp": f"2026-01-0{day}T09:00:00Z"}
        said = {"messages": [message], **session}
        stored = (await client.post("/v1/memories", json=said)).json()["results"][0]
    path = f"/v1/memories/{stored['id']}"
    conversation = f"/v1/conversations/{stored['conversation_id']}"

    async def said_and_held() -> list[list[str]]:
        versions = (await client.get(f"{path}/history")).json()["versions"]
        turns = (await client.get(conversation)).json()["turns"]
        return [[each["memory"] for each in versions], [each["content"] for each in turns]]

    before = await said_and_held()
    await client.post("/v1/forget", json={"ids": [stored["id"]], "user_id": "alice"})
    assert "brown" not in str(await said_and_held())
    assert (await client.post(f"{path}/restore")).status_code == 200
    assert await said_and_held() == before
    assert "red" in str(before[0])


async def test_deleted_memories_that_do_not_come_back(client: AsyncClient, other_client: AsyncClient) -> None:
    again, purged = await store(client, "Drinks tea"), await store(client, "Plays the viola")
    await client.delete(f"/v1/memories/{again}")
    assert (await other_client.post(f"/v1/memories/{again}/restore")).status_code == 404
    assert (await client.post(f"/v1/memories/{again}/restore?user_id=bob")).status_code == 404
    assert (await client.post(f"/v1/memories/{again}/restore", headers={"If-Match": '"9"'})).status_code == 412
    await store(client, "Drinks tea")
    answer = await client.post(f"/v1/memories/{again}/restore")
    assert (answer.status_code, answer.json()["field"]) == (409, "content")
    await client.delete(f"/v1/memories/{purged}", params={"purge": True})
    assert (await client.post(f"/v1/memories/{purged}/restore")).status_code == 404


async def test_a_key_of_one_channel_restores_what_was_deleted_there(app: FastAPI, client: AsyncClient) -> None:
    inside, outside = await store(client, "Sails", channel="boats"), await store(client, "Sings", channel="choir")
    for memory_id in (inside, outside):
        await client.delete(f"/v1/memories/{memory_id}")
    wanted = {"name": "sailor", "rights": ["memory:read", "memory:write"], "channels": ["boats"]}
    made = (await client.post("/v1/api-keys", json=wanted)).json()
    async with client_of(app, made["api_key"]) as sailor:
        assert (await sailor.post(f"/v1/memories/{inside}/restore")).status_code == 200
        assert (await sailor.post(f"/v1/memories/{outside}/restore")).status_code == 404

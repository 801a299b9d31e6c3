"""Archived memories can be restored."""

from __future__ import annotations

from uuid import UUID, uuid4

from httpx2 import AsyncClient

from tests.support.application import Tables
from tests.support.calls import events, listed, store


async def archive(tables: Tables, memory_id: str) -> None:
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(memory_id))


async def test_an_archived_memory_is_active_again(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Drinks tea")
    await archive(tables, memory_id)
    assert await listed(client, user_id="alice") == set()
    assert (await client.get(f"/v1/memories/{memory_id}")).json()["lifecycle_state"] == "archived"
    answer = await client.post(f"/v1/memories/{memory_id}/restore")
    assert (answer.status_code, answer.json()["archived"], answer.json()["version"]) == (200, False, 2)
    assert await listed(client, user_id="alice") == {memory_id}
    assert await events(client, memory_id) == ["ADD", "UPDATE"]
    assert len((await client.get("/v1/audit", params={"operation": "restore"})).json()["results"]) == 1


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


async def test_what_is_not_there_is_404(client: AsyncClient, other_client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Drinks tea")
    await archive(tables, memory_id)
    assert (await client.post(f"/v1/memories/{uuid4()}/restore")).status_code == 404
    assert (await other_client.post(f"/v1/memories/{memory_id}/restore")).status_code == 404


async def test_if_match(client: AsyncClient, tables: Tables) -> None:
    memory_id = await store(client, "Drinks tea")
    await archive(tables, memory_id)
    path = f"/v1/memories/{memory_id}/restore"
    assert (await client.post(path, headers={"If-Match": '"9"'})).status_code == 412
    assert (await client.post(path, headers={"If-Match": '"1"'})).status_code == 200

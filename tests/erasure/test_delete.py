"""A deleted memory is gone with all that depended on it; its history is not."""

from __future__ import annotations

from uuid import UUID, uuid4

from httpx2 import AsyncClient

from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import store


async def test_delete_and_delete_again(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    first = await client.delete(path)
    assert first.status_code == 200
    assert first.json() == {
        "id": memory_id,
        "deleted": True,
        "already_deleted": False,
        "message": f"Memory {memory_id} deleted",
    }
    again = await client.delete(path)
    assert (again.status_code, again.json()["already_deleted"]) == (200, True)
    assert (await client.get(path)).status_code == 404
    assert (await client.patch(path, json={"importance": 0.1})).status_code == 404
    assert (await client.post(f"{path}/restore")).json()["memory"] == "Drinks tea"


async def test_never_seen_is_404(client: AsyncClient, other_client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    assert (await client.delete("/v1/memories/fake-id")).status_code == 404
    assert (await client.delete(f"/v1/memories/{uuid4()}")).status_code == 404
    assert (await other_client.delete(f"/v1/memories/{memory_id}")).status_code == 404
    await client.delete(f"/v1/memories/{memory_id}")
    assert (await other_client.delete(f"/v1/memories/{memory_id}")).status_code == 404


async def test_history_tells_it_afterwards(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    await client.put(f"/v1/memories/{memory_id}", json={"content": "Drinks mate"})
    await client.delete(f"/v1/memories/{memory_id}")
    entries = (await client.get(f"/v1/memories/{memory_id}/history")).json()["results"]
    assert [entry["event"] for entry in entries] == ["ADD", "UPDATE", "DELETE"]
    assert [entry["is_deleted"] for entry in entries] == [False, False, True]
    assert (entries[2]["old_memory"], entries[2]["new_memory"]) == ("Drinks mate", None)
    assert [entry["recorded_to"] for entry in entries] == [entries[1]["timestamp"], entries[2]["timestamp"], None]
    times = [entry["timestamp"] for entry in entries]
    assert times == sorted(times)


async def test_history_holds_all_that_went_with_it(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    said = {"messages": [{"role": "user", "content": "Lives in Leeds"}], "infer": False, "user_id": "alice"}
    memory_id = (await client.post("/v1/memories", json=said)).json()["results"][0]["id"]
    other, third = await store(client, "Plays chess"), await store(client, "Drinks tea")
    await client.post(f"/v1/memories/{memory_id}/relations", json={"target_id": other, "type": "LEADS_TO"})
    await client.post(f"/v1/memories/{third}/relations", json={"target_id": memory_id, "type": "SIMILAR_TO"})
    await client.delete(f"/v1/memories/{memory_id}")
    row = (
        await tables.fetch(
            "SELECT before::text, before_embedding IS NOT NULL AS vector, before_generation AS generation "
            "FROM memory_history WHERE memory_id = $1 AND event = 'DELETE'",
            UUID(memory_id),
        )
    )[0]
    assert (row["vector"], row["generation"]) == (True, 1)
    for part in ("LEADS_TO", "SIMILAR_TO", other, third, "turn_id", "entity_ids", "base_salience", "Lives in Leeds"):
        assert part in row["before"], part
    left = await tables.fetch(
        "SELECT (SELECT count(*) FROM memory_edge WHERE workspace_id = $1) AS edges, "
        "(SELECT count(*) FROM memory_vector WHERE workspace_id = $1) AS vectors, "
        "(SELECT count(*) FROM memory_source WHERE workspace_id = $1) AS sources",
        tenant.workspace_id,
    )
    assert tuple(left[0]) == (0, 2, 0)


async def test_if_match(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    assert (await client.delete(path, headers={"If-Match": '"7"'})).status_code == 412
    assert (await client.delete(path, headers={"If-Match": '"1"'})).status_code == 200
    assert (await client.delete(path, headers={"If-Match": '"1"'})).json()["already_deleted"] is True


async def test_a_text_can_be_stored_again_under_its_id(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    await client.delete(f"/v1/memories/{memory_id}")
    assert await store(client, "Drinks tea", id=memory_id) == memory_id
    entries = (await client.get(f"/v1/memories/{memory_id}/history")).json()["results"]
    assert [entry["event"] for entry in entries] == ["ADD", "DELETE", "ADD"]
    assert [entry["recorded_to"] is None for entry in entries] == [False, False, True]

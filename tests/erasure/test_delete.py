"""A deleted memory is gone with all that depended on it; its history is not, and it can be listed."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from httpx2 import AsyncClient

from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import body_of, listed, store


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


# -- the list of what was deleted --------------------------------------------------------------------------------------

ALICE = {"user_id": "alice"}


async def gone(client: AsyncClient, **params: Any) -> Any:
    return await body_of(client.get("/v1/memories", params={**ALICE, "state": "deleted", **params}))


async def test_what_was_deleted_is_listed_as_it_was(client: AsyncClient, other_client: AsyncClient) -> None:
    tea = await store(client, "Prefers tea", tags=["drink"], metadata={"priority": 3}, importance=0.8)
    bay, boat = [await store(client, text) for text in ("Parks in bay 12", "Has a boat called Wanda")]
    kept = await store(client, "Lives in Lisbon")
    assert (await gone(client))["results"] == []

    shown = (await client.get(f"/v1/memories/{tea}")).json()
    await client.delete(f"/v1/memories/{tea}")
    await client.post("/v1/memories/batch/delete", json={"ids": [bay]})
    await client.post("/v1/forget", json={"query": "Wanda", **ALICE})

    page = await gone(client, count=True, detail="full")
    assert [each["id"] for each in page["results"]] == [boat, bay, tea]
    assert page["total"] == {"value": 3, "is_exact": True}
    found = page["results"][-1]
    assert found["lifecycle_state"] == "deleted"
    assert found["deleted_at"] > shown["created_at"]
    assert {**found, "deleted_at": None, "lifecycle_state": shown["lifecycle_state"]} == shown
    assert await listed(client, **ALICE) == {kept}

    drinks = await gone(client, tags="drink", filters='{"field": "metadata.priority", "operator": "gte", "value": 2}')
    assert [each["id"] for each in drinks["results"]] == [tea]
    first = await gone(client, limit=2, sort="importance")
    rest = await gone(client, limit=2, sort="importance", cursor=first["next_cursor"])
    assert first["results"][0]["id"] == tea
    assert {each["id"] for each in first["results"] + rest["results"]} == {tea, bay, boat}
    assert rest["next_cursor"] is None
    assert (await gone(client, user_id="bob"))["results"] == []
    assert (await gone(other_client))["results"] == []


async def test_what_came_back_or_was_purged_is_not(client: AsyncClient) -> None:
    tea, bay = await store(client, "Prefers tea"), await store(client, "Parks in bay 12")
    await client.delete("/v1/memories", params=ALICE)
    assert {each["id"] for each in (await gone(client))["results"]} == {tea, bay}
    await store(client, "Prefers tea", id=tea)
    await client.delete(f"/v1/memories/{bay}", params={"purge": True})
    assert (await gone(client))["results"] == []


async def test_a_moment_is_asked_for_alone(client: AsyncClient) -> None:
    for name in ("valid_at", "as_of"):
        answer = await client.get("/v1/memories", params={**ALICE, "state": "deleted", name: "2026-01-01T00:00:00Z"})
        assert (answer.status_code, answer.json()["field"]) == (400, name)
    wrong = (await client.get("/v1/memories", params={**ALICE, "state": "gone"})).json()
    assert wrong["field"] == "state"
    assert "live" in wrong["detail"]
    assert "deleted" in wrong["detail"]

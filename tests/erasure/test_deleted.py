"""What was deleted can be listed, as it was, until it is purged."""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient

from tests.support.calls import body_of, listed, store

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

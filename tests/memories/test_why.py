"""GET /v1/memories/{id}/why: source turns, the characters quoted, decisions and history."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.calls import body_of, store
from tests.support.judging import judged, tell


async def why(client: AsyncClient, memory_id: str) -> dict[str, Any]:
    return await body_of(client.get(f"/v1/memories/{memory_id}/why"))


async def test_a_fact_names_the_characters_it_was_read_from(client: AsyncClient) -> None:
    messages = [{"role": "user", "content": "Hello there! My name is Ana Meyer. Lovely weather."}]
    body = {"messages": messages, "user_id": "alice", "run_id": "r1"}
    [result] = (await client.post("/v1/memories", json=body)).json()["results"]
    found = await why(client, result["id"])
    assert found["memory"] == result["memory"]
    [source] = found["sources"]
    assert source["quote"] == messages[0]["content"][source["start"] : source["end"]]
    assert source["quote"] in result["memory"]
    assert "Ana Meyer" in source["quote"]
    assert (source["external_id"], source["turn_index"], source["role"]) == ("r1", 0, "user")
    assert [each["event"] for each in found["changes"]] == ["ADD"]
    assert [each["event"] for each in found["decisions"]] == ["ADD"]


async def test_a_turn_stored_verbatim_is_its_own_source(client: AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "The kettle is on"}], "infer": False, "user_id": "alice"}
    [result] = (await client.post("/v1/memories", json=body)).json()["results"]
    [source] = (await why(client, result["id"]))["sources"]
    assert (source["start"], source["end"], source["quote"]) == (0, 16, "The kettle is on")


async def test_the_model_that_decided_is_named_and_later_changes_follow(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        judge.say("Lives in Porto")
        [result] = await tell(client, "I live in Porto")
        judge.say("Moved to Lisbon", {"event": "UPDATE", "id": 1, "text": "Lives in Lisbon"})
        await tell(client, "I moved to Lisbon")
        found = await why(client, result["id"])
        assert (found["decisions"][-1]["source"], found["decisions"][-1]["model"]) == ("llm", "test:judge")
        assert [each["new_memory"] for each in found["changes"]] == ["Lives in Porto", "Lives in Lisbon"]
        assert [each["quote"] for each in found["sources"]] == ["I live in Porto", "I moved to Lisbon"]
        assert {(each["start"], each["end"]) for each in found["sources"]} == {(0, 15), (0, 17)}
        await client.delete(f"/v1/memories/{result['id']}")
        deleted = await why(client, result["id"])
        assert deleted["memory"] is None
        assert [each["event"] for each in deleted["changes"]] == ["ADD", "UPDATE", "DELETE"]


async def test_a_note_has_no_source_and_other_tenants_see_nothing(
    client: AsyncClient, other_client: AsyncClient
) -> None:
    memory_id = await store(client, "Keeps a cat")
    assert (await why(client, memory_id))["sources"] == []
    assert (await other_client.get(f"/v1/memories/{memory_id}/why")).status_code == 404
    assert (await client.get(f"/v1/memories/{memory_id}/why", params={"user_id": "bob"})).status_code == 404
    assert (await client.get(f"/v1/memories/{uuid4()}/why")).status_code == 404
    assert (await client.get("/v1/memories/x/why")).status_code == 404
    assert (await client.get(f"/v1/memories/{memory_id}/why", params={"limit": 0})).status_code == 400
    await client.delete(f"/v1/memories/{memory_id}", params={"purge": True})
    assert (await client.get(f"/v1/memories/{memory_id}/why")).status_code == 404

"""Rows of the requirements about a memory, its scope and its errors that no other test is named after."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.kit.settings import PLACES
from tests.support.application import client_of
from tests.support.calls import store

ROUTES = (
    ("POST", "/v1/memories/"),
    ("GET", "/v1/memories/search/"),
    ("GET", "/v1/memories/{id}/"),
    ("GET", "/v1/memories/"),
    ("PUT", "/v1/memories/{id}/"),
    ("DELETE", "/v1/memories/{id}/"),
    ("DELETE", "/v1/memories/"),
    ("GET", "/v1/memories/{id}/history/"),
    ("POST", "/v1/reset/"),
    ("POST", "/v1/entities/"),
    ("GET", "/v1/entities/ada/relations/"),
)
RESERVED = (
    *("type", "confidence", "content", "timestamp", "tags", "tag_prefixes", "importance", "embedding"),
    *("id", "archived", "relevance_score", "t_valid", "t_invalid", "updated_at", "last_accessed"),
)


async def refusal(client: AsyncClient, method: str, path: str, body: Any = None) -> tuple[int, str | None, str]:
    answer = await client.request(method, path, json=body)
    found = answer.json()
    return answer.status_code, found.get("field"), found.get("error", "")


@pytest.mark.parametrize("name", RESERVED)
async def test_names_of_fields_are_no_keys_of_metadata(client: AsyncClient, name: str) -> None:
    body = {"content": "Likes tea", "user_id": "alice", "metadata": {"room": 4, name: "x"}}
    status, field, error = await refusal(client, "POST", "/v1/memories", body)
    assert (status, field) == (400, f"metadata.{name}")
    assert error.startswith(f"metadata.{name}: ")


async def test_in_changes_and_batches_too_but_not_of_what_was_said(client: AsyncClient) -> None:
    memory_id = await store(client, "Likes tea", metadata={"kind": "x"})
    named = {"metadata": {"type": "x"}}
    assert (await refusal(client, "PATCH", f"/v1/memories/{memory_id}", named))[:2] == (400, "metadata.type")
    removed = await client.patch(f"/v1/memories/{memory_id}", json={"metadata": {"type": None}})
    assert removed.status_code == 200
    batch = {"items": [{"content": "a", "user_id": "alice"}, {"content": "b", "user_id": "alice", **named}]}
    assert (await refusal(client, "POST", "/v1/memories/batch", batch))[:2] == (400, "items[1].metadata.type")
    said = {"messages": "I like figs", "user_id": "bob", "metadata": {"timestamp": "noon"}}
    results = (await client.post("/v1/memories", json=said)).json()["results"]
    kept = (await client.get(f"/v1/memories/{results[0]['id']}")).json()["metadata"]
    assert kept["timestamp"] == "noon"


async def test_a_create_takes_all_that_can_be_set(client: AsyncClient) -> None:
    old = "2020-01-02T03:04:05+00:00"
    moments = {"timestamp": old, "t_valid": old, "updated_at": old, "last_accessed": old}
    fields: dict[str, Any] = {
        "type": "Habit",
        "type_confidence": 0.4,
        "tags": ["a:b"],
        "importance": 0.9,
        "metadata": {"k": 1},
    }
    chosen = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"
    memory_id = await store(client, "Runs daily", id=chosen, allow_system_fields=True, **fields, **moments)
    assert memory_id == chosen
    found = (await client.get(f"/v1/memories/{chosen}")).json()
    assert {name: found[name] for name in moments} == moments
    assert (found["type"], found["type_confidence"], found["importance"]) == ("Habit", 0.4, 0.9)
    assert found["created_at"] != old


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"updated_at": "2020-01-01"}, "updated_at"),
        ({"last_accessed": "2020-01-01"}, "last_accessed"),
    ],
)
async def test_what_the_service_keeps_wants_the_flag(client: AsyncClient, fields: dict[str, Any], field: str) -> None:
    body = {"content": "x", "user_id": "alice", **fields}
    assert (await refusal(client, "POST", "/v1/memories", body))[:2] == (400, field)


async def test_internal_flags_want_the_right(app: Any, client: AsyncClient) -> None:
    made = await client.post("/v1/api-keys", json={"name": "writer", "rights": ["memory:write"]})
    async with client_of(app, made.json()["api_key"]) as writer:
        body = {"content": "x", "user_id": "alice", "updated_at": "2020-01-01", "allow_system_fields": True}
        assert (await refusal(writer, "POST", "/v1/memories", body))[:2] == (403, "allow_system_fields")


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_route_is_there_with_its_slash(client: AsyncClient, method: str, path: str) -> None:
    memory_id = await store(client, "Likes tea")
    answer = await client.request(method, path.format(id=memory_id))
    assert answer.status_code not in (307, 404, 405) or "/entities/ada/" in path
    assert answer.json().get("error") != "There is no such route."


async def test_every_setting_is_shown(client: AsyncClient) -> None:
    shown = (await client.get("/v1/config")).json()
    sections = {"vector_store", "llm", "embedder", "graph_store", "history", "custom_prompts", "version"}
    assert sections <= shown.keys()
    names = [name for part in shown.values() if isinstance(part, dict) for name in part]
    assert set(PLACES) - {"custom_prompts"} <= set(names)


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/v1/memories?user_id=alice&limt=1", "limt"),
        ("GET", "/v1/memories/search?user_id=alice&query=tea&min_scor=0.5", "min_scor"),
        ("DELETE", "/v1/memories?user_id=alice&chanel=atlas", "chanel"),
        ("POST", "/v1/memories/0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c/restore?force=1", "force"),
    ],
)
async def test_a_misspelt_parameter_is_refused(client: AsyncClient, method: str, path: str, name: str) -> None:
    await store(client, "Likes tea", channel="atlas")
    status, field, error = await refusal(client, method, path)
    assert (status, field) == (400, name)
    assert error.startswith(f"{name}: is not a parameter of this request")
    kept = await client.get("/v1/memories", params={"user_id": "alice", "channel": "atlas"})
    assert len(kept.json()["results"]) == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ([], "body: must be an object"),
        ({"user_id": "i", "messages": {"role": "user"}}, "messages: must be a list or a string"),
        ({"user_id": "i", "messages": ["hello"]}, "messages[0]: must be an object"),
        ({"user_id": "i", "content": "x", "tags": 5}, "tags: must be a list or a string"),
        ({"user_id": 5, "content": "x"}, "user_id: must be a string"),
    ],
)
async def test_a_wrong_type_is_said_in_words_of_json(client: AsyncClient, body: Any, error: str) -> None:
    assert (await refusal(client, "POST", "/v1/memories", body))[2] == error


async def test_a_rejected_message_is_left_out_and_named(client: AsyncClient) -> None:
    said = [{"role": "user", "content": "I like tea"}, {"role": "user", "content": "my password is"}]
    curated = await client.post("/v1/memories", json={"messages": said, "user_id": "alice"})
    assert [each["memory"] for each in curated.json()["results"]] == ["User: I like tea"]
    assert curated.json()["warnings"] == ["messages[1]: left out, pii_rejected."]


@pytest.mark.parametrize("policy", ["flag_review", "supersede"])
async def test_what_is_kept_beside_is_stored_new(client: AsyncClient, policy: str) -> None:
    await client.patch("/v1/workspaces/current", json={"settings": {"contradiction_policy": policy}})
    for said in ("I live in Berlin.", "I moved to Rome."):
        answer = await client.post("/v1/memories", json={"messages": said, "user_id": "alice"})
    added = answer.json()["results"][0]
    assert (added["event"], added["memory"]) == ("ADD", "User: I moved to Rome.")
    assert (added["dedup"]["action"], added["dedup"]["existing_id"]) == ("stored_new", None)
    assert added["dedup"]["similarity"] is not None, "it was compared with what is known"

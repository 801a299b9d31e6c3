"""PATCH changes what is named and nothing else; PUT replaces the text, whole and at once."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient
from sqlalchemy import text

from service.access.statements import keys
from service.access.values import NewKey
from service.domain.access import Right
from service.postgres.engine import Database
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of
from tests.support.calls import body_of, events, store


async def patch(client: AsyncClient, memory_id: str, **body: Any) -> dict[str, Any]:
    return await body_of(client.patch(f"/v1/memories/{memory_id}", json=body))


async def test_metadata_is_merged_and_null_removes(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea", metadata={"key1": "a", "inner": {"kept": None}})
    assert (await patch(client, memory_id, metadata={"key2": "b"}))["metadata"] == {
        "key1": "a",
        "key2": "b",
        "inner": {"kept": None},
    }
    changed = await patch(client, memory_id, metadata={"key1": None, "gone": None, "inner": {"other": 1}})
    assert changed["metadata"] == {"key2": "b", "inner": {"other": 1}}
    assert (await patch(client, memory_id, importance=0.3))["metadata"] == changed["metadata"]
    assert (await patch(client, memory_id, metadata=None))["metadata"] == {}
    assert await events(client, memory_id) == ["ADD", *["UPDATE"] * 4]


async def test_tags_replace_the_list_and_its_prefixes(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea", tags=["slack:channel:general"])
    changed = await patch(client, memory_id, tags="Project:Atlas:api, work")
    assert changed["tags"] == ["project:atlas:api", "work"]
    assert changed["tag_prefixes"] == ["project", "project:atlas", "project:atlas:api", "work"]
    assert (await patch(client, memory_id, tags=None))["tag_prefixes"] == []


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ({"importance": 0.9}, {"importance": 0.9, "importance_level": 9, "salience": 0.9}),
        ({"importance_level": 2}, {"importance": 0.2, "importance_level": 2, "salience": 0.2}),
        ({"type": "Habit"}, {"type": "Habit", "classification_source": "explicit"}),
        ({"type": "Habit", "type_confidence": 0.4}, {"type": "Habit", "type_confidence": 0.4}),
        ({"fact_confidence": 0.3}, {"fact_confidence": 0.3, "current_confidence": 0.3}),
        ({"t_valid": "2026-01-01T00:00:00Z"}, {"t_valid": "2026-01-01T00:00:00+00:00"}),
        ({"t_invalid": "2027-01-01"}, {"t_invalid": "2027-01-01T00:00:00+00:00"}),
    ],
)
async def test_a_field_changes_alone(client: AsyncClient, body: dict[str, Any], seen: dict[str, Any]) -> None:
    memory_id = await store(client, "Drinks tea")
    before = (await client.get(f"/v1/memories/{memory_id}")).json()
    changed = await patch(client, memory_id, **body)
    assert seen.items() <= changed.items()
    moved = {name for name in before if before[name] != changed[name]}
    assert moved <= {*seen, "version", "updated_at", "importance_band", "type_confidence", "classification_source"}
    assert changed["version"] == 2
    assert await events(client, memory_id) == ["ADD", "UPDATE"]


async def test_no_difference_is_no_change(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea", tags=["drinks"], metadata={"a": 1})
    body = {"content": "Drinks tea", "tags": ["Drinks"], "metadata": {"a": 1, "nobody": None}}
    assert (await patch(client, memory_id, **body))["version"] == 1
    assert await events(client, memory_id) == ["ADD"]


async def test_a_new_text_is_found_by_its_words_until_it_is_embedded(
    client: AsyncClient, embedder: AngleEmbedder, database: Database, tenant: Tenant
) -> None:
    memory_id = await store(client, "Lives in Leeds")
    embedder.seen.clear()
    changed = await patch(client, memory_id, content="Lives in Hull")
    assert embedder.seen == []
    assert changed["embedding"] == "queued"
    assert changed["enriched"] is False
    found = (await client.get("/v1/memories/search", params={"query": "Hull", "user_id": "alice"})).json()["results"]
    assert [hit["id"] for hit in found] == [memory_id]
    assert found[0]["similarity"] is None
    async with database.read(tenant.workspace_id) as session:
        jobs = await session.scalars(
            text("SELECT kind FROM job WHERE memory_id = :id ORDER BY created_at, kind"), {"id": UUID(memory_id)}
        )
    assert sorted(jobs) == ["embed", "enrich", "enrich"]


async def test_other_changes_embed_nothing(client: AsyncClient, database: Database, tenant: Tenant) -> None:
    memory_id = await store(client, "Drinks tea")
    changed = await patch(client, memory_id, importance=0.1)
    assert changed["embedding"] == "stored"
    async with database.read(tenant.workspace_id) as session:
        count = await session.scalar(text("SELECT count(*) FROM job WHERE memory_id = :id"), {"id": UUID(memory_id)})
    assert count == 1


async def test_two_memories_with_one_text_are_a_conflict(client: AsyncClient) -> None:
    first = await store(client, "Drinks tea")
    second = await store(client, "Plays chess")
    answer = await client.patch(f"/v1/memories/{second}", json={"content": "Drinks tea"})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (409, "conflict", "content")
    assert (await client.get(f"/v1/memories/{second}")).json()["memory"] == "Plays chess"
    await client.delete(f"/v1/memories/{first}")
    assert (await patch(client, second, content="Drinks tea"))["memory"] == "Drinks tea"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"id": "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"}, "id"),
        ({"timestamp": "2020-01-01T00:00:00Z"}, "timestamp"),
        ({"updated_at": "2020-01-01T00:00:00Z"}, "updated_at"),
        ({"last_accessed": "2020-01-01T00:00:00Z"}, "last_accessed"),
        ({"importance": 1.5}, "importance"),
        ({"importance": True}, "importance"),
        ({"type": "decision"}, "type"),
        ({"t_valid": "soon"}, "t_valid"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"t_valid": "2027-01-02", "t_invalid": "2027-01-01"}, "t_valid"),
        ({"content": None}, "content"),
        ({"importance": None}, "importance"),
        ({"importance": 0.1, "importance_level": 1}, "importance"),
        ({"content": " "}, "content"),
        ({"content": "\u200b\u2060"}, "content"),
        ({"last_accessed": None, "allow_system_fields": True}, "last_accessed"),
    ],
)
async def test_what_may_not_change_is_named(client: AsyncClient, body: dict[str, Any], field: str) -> None:
    memory_id = await store(client, "Drinks tea")
    answer = await client.patch(f"/v1/memories/{memory_id}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_a_memory_cannot_end_before_it_begins(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea", t_invalid="2026-05-01T00:00:00Z")
    answer = await client.patch(f"/v1/memories/{memory_id}", json={"t_valid": "2026-06-01T00:00:00Z"})
    assert (answer.status_code, answer.json()["field"]) == (400, "t_valid")
    assert (await patch(client, memory_id, t_valid="2026-06-01T00:00:00Z", t_invalid=None))["t_invalid"] is None


async def test_system_fields_need_the_flag_and_the_right(
    client: AsyncClient, app: Any, database: Database, tenant: Tenant
) -> None:
    memory_id = await store(client, "Drinks tea")
    old = "2020-01-01T00:00:00+00:00"
    body = {"timestamp": old, "updated_at": old, "last_accessed": old, "allow_system_fields": True}
    async with database.begin(tenant.workspace_id) as session:
        issued = await keys.issue(session, NewKey("writer", [Right.READ, Right.WRITE]))
    async with client_of(app, issued.secret) as writer:
        assert (await writer.patch(f"/v1/memories/{memory_id}", json=body)).status_code == 403
    changed = await patch(client, memory_id, **body)
    assert (changed["timestamp"], changed["updated_at"], changed["last_accessed"]) == (old, old, old)


async def test_if_match(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    tag = (await client.get(path)).headers["ETag"]
    changed = await client.patch(path, json={"importance": 0.2}, headers={"If-Match": tag})
    assert changed.status_code == 200
    for stale in (tag, f"W/{changed.headers['ETag']}", '"x"', "", '"-1"'):
        refused = await client.patch(path, json={"importance": 0.3}, headers={"If-Match": stale})
        assert (refused.status_code, refused.json()["code"]) == (412, "precondition_failed"), stale
    for good in (changed.headers["ETag"], "*", f'"99", {changed.headers["ETag"]}'):
        assert (await client.patch(path, json={"importance": 0.2}, headers={"If-Match": good})).status_code == 200
    missing = await client.patch(f"/v1/memories/{uuid4()}", json={"importance": 0.2}, headers={"If-Match": "*"})
    assert missing.status_code == 404


async def test_of_ten_who_read_the_same_version_one_wins(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    bodies = [{"metadata": {"writer": number}} for number in range(10)]
    answers = await asyncio.gather(*(client.patch(path, json=body, headers={"If-Match": '"1"'}) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 9]
    assert (await client.get(path)).json()["version"] == 2


async def test_without_if_match_every_change_counts(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    await asyncio.gather(*(client.patch(path, json={"metadata": {f"k{number}": 1}}) for number in range(10)))
    read = (await client.get(path)).json()
    assert len(read["metadata"]) == 10
    assert read["version"] == 11
    history = (await client.get(f"{path}/history")).json()["results"]
    assert [entry["recorded_to"] for entry in history[:-1]] == [entry["recorded_from"] for entry in history[1:]]


async def test_a_scope_that_is_given_must_be_its_own(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    path = f"/v1/memories/{memory_id}"
    for method in ("GET", "PATCH", "DELETE"):
        body: dict[str, Any] = {"json": {"importance": 0.1}} if method == "PATCH" else {}
        refused = await client.request(method, path, params={"user_id": "bob"}, **body)
        assert refused.status_code == 404, method
    answer = await client.patch(path, params={"user_id": "alice"}, json={"importance": 0.1})
    assert answer.status_code == 200


async def test_expiry_can_be_set_and_cleared(client: AsyncClient, clock: SetClock) -> None:
    memory_id = await store(client, "Drinks tea")
    until = (clock() + timedelta(seconds=60)).isoformat()
    assert (await patch(client, memory_id, expires_at=until))["expires_at"] == until
    assert (await patch(client, memory_id, expires_at=None))["expires_at"] is None


# -- PUT ---------------------------------------------------------------------------------------------------------------


async def test_the_text_its_hash_and_its_history_change(client: AsyncClient) -> None:
    memory_id = await store(client, "Lives in Leeds")
    answer = await client.put(f"/v1/memories/{memory_id}", json={"content": "Lives in Hull"})
    assert answer.status_code == 200, answer.text
    read = (await client.get(f"/v1/memories/{memory_id}")).json()
    assert read == answer.json()
    assert read["memory"] == "Lives in Hull"
    assert read["hash"] == hashlib.md5(b"Lives in Hull").hexdigest()
    assert read["version"] == 2
    assert answer.headers["ETag"] == '"2"'
    entries = (await client.get(f"/v1/memories/{memory_id}/history")).json()["results"]
    assert [entry["event"] for entry in entries] == ["ADD", "UPDATE"]
    assert (entries[1]["old_memory"], entries[1]["new_memory"]) == ("Lives in Leeds", "Lives in Hull")
    assert entries[0]["recorded_to"] == entries[1]["recorded_from"]


async def test_it_is_embedded_in_the_request(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("Drinks tea", 0.1)
    embedder.place("Plays chess", 0.95)
    embedder.place("which games", 1.0)
    memory_id = await store(client, "Drinks tea")
    changed = (await client.put(f"/v1/memories/{memory_id}", json={"content": "Plays chess"})).json()
    assert changed["embedding"] == "stored"
    found = (await client.get("/v1/memories/search", params={"query": "which games", "user_id": "alice"})).json()
    assert found["results"][0]["similarity"] == pytest.approx(0.95, abs=5e-4)


@pytest.mark.parametrize("content", ["Plays the bassoon on Mondays", "Always writes the tests first"])
@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_new_text_has_the_type_that_it_would_have_if_it_were_stored(
    client: AsyncClient, method: str, content: str
) -> None:
    whole = await body_of(client.post("/v1/memories", json={"content": content, "user_id": "bob"}), 201)
    memory_id = await store(client, "The boat is in Porto")
    changed = await body_of(client.request(method, f"/v1/memories/{memory_id}", json={"content": content}))
    names = ("type", "type_confidence", "classification_source")
    assert {name: changed[name] for name in names} == {name: whole["results"][0][name] for name in names}


async def test_the_type_somebody_chose_stays(client: AsyncClient) -> None:
    memory_id = await store(client, "Prefers tea", type="Insight")
    changed = (await client.put(f"/v1/memories/{memory_id}", json={"content": "Always runs at six"})).json()
    assert changed["type"] == "Insight"


async def test_one_without_a_provider_waits_for_its_vector(client: AsyncClient, embedder: AngleEmbedder) -> None:
    memory_id = await store(client, "Drinks tea")
    embedder.down = True
    changed = (await client.put(f"/v1/memories/{memory_id}", json={"content": "Drinks mate"})).json()
    assert changed["embedding"] == "placeholder"


@pytest.mark.parametrize("body", [{}, {"content": " "}, {"content": "a", "text": "b"}, {"content": "a", "id": "x"}])
async def test_what_is_no_new_text_is_400(client: AsyncClient, body: dict[str, str]) -> None:
    memory_id = await store(client, "Drinks tea")
    assert (await client.put(f"/v1/memories/{memory_id}", json=body)).status_code == 400


async def test_who_is_not_there_is_404(client: AsyncClient, other_client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    for wanted in ("fake-id", "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"):
        assert (await client.put(f"/v1/memories/{wanted}", json={"content": "x y"})).status_code == 404
    assert (await other_client.put(f"/v1/memories/{memory_id}", json={"content": "x y"})).status_code == 404

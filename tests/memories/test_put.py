"""PUT replaces the text of a memory, whole and at once."""

from __future__ import annotations

import hashlib

import pytest
from httpx2 import AsyncClient

from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import store


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

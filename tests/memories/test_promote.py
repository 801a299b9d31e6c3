"""A project's memory is known everywhere once it is promoted."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from httpx2 import AsyncClient

from service.domain.ageing import Promoting
from service.memories.statements import promotable
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import events, listed, store
from tests.support.plans import kept_plan, rows_read

TEXT = "Prefers short answers"


async def promote(client: AsyncClient, memory_id: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/memories/{memory_id}/promote", json=body)
    assert answer.status_code in (200, 201), answer.text
    return {"status": answer.status_code, **answer.json()}


async def test_a_copy_in_global_leads_back(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """PROMOTED_FROM."""
    embedder.place(TEXT, 0.9)
    embedder.place("how to answer", 1.0)
    memory_id = await store(client, TEXT, channel="atlas", tags=["style"], metadata={"a": 1}, importance=0.8)
    copy = await promote(client, memory_id, reason="true in every project")
    assert copy["status"] == 201
    assert copy["promoted_from"] == memory_id != copy["id"]
    assert (copy["channel"], copy["memory"], copy["tags"], copy["metadata"]) == ("_global", TEXT, ["style"], {"a": 1})
    assert (copy["importance"], copy["version"], copy["embedding"]) == (0.8, 1, "stored")
    assert await events(client, copy["id"]) == ["ADD"]
    edges = (await client.get(f"/v1/memories/{copy['id']}/relations")).json()["results"]
    assert [(each["type"], each["target_id"]) for each in edges] == [("PROMOTED_FROM", memory_id)]
    assert await listed(client, user_id="alice", channel="_global") == {copy["id"]}
    params = {"query": "how to answer", "user_id": "alice", "channel": "borealis"}
    found = (await client.get("/v1/memories/search", params=params)).json()["results"]
    assert [hit["id"] for hit in found] == [copy["id"]]


async def test_twice_is_once_also_at_once(client: AsyncClient) -> None:
    memory_id = await store(client, TEXT, channel="atlas")
    found = await asyncio.gather(*(promote(client, memory_id) for _ in range(8)))
    assert len({each["id"] for each in found}) == 1
    assert sorted(each["status"] for each in found) == [200] * 7 + [201]


async def test_a_twin_in_global_is_taken(client: AsyncClient) -> None:
    known = await store(client, TEXT)
    memory_id = await store(client, TEXT, channel="atlas")
    copy = await promote(client, memory_id)
    assert (copy["status"], copy["id"]) == (200, known)
    assert len((await client.get(f"/v1/memories/{memory_id}/relations")).json()["results"]) == 1


async def test_the_audit_tells_why(client: AsyncClient) -> None:
    memory_id = await store(client, TEXT, channel="atlas")
    copy = await promote(client, memory_id, reason="ask kim.weber@example.org")
    entry = (await client.get("/v1/audit", params={"operation": "promote"})).json()["results"][0]
    assert entry["promoted_from_channel"] == "atlas"
    assert entry["affected_ids"] == [memory_id, copy["id"]]
    assert (entry["promotion_access_count"], entry["promotion_conversation_count"]) == (0, 0)
    assert entry["promotion_confidence"] > 0
    assert "kim.weber" not in entry["metadata"]["reason"]


async def test_what_cannot_be_promoted(client: AsyncClient, other_client: AsyncClient, tables: Tables) -> None:
    everywhere = await store(client, "Known everywhere")
    archived = await store(client, "Put away", channel="atlas")
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(archived))
    assert (await client.post(f"/v1/memories/{everywhere}/promote")).status_code == 409
    assert (await client.post(f"/v1/memories/{archived}/promote")).status_code == 409
    assert (await client.post(f"/v1/memories/{uuid4()}/promote")).status_code == 404
    assert (await other_client.post(f"/v1/memories/{archived}/promote")).status_code == 404


async def test_the_copy_goes_with_its_last_original(client: AsyncClient) -> None:
    """Forgetting reaches copies."""
    memory_id = await store(client, TEXT, channel="atlas")
    other_id = await store(client, TEXT, channel="borealis")
    copy = await promote(client, memory_id)
    assert (await promote(client, other_id))["id"] == copy["id"]
    await client.delete(f"/v1/memories/{memory_id}")
    assert await listed(client, user_id="alice", channel="_global") == {copy["id"]}, "another project still says it"
    await client.delete("/v1/memories", params={"user_id": "alice", "channel": "borealis"})
    assert await listed(client, user_id="alice", channel="_global") == set()
    assert await events(client, copy["id"]) == ["ADD", "DELETE"]


async def test_erasing_a_channel_erases_its_copies(client: AsyncClient, tables: Tables) -> None:
    text = f"Prefers answers of {uuid4()}"
    copy = await promote(client, await store(client, text, channel="atlas"))
    known = await store(client, "Keeps bees")
    scope = {"user_id": "alice", "channel": "atlas", "purge": "true"}
    assert (await client.request("DELETE", "/v1/memories", params=scope)).status_code == 200
    assert await listed(client, user_id="alice", channel="_global") == {known}
    assert (await client.get(f"/v1/memories/{copy['id']}/history")).status_code == 404
    assert await tables.holding(text) == []


async def test_what_was_in_global_by_itself_stays_when_the_promoted_goes(client: AsyncClient) -> None:
    known = await store(client, TEXT)
    memory_id = await store(client, TEXT, channel="atlas")
    await promote(client, memory_id)
    await client.delete(f"/v1/memories/{memory_id}")
    assert await listed(client, user_id="alice", channel="_global") == {known}


MANY = """
    WITH fresh AS (
        INSERT INTO memory (workspace_id, id, user_id, channel, content, hash, dedup_key, type, type_confidence,
                            classification_source, importance, importance_level, "timestamp", embedding_status,
                            created_at, updated_at)
        SELECT $1, gen_random_uuid(), 'alice', 'atlas', n::text, md5(n::text), md5(n::text), 'Context', 1, 'explicit',
               0.5, 5, now(), 'stored', now(), now() FROM generate_series(1, 300) n RETURNING *
    )
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed, access_count, seen_in)
    SELECT workspace_id, id, created_at, 9, '{one,two}' FROM fresh RETURNING memory_id
"""


async def test_the_check_of_one_memory_reads_no_others(
    resources: Resources, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    ids = [row["memory_id"] for row in await tables.fetch(MANY, tenant.workspace_id)]
    await tables.fetch("ANALYZE memory, memory_stat")
    rules, now = Promoting(), clock()
    async with resources.db.read(tenant.workspace_id) as session:
        assert await promotable.list_worthy(session, rules, now=now, batch=400) == sorted(ids)
        assert await promotable.list_worthy(session, rules, now=now, batch=1, only=ids[-1]) == [ids[-1]]
        plan = await kept_plan(session, promotable.list_worthy(session, rules, now=now, batch=1, only=ids[-1]))
    assert rows_read(plan, "memory") == rows_read(plan, "memory_stat") == 1

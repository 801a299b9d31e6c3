"""A memory is gone when its time is over, before the clean-up as well, and for good after."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient
from sqlalchemy import text

from service.memories import lifecycle
from service.memories.statements import deletion
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables
from tests.support.calls import events, listed, store


@pytest.fixture
def worker(resources: Resources, worker_database: Database) -> Resources:
    return replace(resources, db=worker_database)


def after(clock: SetClock, seconds: int | None) -> str | None:
    return None if seconds is None else (clock() + timedelta(seconds=seconds)).isoformat()


async def test_it_is_invisible_at_once(client: AsyncClient, clock: SetClock) -> None:
    memory_id = await store(client, "The code of the door is blue", expires_at=after(clock, 60), tags=["x"])
    stays = await store(client, "The door is in the yard", expires_at=after(clock, 86_400))
    assert await listed(client, user_id="alice") == {memory_id, stays}
    clock.forward(seconds=60)
    assert await listed(client, user_id="alice") == {stays}
    path = f"/v1/memories/{memory_id}"
    for answer in (
        await client.get(path),
        await client.patch(path, json={"importance": 0.1}),
        await client.put(path, json={"content": "Another text"}),
        await client.post(f"{path}/restore"),
        await client.post(f"{path}/promote"),
        await client.get(f"{path}/related"),
    ):
        assert answer.status_code == 404
    found = await client.post("/v1/memories/search", json={"query": "code of the door", "user_id": "alice"})
    assert [hit["id"] for hit in found.json()["results"]] == [stays]
    tagged = await client.get("/v1/memories/by-tag", params={"tags": "x", "user_id": "alice"})
    assert tagged.json()["results"] == []
    got = await client.post("/v1/memories/batch/get", json={"ids": [memory_id, stays]})
    assert [each["id"] for each in got.json()["results"]] == [stays]
    assert (await client.get("/v1/scopes")).json()["results"][0]["memories"] == 1
    assert await events(client, memory_id) == ["ADD"]


async def test_its_text_can_be_stored_anew(client: AsyncClient, clock: SetClock) -> None:
    first = await store(client, "The code is blue", expires_at=after(clock, 60))
    clock.forward(minutes=2)
    second = await store(client, "The code is blue")
    assert second != first
    said = {"messages": [{"role": "user", "content": "The tide is high"}], "infer": False, "user_id": "alice"}
    await client.post("/v1/memories", json={**said, "expires_at": after(clock, 60)})
    clock.forward(minutes=2)
    assert (await client.post("/v1/memories", json=said)).json()["results"][0]["event"] == "ADD"


@pytest.mark.parametrize(
    ("first", "second", "lasts"), [(60, None, None), (60, 600, 600), (600, 60, 600), (None, 60, None)]
)
async def test_whoever_repeats_a_text_keeps_it_for_his_time(
    client: AsyncClient, clock: SetClock, first: int | None, second: int | None, lasts: int | None
) -> None:
    memory_id = await store(client, "The code is blue", expires_at=after(clock, first))
    body = {"content": "The code is blue", "user_id": "alice", "expires_at": after(clock, second)}
    again = await client.post("/v1/memories", json=body)
    assert again.json()["results"][0]["event"] == "NONE"
    until = (await client.get(f"/v1/memories/{memory_id}")).json()["expires_at"]
    assert until == after(clock, lasts)


@pytest.mark.parametrize(
    "told", [{"content": "I live in Rome."}, {"messages": [{"role": "user", "content": "I live in Rome."}]}]
)
@pytest.mark.parametrize(("first", "second"), [(None, 60), (600, 60), (60, 600), (60, None)])
async def test_a_memory_that_is_updated_expires_with_the_new_statement(
    client: AsyncClient, clock: SetClock, told: dict[str, Any], first: int | None, second: int | None
) -> None:
    memory_id = await store(client, "I live in Oslo.", expires_at=after(clock, first))
    body = {**told, "user_id": "alice", "expires_at": after(clock, second), "tags": ["home"], "metadata": {"by": "me"}}
    [result] = (await client.post("/v1/memories", json=body)).json()["results"]
    assert (result["event"], result["id"]) == ("UPDATE", memory_id)
    memory = (await client.get(f"/v1/memories/{memory_id}")).json()
    assert memory["expires_at"] == after(clock, second)
    assert (memory["tags"], memory["metadata"]) == (["home"], {"by": "me"})


async def test_the_job_removes_it_with_a_history(
    client: AsyncClient, clock: SetClock, worker: Resources, tables: Tables
) -> None:
    memory_id = await store(client, "The code is blue", expires_at=after(clock, 60))
    stays = await store(client, "The door is in the yard", expires_at=after(clock, 600))
    clock.forward(minutes=2)
    assert await lifecycle.remove_outlived(worker) >= 1
    assert await tables.value("SELECT count(*) FROM memory WHERE id = $1", UUID(memory_id)) == 0
    assert await events(client, memory_id) == ["ADD", "DELETE"]
    assert await events(client, stays) == ["ADD"]
    entry = (await client.get("/v1/audit", params={"operation": "delete"})).json()["results"][0]
    assert (entry["affected_ids"], entry["metadata"]) == ([memory_id], {"reason": "outlived"})
    clock.forward(hours=1)
    await lifecycle.remove_outlived(worker)


async def test_retention_is_the_workspaces_own(
    client: AsyncClient, other_client: AsyncClient, clock: SetClock, worker: Resources
) -> None:
    body = {"settings": {"memory_retention_days": 30}}
    assert (await client.patch("/v1/workspaces/current", json=body)).status_code == 200
    old, theirs = await store(client, "Drinks tea"), await store(other_client, "Drinks tea")
    clock.forward(days=29)
    young = await store(client, "Plays chess")
    await lifecycle.remove_outlived(worker)
    assert await events(client, old) == ["ADD"]
    clock.forward(days=2)
    await lifecycle.remove_outlived(worker)
    assert await events(client, old) == ["ADD", "DELETE"]
    assert await events(client, young) == ["ADD"]
    assert await events(other_client, theirs) == ["ADD"]
    for days in (0, 36_501, 5_000_000):
        refused = await client.patch("/v1/workspaces/current", json={"settings": {"memory_retention_days": days}})
        assert (refused.status_code, refused.json()["field"]) == (400, "settings.memory_retention_days")


@pytest.mark.parametrize("name", ["memory_retention_days", "granted"])
async def test_a_workspace_does_not_stop_the_removal_for_the_others(
    client: AsyncClient, clock: SetClock, worker: Resources, tables: Tables, stranger: Tenant, name: str
) -> None:
    days = 9_999_999_999
    settings = json.dumps({name: {"memory_retention_days": days} if name == "granted" else days})
    memory_id = await store(client, "The code is blue", expires_at=after(clock, 60))
    clock.forward(minutes=2)
    await tables.fetch(
        "UPDATE workspace SET settings = $2::jsonb WHERE workspace_id = $1", stranger.workspace_id, settings
    )
    try:
        assert await lifecycle.remove_outlived(worker) >= 1
    finally:
        await tables.fetch("UPDATE workspace SET settings = '{}' WHERE workspace_id = $1", stranger.workspace_id)
    assert await events(client, memory_id) == ["ADD", "DELETE"]


async def test_a_retention_from_before_the_limit_does_not_lock_the_workspace_out(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    stored = json.dumps({"memory_retention_days": 5_000_000})
    await tables.fetch("UPDATE workspace SET settings = $2::jsonb WHERE workspace_id = $1", tenant.workspace_id, stored)
    memory_id = await store(client, "The code is blue")
    assert (await client.get(f"/v1/memories/{memory_id}")).status_code == 200
    lower = await client.patch("/v1/workspaces/current", json={"settings": {"memory_retention_days": 30}})
    assert lower.json()["settings"]["memory_retention_days"] == 30


KEPT = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
                        importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
    SELECT $1, gen_random_uuid(), 'alice', md5(n::text), md5(n::text), 'Context', 1, 'explicit', 0.5, 5, now(),
           'stored', now(), now()
    FROM generate_series(1, 400) n
"""
FETCHED = text("SELECT pg_stat_get_xact_tuples_fetched('memory'::regclass)")


async def test_memories_that_are_kept_for_ever_are_not_read(
    clock: SetClock, worker: Resources, tables: Tables, tenant: Tenant
) -> None:
    await tables.fetch(KEPT, tenant.workspace_id)
    async with worker.db.read() as session:
        await deletion.list_outlived(session, clock(), retention_days=None, limit=500)
        fetched = await session.scalar(FETCHED)
    assert fetched is not None
    assert fetched < 400

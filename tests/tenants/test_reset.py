"""A reset leaves nothing but keys, settings and the audit log."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from httpx2 import AsyncClient

from service.domain.job import Job
from service.intake import deferred
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.erasure.test_delete_scope import fill, work_off
from tests.support.application import Tables
from tests.support.calls import body_of, events, listed, store

ALICE = {"user_id": "alice"}
KEPT = {"workspace", "api_key", "audit_log", "job", "operation", "erased_memory"}


async def left(tables: Tables, tenant: Tenant) -> dict[str, Any]:
    counts = await tables.counts(tenant.workspace_id, leave_out=KEPT)
    return {name: count for name, count in counts.items() if count}


async def test_everything_is_gone(
    client: AsyncClient, other_client: AsyncClient, tables: Tables, tenant: Tenant, stranger: Tenant
) -> None:
    first = await store(client, "Drinks tea")
    second = await store(client, "Plays chess", user_id="bob", channel="atlas")
    said = {"messages": [{"role": "user", "content": "Lives in Leeds"}], "infer": False, "run_id": "r1"}
    await client.post("/v1/memories", json=said, headers={"Idempotency-Key": str(uuid4())})
    await client.post(f"/v1/memories/{second}/promote")
    for each in (client, other_client):
        await body_of(each.post("/v1/goals", json={"description": "Move", **ALICE}), 201)
        await body_of(each.post("/v1/strategies", json={"description": "Ask first", **ALICE}), 201)
        await body_of(
            each.post("/v1/tool-invocations", json={"tool_name": "oar", "tool_input": {}, "success": True, **ALICE}),
            201,
        )
        await body_of(each.put("/v1/working/w/items/cart", json={"value": 1}, params=ALICE), 201)
        acme = await body_of(each.put("/v1/entities", json={"name": "Acme", "aliases": ["ACME Ltd"], **ALICE}), 201)
        ann = await body_of(each.put("/v1/entities", json={"name": "Ann", **ALICE}), 201)
        works = {"source_id": ann["id"], "target_id": acme["id"], "type": "works_at"}
        await body_of(each.post("/v1/entities/relations", json=works), 201)
        await body_of(each.post("/v1/entities/merge", json={"source_id": ann["id"], "target_id": acme["id"]}))
    theirs = await store(other_client, "Theirs alone")
    before = await tables.counts(stranger.workspace_id)

    answer = await client.post("/v1/reset")
    assert (answer.status_code, answer.json()["deleted"]) == (200, 4)
    assert await left(tables, tenant) == {}
    assert await listed(client, user_id="alice") == set()
    assert (await client.get(f"/v1/memories/{first}/history")).status_code == 404
    assert (await client.delete(f"/v1/memories/{first}")).status_code == 404
    assert await tables.counts(stranger.workspace_id) == before
    assert await events(other_client, theirs) == ["ADD"]


async def test_it_is_audited_and_the_audit_stays(client: AsyncClient) -> None:
    await store(client, "Drinks tea")
    await client.post("/v1/reset")
    found = (await client.get("/v1/audit")).json()["results"]
    assert [entry["operation"] for entry in found] == ["reset", "store"]
    assert found[0]["metadata"] == {"memories": 1}


async def test_afterwards_all_goes_on(client: AsyncClient) -> None:
    await store(client, "Drinks tea")
    headers = {"Idempotency-Key": str(uuid4())}
    assert (await client.post("/v1/reset", headers=headers)).json()["deleted"] == 1
    memory_id = await store(client, "Drinks tea")
    assert (await client.post("/v1/reset", headers=headers)).json()["deleted"] == 1
    assert await events(client, memory_id) == ["ADD"]
    assert (await client.post("/v1/reset")).json()["deleted"] == 1
    assert (await client.post("/v1/reset")).json()["deleted"] == 0


async def test_very_much_is_an_operation(
    client: AsyncClient, tables: Tables, tenant: Tenant, database: Database, resources: Resources
) -> None:
    await fill(tables, tenant, "carol", 2_100)
    memory_id = await store(client, "Drinks tea")
    answer = await client.post("/v1/reset")
    assert answer.status_code == 202
    assert await work_off(database, resources, tenant) == {"deleted": 2_101}
    assert (await client.get(answer.json()["url"])).json()["result"] == {"deleted": 2_101}
    assert await left(tables, tenant) == {}
    assert (await client.get(f"/v1/memories/{memory_id}/history")).status_code == 404


async def test_what_was_accepted_before_is_not_stored_after(
    client: AsyncClient, tables: Tables, tenant: Tenant, resources: Resources
) -> None:
    """Nor by a worker that has it in its hands already; and no job keeps words of what is gone."""
    body = {"messages": "The Pandion nests in the mast", "infer": False, "user_id": "iris", "tags": ["Pandion"]}
    accepted = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    await store(client, "Feeds the Pandion")
    operation = accepted.json()["operation_id"]
    held = await tables.fetch("SELECT request FROM operation WHERE id = $1", UUID(operation))

    assert (await client.post("/v1/reset")).json()["deleted"] == 1
    assert await tables.holding("Pandion") == []
    assert await tables.fetch("SELECT kind FROM job WHERE workspace_id = $1", tenant.workspace_id) == []
    await tables.fetch(
        "INSERT INTO operation (workspace_id, id, kind, state, request) VALUES ($1, $2, 'record', 'running', $3)",
        *(tenant.workspace_id, UUID(operation), held[0]["request"]),
    )
    payload = {"operation_id": operation}
    await deferred.ingest(Job(tenant.workspace_id, UUID(operation), "ingest", None, payload, 1, 3, "t"), resources)
    assert await listed(client, user_id="iris") == set()

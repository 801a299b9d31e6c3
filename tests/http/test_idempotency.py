"""A retry gets the first answer, whatever happens in between."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from fastapi.routing import APIRoute
from httpx2 import AsyncClient, Response

from service.app.main import PARTS
from service.http import writes
from tests.conftest import Tenant
from tests.support.application import Tables

NOTE = {"content": "Repairs the kiln in May", "user_id": "iris", "tags": ["kiln"], "importance": 0.5}


async def put(client: AsyncClient, key: str, body: Any = NOTE, path: str = "/v1/memories") -> Response:
    return await client.post(path, json=body, headers={"Idempotency-Key": key})


async def test_a_repeat_gets_the_first_answer(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    first = await put(client, "k")
    before = await tables.counts(tenant.workspace_id)
    again = await put(client, "k")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert await tables.counts(tenant.workspace_id) == before


async def test_a_route_that_keeps_no_answer_refuses_a_key(client: AsyncClient) -> None:
    """Else a client that counts on it makes two webhooks, or two keys."""
    before = [(await client.get(path)).json() for path in ("/v1/webhooks", "/v1/api-keys")]
    for path, body in (
        ("/v1/webhooks", {"url": "https://example.org/hook"}),
        ("/v1/api-keys", {"name": "a", "rights": ["memory:read"]}),
        ("/v1/tokens", {"user_id": "iris"}),
        ("/v1/workspaces", {"name": "a"}),
        ("/v1/jobs/relevance/run", {}),
    ):
        answer = await put(client, "k", body, path)
        assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key"), path
    assert [(await client.get(path)).json() for path in ("/v1/webhooks", "/v1/api-keys")] == before
    assert (await client.get("/v1/webhooks", headers={"Idempotency-Key": "k"})).status_code == 200


async def test_another_body_is_a_conflict(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    await put(client, "k")
    before = await tables.counts(tenant.workspace_id)
    for body, path in (
        ({**NOTE, "importance": 0.6}, "/v1/memories"),
        ({**NOTE, "dry_run": True}, "/v1/memories"),
    ):
        answer = await put(client, "k", body, path)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")
        assert answer.json()["field"] == "Idempotency-Key"
    assert await tables.counts(tenant.workspace_id) == before
    assert (await put(client, "k")).status_code == 201


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(NOTE, indent=4),
        json.dumps(dict(reversed(NOTE.items())), separators=(",", ":")),
        json.dumps(NOTE).replace("kiln in", "\\u006biln in"),
        json.dumps(NOTE).replace("0.5", "5e-1"),
    ],
    ids=["blanks", "order", "escapes", "number"],
)
async def test_the_same_body_written_otherwise_is_the_same(client: AsyncClient, raw: str) -> None:
    first = await put(client, "k")
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json; charset=utf-8"}
    again = await client.post("/v1/memories/", content=raw, headers=headers)
    assert again.headers.get("Idempotency-Replayed") == "true", again.text
    assert again.json() == first.json()


async def test_parallel_requests_with_one_key_make_one_row(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    answers = await asyncio.gather(*(put(client, "k") for _ in range(16)))
    assert {answer.status_code for answer in answers} == {201}
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert Counter("Idempotency-Replayed" in answer.headers for answer in answers) == {True: 15, False: 1}
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["memory_history"], counts["idempotency"]) == (1, 1, 1)


async def test_parallel_requests_with_one_key_and_different_bodies(
    client: AsyncClient, tenant: Tenant, tables: Tables
) -> None:
    bodies = [{"content": f"Note {place % 2}", "user_id": f"u{place % 2}"} for place in range(8)]
    answers = await asyncio.gather(*(put(client, "k", body) for body in bodies))
    assert Counter(answer.status_code for answer in answers) == {201: 4, 409: 4}
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({**NOTE, "importance": 7}, 400),
        ({**NOTE, "content": "x" * 2_001, "limits": "strict"}, 400),
        ({**NOTE, "content": "The password is"}, 422),
        ({"content": "no scope"}, 400),
    ],
)
async def test_a_failure_is_not_kept(
    client: AsyncClient, tenant: Tenant, tables: Tables, body: Any, status: int
) -> None:
    before = await tables.counts(tenant.workspace_id)
    for _ in range(2):
        answer = await put(client, "k", body)
        assert answer.status_code == status, answer.text
        assert "Idempotency-Replayed" not in answer.headers
    assert await tables.counts(tenant.workspace_id) == before
    assert (await put(client, "k")).status_code == 201, "the key is still free"


async def test_a_failed_commit_is_not_kept(
    client: AsyncClient, tenant: Tenant, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last statement of the transaction fails: not even the key may stay."""

    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError

    before = await tables.counts(tenant.workspace_id, leave_out=["embedding_cache"])
    with monkeypatch.context() as patched:
        patched.setattr("service.runtime.statements.idempotency.store_answer", broken)
        assert (await put(client, "k")).status_code == 500
    assert await tables.counts(tenant.workspace_id, leave_out=["embedding_cache"]) == before
    assert (await put(client, "k")).status_code == 201


async def test_an_expired_key_is_free_again(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "KEPT_S", 0.2)
    first = await put(client, "k")
    await asyncio.sleep(0.3)
    other = await put(client, "k", {**NOTE, "content": "Fires the kiln in June"})
    assert (first.status_code, other.status_code) == (201, 201)
    assert "Idempotency-Replayed" not in other.headers


async def test_a_duplicate_and_a_dry_run_are_answers_too(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    await put(client, "a")
    duplicate = await put(client, "b")
    assert duplicate.status_code == 200
    again = await put(client, "b")
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
    before = await tables.counts(tenant.workspace_id)
    dry = await put(client, "c", {"content": "Only asking", "user_id": "iris", "dry_run": True})
    assert dry.status_code == 200
    assert await tables.counts(tenant.workspace_id, leave_out=["embedding_cache"]) == {
        name: count for name, count in before.items() if name != "embedding_cache"
    }


async def test_a_batch_completes_what_is_missing(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    """Every item has the key `key:index`; one that failed is tried again, the others are not."""
    items = [{"content": f"Item {number}", "user_id": "iris"} for number in range(3)]
    items[1]["content"] = "The password is"
    first = (await put(client, "k", {"items": items}, "/v1/memories/batch")).json()
    assert [each["status"] for each in first["results"]] == [201, 422, 201]
    assert (first["succeeded"], first["failed"]) == (2, 1)
    again = (await put(client, "k", {"items": items}, "/v1/memories/batch")).json()
    assert [each["results"] for each in again["results"]] == [each["results"] for each in first["results"]]
    assert (await tables.counts(tenant.workspace_id))["memory"] == 2
    keys = await tables.fetch("SELECT key FROM idempotency WHERE workspace_id = $1 ORDER BY key", tenant.workspace_id)
    assert [row["key"].partition(":")[2] for row in keys] == ["0", "2"]


async def test_the_longest_key_keeps_the_items_of_a_batch_apart(client: AsyncClient) -> None:
    items = [{"content": f"Item {number}", "user_id": "iris"} for number in range(3)]
    found = (await put(client, "k" * 255, {"items": items}, "/v1/memories/batch")).json()
    assert [each["results"][0]["memory"] for each in found["results"]] == ["Item 0", "Item 1", "Item 2"]


def test_rights_are_checked_before_a_stored_answer_is_sent() -> None:
    """FastAPI solves dependencies in the order of the signature."""
    checked = 0
    for route in (each for part in PARTS for each in part.router.routes):
        calls = [each.call for each in route.dependant.dependencies] if isinstance(route, APIRoute) else []
        names = [getattr(call, "__qualname__", "") for call in calls]
        if "_refuse_repeated" in names:
            checked += 1
            assert "needs.<locals>.check" in names[: names.index("_refuse_repeated")], route
    assert checked > 20

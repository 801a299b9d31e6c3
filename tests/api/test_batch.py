"""One bad item of a batch costs the others nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from httpx2 import AsyncClient

from tests.api.conftest import Tables
from tests.conftest import Tenant

USER = {"user_id": "iris"}


async def send(client: AsyncClient, *items: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/memories/batch", json={"items": list(items)})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_each_item_says_how_it_fared(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    taken = str(uuid4())
    await client.post("/v1/memories", json={"content": "Taken", "user_id": "otto", "id": taken})
    found = await send(
        client,
        {"content": "One", **USER},
        {"content": "The password is", **USER},
        {"content": "Two", **USER, "id": taken},
        {"content": "x" * 2_001, **USER, "limits": "strict"},
        {"content": "No scope"},
        {"messages": [{"role": "user", "content": "Said"}], "infer": False, **USER},
        {"content": "Two", **USER, "dry_run": True},
    )
    assert [each["index"] for each in found["results"]] == list(range(7))
    assert [each["status"] for each in found["results"]] == [201, 422, 409, 400, 400, 201, 200]
    assert [each["error"]["code"] if each["error"] else None for each in found["results"]] == [
        None,
        "pii_rejected",
        "conflict",
        "too_large",
        "scope_error",
        None,
        None,
    ]
    assert (found["succeeded"], found["failed"]) == (3, 4)
    assert (await tables.counts(tenant.workspace_id))["memory"] == 3


async def test_equal_items_are_one_row(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    found = await send(client, *({"content": "The same", **USER} for _ in range(12)))
    assert sorted(each["status"] for each in found["results"]) == [200] * 11 + [201]
    assert len({each["results"][0]["id"] for each in found["results"]}) == 1
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


async def test_the_usage_of_all_items_is_added_up(client: AsyncClient) -> None:
    found = await send(client, *({"content": f"Number {number}", **USER} for number in range(3)))
    assert found["usage"]["embedded_texts"] == 3


async def test_too_many_items(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    items = [{"content": f"Number {number}", **USER} for number in range(101)]
    answer = await client.post("/v1/memories/batch", json={"items": items})
    assert (answer.status_code, answer.json()["field"]) == (400, "items")
    assert (await tables.counts(tenant.workspace_id))["memory"] == 0

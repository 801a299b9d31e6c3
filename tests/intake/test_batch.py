"""One bad item of a batch costs the others nothing."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of, serving
from tests.support.calls import body_of

USER = {"user_id": "iris"}


async def send(client: AsyncClient, *items: dict[str, Any]) -> dict[str, Any]:
    return await body_of(client.post("/v1/memories/batch", json={"items": list(items)}))


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


PLACES = ("Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Kyoto", "Lagos", "Nantes", "Izmir")
NEWS = [{"content": f"Alice visited the museum of {place} on a school trip", **USER} for place in PLACES]


def ids(found: dict[str, Any]) -> list[str]:
    return [each["results"][0]["id"] for each in found["results"]]


async def test_new_texts_of_one_scope_are_written_together(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    found = await send(client, *NEWS, {**NEWS[0], "user_id": "otto"}, NEWS[1])
    assert [each["results"][0]["event"] for each in found["results"]] == ["ADD"] * 11 + ["NONE"]
    assert ids(found)[11] == ids(found)[1]
    writers = "SELECT user_id, count(DISTINCT xmin::text) FROM memory WHERE workspace_id = $1 GROUP BY 1 ORDER BY 1"
    assert [tuple(row) for row in await tables.fetch(writers, tenant.workspace_id)] == [("iris", 1), ("otto", 1)]
    counts = await tables.counts(tenant.workspace_id)
    assert [counts[name] for name in ("memory", "memory_stat", "memory_vector", "memory_history")] == [11] * 4
    assert counts["audit_log"] == 12


async def test_the_same_batch_twice_at_once(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    first, second = await asyncio.gather(send(client, *NEWS), send(client, *NEWS))
    assert ids(first) == ids(second)
    assert (await tables.counts(tenant.workspace_id))["memory"] == len(NEWS)


async def test_the_same_batch_twice_at_once_with_a_key(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    headers = {"Idempotency-Key": "once"}
    answers = await asyncio.gather(
        *(client.post("/v1/memories/batch", json={"items": NEWS}, headers=headers) for _ in range(3))
    )
    first, *others = (answer.json()["results"] for answer in answers)
    assert all(each == first for each in others)
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["audit_log"]) == (len(NEWS), len(NEWS))


MOVES = [{"content": f"Iris lives in {place}", **USER} for place in ("Oslo", "Lima", "Cairo")]


async def test_what_changes_something_joins_the_new_ones(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    home = (await client.post("/v1/memories", json=MOVES[0])).json()["results"][0]["id"]
    found = await send(client, NEWS[0], MOVES[1], NEWS[1], MOVES[2], NEWS[0], NEWS[2])
    events = [each["results"][0]["event"] for each in found["results"]]
    assert events == ["ADD", "UPDATE", "ADD", "UPDATE", "NONE", "ADD"]
    assert (ids(found)[1], ids(found)[3], ids(found)[4]) == (home, home, ids(found)[0])
    rows = await tables.fetch("SELECT content, xmin::text FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    now = [row for row in rows if row["content"] != "Iris lives in Oslo" and row["content"] != "Iris lives in Lima"]
    assert {row["content"] for row in now} == {each["content"] for each in (*NEWS[:3], MOVES[2])}
    assert len({row["xmin"] for row in rows}) == 1
    entries = (await client.get(f"/v1/memories/{home}/history")).json()["results"]
    assert [each["new_memory"] for each in entries] == [each["content"] for each in MOVES]
    assert (await tables.counts(tenant.workspace_id))["audit_log"] == 1 + 6


async def test_a_batch_ends_as_its_texts_do_one_by_one(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    texts = [each["content"] for each in (*MOVES[:2], *NEWS[:3], MOVES[2], NEWS[0])] + ["Iris does not live in Cairo"]
    found = await send(client, *({"content": each, **USER} for each in texts))
    singly = [await client.post("/v1/memories", json={"content": each, "user_id": "otto"}) for each in texts]
    assert [each["status"] for each in found["results"]] == [each.status_code for each in singly]
    kept = "SELECT content, archived, version FROM memory WHERE workspace_id = $1 AND user_id = $2 ORDER BY content"
    here, there = [await tables.fetch(kept, tenant.workspace_id, each) for each in ("iris", "otto")]
    assert [tuple(row) for row in here] == [tuple(row) for row in there]


async def test_a_text_may_outdate_another_of_its_batch(
    resources: Resources, embedder: AngleEmbedder, tenant: Tenant, tables: Tables
) -> None:
    texts = ["Iris drives a Fiat and a Vespa.", "Iris no longer drives a Fiat.", NEWS[0]["content"]]
    for text, cosine in zip(texts, (1.0, 0.9, 0.8), strict=True):
        embedder.place(text, cosine)
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        found = await send(client, *({"content": text, **USER} for text in texts))
    assert [each["results"][0]["event"] for each in found["results"]] == ["ADD"] * 3
    edges = await tables.fetch(
        "SELECT source_id, rel_type, target_id FROM memory_edge WHERE workspace_id = $1", tenant.workspace_id
    )
    assert [(str(row["source_id"]), row["rel_type"], str(row["target_id"])) for row in edges] == [
        (ids(found)[1], "MAY_OUTDATE", ids(found)[0])
    ]


async def test_an_item_without_dedup_changes_nothing(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    found = await send(client, MOVES[0], {**MOVES[1], "dedup": False}, NEWS[0])
    assert [each["results"][0]["event"] for each in found["results"]] == ["ADD"] * 3
    assert found["results"][1]["results"][0]["decision"] is None
    assert len(set(ids(found))) == 3


async def test_changes_of_a_batch_with_a_key_are_made_once(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    headers, items = {"Idempotency-Key": "once"}, [*NEWS[:2], *MOVES, NEWS[0]]
    first, again = [
        (await client.post("/v1/memories/batch", json={"items": items}, headers=headers)).json() for _ in range(2)
    ]
    assert first["results"] == again["results"]
    assert (await tables.counts(tenant.workspace_id))["memory_history"] == 5

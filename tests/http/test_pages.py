"""No answer is without a bound: what does not fit a page is on the next one, and nothing is left out or given twice."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from sqlalchemy import text

from service.domain import sizes
from service.http import cursors
from service.postgres import direct
from service.postgres.engine import Database
from tests.conftest import Tenant, new_tenant
from tests.support.application import client_of

PAGE = 20_000
LARGE = 4_000
MANY = 75
FEWER = 30
MOST = 5 * PAGE
"""A page, the row that passes it, and what JSON adds."""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "PAGE_BYTES", PAGE)


def large(number: int) -> str:
    return f"Kiln {number}: " + f"{number:06d} glaze " * (LARGE // 13)


@pytest.fixture(scope="module")
async def kiln(database: Database) -> tuple[Tenant, list[str]]:
    """A workspace for all tests that only read, and the ids in it."""
    return await new_tenant(database), []


@pytest.fixture
async def reader(app: FastAPI, kiln: tuple[Tenant, list[str]]) -> AsyncIterator[AsyncClient]:
    async with client_of(app, kiln[0].key) as found:
        yield found


@pytest.fixture
async def memories(reader: AsyncClient, kiln: tuple[Tenant, list[str]]) -> list[str]:
    """Large memories of one user."""
    _, ids = kiln
    if ids:
        return ids
    items = [{"content": large(number), "user_id": "iris", "tags": ["kiln"], "dedup": False} for number in range(MANY)]
    for item in items:
        stored = await reader.post("/v1/memories", json=item)
        assert stored.status_code == 201, stored.text
        ids.append(stored.json()["results"][0]["id"])
    return ids


async def walked(
    client: AsyncClient,
    path: str,
    parameters: Mapping[str, Any],
    *,
    post: bool = False,
    cursor: str = "cursor",
    read: Callable[[Any], list[Any]] = lambda page: page["results"],
) -> list[list[Any]]:
    """What every page has, until there is no cursor any more."""
    pages: list[list[Any]] = []
    more: dict[str, Any] = {}
    for _ in range(200):
        given = {**parameters, **more}
        answer = await (client.post(path, json=given) if post else client.get(path, params=given))
        assert answer.status_code == 200, answer.text[:500]
        assert len(answer.content) < MOST, path
        page = answer.json()
        pages.append(read(page))
        if page.get("has_more", page["next_cursor"]) in (None, False):
            return pages
        assert pages[-1], "a page makes progress"
        more = {cursor: page["next_cursor"]}
    raise AssertionError("it does not end")


IRIS = {"user_id": "iris"}


@pytest.mark.parametrize(
    ("path", "parameters", "post", "cursor"),
    [
        ("/v1/memories", {**IRIS, "limit": 1_000}, False, "cursor"),
        ("/v1/memories", {**IRIS, "limit": 1_000, "sort": "importance"}, False, "cursor"),
        ("/v1/memories/by-tag", {**IRIS, "tags": "kiln", "limit": 100}, False, "cursor"),
        ("/v1/memories/search", {**IRIS, "tags": ["kiln"], "limit": 1_000}, True, "cursor"),
        ("/v1/memories/search", {**IRIS, "query": "kiln glaze", "limit": 1_000}, True, "cursor"),
        ("/v1/memories/search", {**IRIS, "query": "kiln glaze", "limit": 1_000}, False, "cursor"),
        ("/v1/changes", {"limit": 1_000}, False, "after"),
        ("/v1/timeline", {**IRIS, "limit": 1_000}, False, "cursor"),
    ],
)
async def test_every_large_memory_once(
    reader: AsyncClient, memories: list[str], path: str, parameters: dict[str, Any], post: bool, cursor: str
) -> None:
    pages = await walked(reader, path, parameters, post=post, cursor=cursor)
    ids = [each.get("memory_id") or each["id"] for page in pages for each in page]
    assert sorted(ids) == sorted(memories)
    if path != "/v1/timeline":  # it has summaries alone
        assert len(pages) > 1


async def test_by_their_ids(reader: AsyncClient, memories: list[str]) -> None:
    unknown = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"
    body = {"ids": [*memories, unknown, "no id"]}
    pages = await walked(
        reader,
        "/v1/memories/batch/get",
        body,
        post=True,
        read=lambda page: [*(each["id"] for each in page["results"]), *page["missing"]],
    )
    assert sorted(each for page in pages for each in page) == sorted([*memories, unknown, "no id"])


async def test_history_and_why(client: AsyncClient) -> None:
    stored = await client.post("/v1/memories", json={"content": large(0), **IRIS})
    uid = stored.json()["results"][0]["id"]
    for number in range(1, FEWER):
        assert (await client.patch(f"/v1/memories/{uid}", json={"content": large(number)})).status_code == 200
    path = f"/v1/memories/{uid}"
    for name, field in (("history", "results"), ("why", "changes")):
        pages = await walked(client, f"{path}/{name}", {}, read=lambda page, field=field: page[field])  # type: ignore[misc]
        said = [each["new_memory"][:10] for page in pages for each in page]
        assert said == [large(number)[:10] for number in range(FEWER)]
        assert len(pages) > 1
        few = await walked(client, f"{path}/{name}", {"limit": 2}, read=lambda page, field=field: page[field])  # type: ignore[misc]
        assert max(map(len, few)) <= 2
    held = await walked(client, f"{path}/history", {}, read=lambda page: page["versions"] or page["results"])
    assert held


async def test_turns(client: AsyncClient) -> None:
    made = await client.post("/v1/conversations", json={**IRIS, "external_id": "kiln"})
    uid = made.json()["id"]
    for number in range(MANY):
        turn = {"role": "user", "content": large(number)}
        assert (await client.post(f"/v1/conversations/{uid}/turns", json=turn)).status_code == 201
    pages = await walked(client, f"/v1/conversations/{uid}", {"limit": 500}, read=lambda page: page["turns"])
    assert [each["turn_index"] for page in pages for each in page] == list(range(MANY))
    for path, asked in (("/v1/turns/recent", {}), ("/v1/turns/search", {"query": "kiln glaze"})):
        pages = await walked(client, path, {**IRIS, **asked, "limit": 1_000})
        assert sorted(each["turn_index"] for page in pages for each in page) == list(range(MANY)), path
        assert len(pages) > 1


async def test_what_is_read_is_bounded_too(database: Database) -> None:
    """The server keeps what does not fit."""
    rows = text("SELECT repeat('x', 1000) AS content FROM generate_series(1, 5000)")
    async with database.read() as session:
        found = await direct.page(session, rows, None, tuple)
        assert PAGE // 1_000 < len(found) <= PAGE // 1_000 + direct.PIECE
        assert await session.scalar(text("SELECT 1")) == 1


async def test_pages_with_numbers_are_refused_when_too_large(reader: AsyncClient, memories: list[str]) -> None:
    asked = {"filters": {"user_id": "iris"}}
    answer = await reader.post("/v1/compat/mem0/v2/memories/?page=1&page_size=100", json=asked)
    assert (answer.status_code, answer.json()["field"]) == (400, "page_size")


async def test_a_history_of_mem0_is_whole_or_says_that_it_is_not(client: AsyncClient) -> None:
    stored = await client.post("/v1/memories", json={"content": large(0), **IRIS})
    path = f"/v1/compat/mem0/v1/memories/{stored.json()['results'][0]['id']}"
    assert len((await client.get(f"{path}/history/")).json()) == 1
    for number in range(1, FEWER):
        assert (await client.put(f"{path}/", json={"text": large(number)})).status_code == 200
    whole = await client.get(f"{path}/history/")
    assert (whole.status_code, whole.json()["field"]) == (400, "page_size")
    said: list[str] = []
    for page in range(1, FEWER // 2 + 2):
        few = (await client.get(f"{path}/history/", params={"page": page, "page_size": 2})).json()
        assert len(few) == (2 if page <= FEWER // 2 else 0)
        said += [each["new_memory"][:10] for each in few]
    assert said == [large(number)[:10] for number in range(FEWER)]


async def test_what_hits_are_connected_to_is_bounded_too(client: AsyncClient) -> None:
    """A large memory that many small ones are connected to is in the answer with each of them."""
    hub = (await client.post("/v1/memories", json={"content": large(0), **IRIS})).json()["results"][0]["id"]
    items = [{"content": f"Shard {number} of a bowl", **IRIS, "tags": ["shard"]} for number in range(FEWER)]
    stored = (await client.post("/v1/memories/batch", json={"items": items})).json()["results"]
    small = [each["results"][0]["id"] for each in stored]
    tie = {"target_id": hub, "type": "PART_OF"}
    for each in small:
        assert (await client.post(f"/v1/memories/{each}/relations", json=tie)).status_code == 201
    pages = await walked(client, "/v1/memories/by-tag", {**IRIS, "tags": "shard", "limit": 100})
    assert sorted(each["id"] for page in pages for each in page) == sorted(small)
    assert all(hub in {one["id"] for one in each["connected"]} for page in pages for each in page)
    asked = {**IRIS, "query": "shard of a bowl", "limit": 100, "connected": True, "turns": False}
    found = await client.post("/v1/memories/search", json=asked)
    assert len(found.content) < MOST
    assert {each["id"] for each in found.json()["results"]} >= set(small)
    assert [each for each in found.json()["warnings"] if each.startswith("connected: ")]


async def test_entities_that_are_found(client: AsyncClient) -> None:
    for number in range(MANY):
        body = {**IRIS, "name": f"Kiln {number}", "type": "tool", "properties": {"said": large(number)}}
        assert (await client.put("/v1/entities", json=body)).status_code == 201
    found = await client.get("/v1/entities/search", params={**IRIS, "query": "Kiln", "limit": 100})
    assert len(found.content) < MOST
    assert found.json()["results"]
    assert [each for each in found.json()["warnings"] if each.startswith("limit: ")]


async def test_answers_for_clients_of_automem(client: AsyncClient) -> None:
    base = "/v1/compat/automem"
    for number in range(FEWER):
        body = {"content": large(number), "tags": ["kiln"]}
        assert (await client.post(f"{base}/memory", json=body)).status_code == 201
    for path in ("recall?query=kiln&limit=50", "recall?sort=time_desc&limit=50", "recall?query=kiln&expand=true"):
        found = await client.get(f"{base}/{path}")
        assert found.status_code == 200, found.text[:500]
        assert len(found.content) < MOST
        assert found.json()["results"]
    assert (await client.get(f"{base}/analyze")).status_code == 200
    many = "&".join(f"queries=kiln+{number}" for number in range(FEWER))
    assert (await client.get(f"{base}/recall?{many}")).status_code == 400
    gone = await client.delete(f"{base}/memory/by-tag?tags=kiln")
    assert (gone.status_code, gone.json().get("deleted_count")) == (200, FEWER)


@pytest.mark.parametrize("cursor", ["x", cursors.pack("-1"), cursors.pack("1|2"), cursors.pack("9" * 30), "%00", ""])
async def test_other_cursors(client: AsyncClient, cursor: str) -> None:
    for path in ("/v1/turns/recent", "/v1/memories/by-tag"):
        answer = await client.get(path, params={**IRIS, "tags": "kiln", "cursor": cursor})
        assert answer.status_code == 400 or path == "/v1/turns/recent", path
        if answer.status_code == 400:
            assert answer.json()["field"] in ("cursor", "tags")


@pytest.mark.parametrize(
    ("value", "weight"),
    [("abc", 3), ("é", 2), ({"a": "bc"}, 3), (["ab", ("c",)], 3), (None, 8), (1.5, 8), (b"abc", 24)],
)
def test_weight(value: Any, weight: int) -> None:
    assert sizes.weight(value) == weight


def test_a_page_ends_with_the_row_that_passes_it() -> None:
    rows = ["x" * 10] * 10
    assert cursors.cut(rows, 100, share=PAGE // 25) == (rows[:3], rows[2])
    assert cursors.cut(rows, 2, share=PAGE // 25) == (rows[:2], rows[1])
    assert cursors.cut(rows, 10) == (rows, None)
    assert cursors.cut(rows[:1], 10, share=PAGE) == (rows[:1], None)
    assert cursors.cut([], 10) == ([], None)


SMALL = {
    "get_entity_graph": "says `truncated`",
    "search_entities": "says in `warnings` what does not fit",
    "list_working_turns": "at most 100 values of 64 kB",
    "list_thoughts": "at most 100 values of 64 kB",
    "find_strategies": "at most 100 strategies",
}
"""Operations that have a limit and no cursor, and why that bounds them."""


def test_every_list_of_the_document_has_a_cursor() -> None:
    document = json.loads(Path("docs/openapi.json").read_text())

    def fields(schema: dict[str, Any]) -> dict[str, Any]:
        name = schema.get("$ref", "").rpartition("/")[2]
        found: dict[str, Any] = (document["components"]["schemas"][name] if name else schema).get("properties", {})
        return found

    without = set()
    for each in (each for path in document["paths"].values() for each in path.values()):
        asked = {one["name"] for one in each.get("parameters", [])}
        body = each.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        asked |= fields(body).keys()
        shown = each["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        goes_on = {"cursor", "after"} & asked and {"next_cursor", "sections"} & fields(shown).keys()
        is_list = any(field.get("type") == "array" for field in fields(shown).values())
        if "limit" in asked and is_list and not goes_on:
            without.add(each["operationId"])
    assert without - SMALL.keys() == {"recall", "get_conversation_context"} & without


async def test_a_cursor_of_another_list_or_of_other_filters_is_refused(client: AsyncClient) -> None:
    for number in range(3):
        await client.post("/v1/goals", json={**IRIS, "description": f"Glaze {number} pots"})
        await client.post("/v1/conversations", json={**IRIS, "external_id": f"talk {number}"})
    first = (await client.get("/v1/goals", params={**IRIS, "limit": 1})).json()
    cursor = first["next_cursor"]
    for path, more in (
        ("/v1/conversations", {}),
        ("/v1/timeline", {}),
        ("/v1/memories", {}),
        ("/v1/goals", {"status": "active"}),
        ("/v1/goals", {"agent_id": "other"}),
    ):
        answer = await client.get(path, params={**IRIS, **more, "cursor": cursor})
        assert (answer.status_code, answer.json()["field"]) == (400, "cursor"), f"{path} {more}: {answer.text}"
        assert "belongs to another list" in answer.json()["detail"]
    second = await client.get("/v1/goals", params={**IRIS, "limit": 2, "cursor": cursor})
    assert {each["id"] for each in second.json()["results"]}.isdisjoint({each["id"] for each in first["results"]})

"""A filter chooses the memories that new facts are compared with, now and in a job."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.tasks import work

USER = {"user_id": "bob"}
OF_ATLAS = {"field": "metadata.project", "operator": "eq", "value": "atlas"}


async def tell(client: AsyncClient, text: str, **more: Any) -> list[tuple[str, str]]:
    body = {"messages": [{"role": "user", "content": text}], **USER, **more}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code == 200, answer.text
    return [(each["event"], each["memory"]) for each in answer.json()["results"]]


async def known(client: AsyncClient) -> set[str]:
    listed = (await client.get("/v1/memories", params=USER)).json()["results"]
    return {each["memory"] for each in listed}


async def test_a_fact_is_compared_with_what_the_filter_lets_through(client: AsyncClient) -> None:
    [(_, old)] = await tell(client, "I live in Berlin", metadata={"project": "boreas"})
    [(event, new)] = await tell(client, "I moved to Lisbon", filters=OF_ATLAS, metadata={"project": "atlas"})
    assert event == "ADD"
    assert await known(client) == {old, new}
    [(event, latest)] = await tell(client, "I moved to Oslo", filters=OF_ATLAS)
    assert event == "UPDATE"
    assert await known(client) == {old, latest}


async def test_an_equal_text_is_known_whatever_the_filter(client: AsyncClient) -> None:
    [(_, old)] = await tell(client, "I live in Berlin")
    assert await tell(client, "I live in Berlin", filters=OF_ATLAS) == [("NONE", old)]


async def test_a_job_keeps_to_the_filter(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    [(_, old)] = await tell(client, "I live in Berlin")
    secret = {"AND": [OF_ATLAS, {"NOT": {"field": "mail", "operator": "in", "value": ["bob@example.org", 5]}}]}
    body = {"messages": [{"role": "user", "content": "I moved to Lisbon"}], **USER, "filters": secret}
    answer = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    assert "operation" not in await tables.holding("bob@example.org")
    assert await work(resources, tables, tenant.workspace_id, "ingest") == 1
    assert old in await known(client)
    assert len(await known(client)) == 2


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"filters": {"field": "importance", "operator": "gt", "value": "x"}}, "filters.value"),
        ({"filters": {"AND": [{"field": "tag", "operator": "has", "value": "x"}]}}, "filters.AND[0].operator"),
        ({"filters": {"a": 1}}, "filters.a"),
        ({"filters": OF_ATLAS, "infer": False}, "filters"),
        ({"filters": {"field": "x", "operator": "in", "value": ["y" * 1_000] * 21}}, "filters"),
    ],
)
async def test_a_wrong_one_is_refused(client: AsyncClient, more: dict[str, Any], field: str) -> None:
    body = {"messages": [{"role": "user", "content": "I live in Berlin"}], **USER, **more}
    answer = await client.post("/v1/memories", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text

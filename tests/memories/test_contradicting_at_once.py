"""Twenty facts that contradict each other, stored at once, leave what some order of them would."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.postgres.scopes import ScopeLocks
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.http_server import HttpRequest
from tests.fakes.openai_server import Content
from tests.support.application import Tables, with_llm
from tests.support.conversing import answer, past
from tests.support.scripted_model import FENCED, NUMBERED, with_scripted_model

CITIES = (
    *("Oslo", "Lisbon", "Porto", "Faro", "Madrid", "Paris", "Lyon", "Rome", "Milan", "Turin"),
    *("Vienna", "Berlin", "Munich", "Hamburg", "Prague", "Warsaw", "Krakow", "Athens", "Dublin", "London"),
)


def facts(cities: Sequence[str]) -> set[str]:
    return {f"User: I live in {city}" for city in cities}


def newest_home(request: HttpRequest) -> Content:
    """A model for which there is one home: the new one takes the place of whatever is shown."""
    said = request.json["messages"][1]["content"]
    if request.json["model"] == "extract":
        return {"facts": [f"User: I live in {city}" for city in CITIES if f"in {city}" in FENCED.findall(said)[-1]]}
    shown = NUMBERED.findall(said)
    [fact, *_] = FENCED.findall(said)
    if not shown:
        return {"items": [{"event": "ADD"}]}
    return {"items": [{"event": "UPDATE", "id": shown[0][0], "old_memory": shown[0][1], "data": fact}]}


async def all_at_once(client: AsyncClient) -> list[dict[str, Any]]:
    told = await asyncio.gather(*(answer(client, f"I live in {city}") for city in CITIES))
    return [result for each in told for result in each["results"]]


@pytest.fixture
async def patient(resources: Resources) -> Resources:
    """On a busy machine the last of twenty may come late, and 503 would be right."""
    return replace(resources, locks=ScopeLocks(timeout_s=110))


async def test_with_a_model_one_home_is_left_and_history_is_the_order(patient: Resources, tenant: Tenant) -> None:
    async with with_scripted_model(patient, tenant, newest_home) as scripted:
        results = await all_at_once(scripted.client)
        await _is_one_chain(scripted.client, results)


async def test_offline_one_home_is_left_and_history_is_the_order(patient: Resources, tenant: Tenant) -> None:
    async with with_llm(patient, tenant, None) as client:
        results = await all_at_once(client)
        await _is_one_chain(client, results)


async def _is_one_chain(client: AsyncClient, results: list[dict[str, Any]]) -> None:
    listed = (await client.get("/v1/memories", params={"user_id": "bob"})).json()["results"]
    [left] = [each["memory"] for each in listed]
    assert len({each["id"] for each in results}) == 1
    assert sorted(each["event"] for each in results) == ["ADD", *["UPDATE"] * (len(CITIES) - 1)]
    entries = await past(client, listed[0]["id"])
    assert [entry["old_memory"] for entry in entries[1:]] == [entry["new_memory"] for entry in entries[:-1]]
    assert {entry["new_memory"] for entry in entries} == facts(CITIES)
    assert len(entries) == len(CITIES)
    assert entries[-1]["new_memory"] == left
    answered = {(each["old_memory"], each["memory"]) for each in results}
    assert answered == {(entry["old_memory"], entry["new_memory"]) for entry in entries}


async def test_superseding_each_other_they_form_one_line(patient: Resources, tenant: Tenant, tables: Tables) -> None:
    async with with_llm(patient, tenant, None) as client:
        await client.patch("/v1/workspaces/current", json={"settings": {"contradiction_policy": "supersede"}})
        await all_at_once(client)
    rows = await tables.fetch(
        "SELECT content, t_invalid IS NULL AS valid FROM memory WHERE workspace_id = $1", tenant.workspace_id
    )
    assert {row["content"] for row in rows} == facts(CITIES)
    assert sum(row["valid"] for row in rows) == 1
    edges = await tables.fetch(
        "SELECT source_id, target_id FROM memory_edge WHERE workspace_id = $1 AND rel_type = 'SUPERSEDES'",
        tenant.workspace_id,
    )
    assert len(edges) == len({edge["source_id"] for edge in edges}) == len({edge["target_id"] for edge in edges})
    assert len(edges) == len(CITIES) - 1

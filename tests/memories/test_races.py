"""64 writers at once leave one row, one history, one job; facts that contradict each other what some order leaves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient, Response

from service.postgres.scopes import ScopeLocks
from service.providers.protocols import Llm, LlmReply, LlmRequest
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.fakes.http_server import HttpRequest
from tests.fakes.openai_server import Content
from tests.support.application import Tables, client_of, serving, with_llm
from tests.support.conversing import answer, past
from tests.support.scripted_model import FENCED, NUMBERED, with_scripted_model

WRITERS = 64
FEWER = 24
"""Where one more writer shows nothing new: the machine of the tests may be slow."""


@pytest.fixture
async def resources(resources: Resources) -> Resources:
    """With patience: on a busy machine the last of 64 writers may come late, and 503 would be right."""
    return replace(resources, locks=ScopeLocks(timeout_s=110))


@pytest.fixture
async def client(resources: Resources, tenant: Tenant) -> AsyncIterator[AsyncClient]:
    async with serving(resources) as app, client_of(app, tenant.key) as found:
        yield found


async def at_once(client: AsyncClient, bodies: list[dict[str, Any]]) -> list[Response]:
    return list(await asyncio.gather(*(client.post("/v1/memories", json=body) for body in bodies)))


async def test_64_identical_adds_make_one_row(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    body = {"content": "Keeps the spare key under the blue pot", "user_id": "iris"}
    answers = await at_once(client, [body] * WRITERS)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: WRITERS - 1}
    results = [answer.json()["results"][0] for answer in answers]
    assert len({result["id"] for result in results}) == 1
    assert Counter(result["event"] for result in results) == {"ADD": 1, "NONE": WRITERS - 1}
    assert {result["memory"] for result in results} == {body["content"]}
    counts = await tables.counts(tenant.workspace_id)
    assert {name: counts[name] for name in ("memory", "memory_stat", "memory_vector", "memory_history", "job")} == {
        "memory": 1,
        "memory_stat": 1,
        "memory_vector": 1,
        "memory_history": 1,
        "job": 1,
    }
    history = (await client.get(f"/v1/memories/{results[0]['id']}/history")).json()["results"]
    assert [entry["event"] for entry in history] == ["ADD"]
    kinds = await tables.fetch("SELECT kind FROM job WHERE workspace_id = $1", tenant.workspace_id)
    assert [row["kind"] for row in kinds] == ["enrich"]


async def test_identical_adds_by_agent_and_run(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    """Scopes without a user lock by agent, those without an agent by run."""
    scopes: list[dict[str, str]] = [{"agent_id": "a"}, {"run_id": "r"}, {"agent_id": "a", "run_id": "r"}]
    bodies = [{"content": "Sails on Sundays", **scope} for scope in islice(cycle(scopes), FEWER)]
    answers = await at_once(client, bodies)
    assert {answer.status_code for answer in answers} == {200, 201}
    assert (await tables.counts(tenant.workspace_id))["memory"] == len(scopes)


PUNCTUATION = ["", ".", "!", " .", "...", ";", " !", "!!"]
OPENINGS = [
    "Prefers tea over coffee",
    "prefers tea over coffee",
    "Prefers  tea over coffee",
    "Prefers tea over  coffee",
]


def paraphrases() -> list[str]:
    """64 texts, all different, with the same words."""
    endings = [*PUNCTUATION, *(f"{mark} " for mark in PUNCTUATION)]
    texts = [opening + ending for opening in OPENINGS for ending in endings]
    assert len(set(texts)) == WRITERS
    return texts


async def test_64_paraphrases_above_the_short_cut_leave_one_row(
    client: AsyncClient, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    texts = paraphrases()
    for index, text in enumerate(texts):
        embedder.place(text, 1 - index * 1e-5)
    answers = await at_once(client, [{"content": text, "user_id": "iris"} for text in texts])
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: WRITERS - 1}
    assert {answer.json()["results"][0]["dedup"]["action"] for answer in answers} == {"stored_new", "duplicate_exact"}
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


class Scripted:
    """A language model with one opinion on notes that are close."""

    model = "test:scripted"

    def __init__(self, decision: dict[str, Any]) -> None:
        self.asked: list[LlmRequest] = []
        self._decision = decision

    async def complete(self, ask: LlmRequest) -> LlmReply:
        self.asked.append(ask)
        await asyncio.sleep(0.002)
        answers = {
            "decide": self._decision,
            "annotate": {"importance": 5, "temporal": "persistent", "valid_until": None, "categories": ["x"]},
            "classify": {"type": "Context", "confidence": 0.5},
        }
        return LlmReply(json.dumps(answers[ask.task]), model=self.model)

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    "decision",
    [{"action": "none", "id": 1}, {"action": "update", "id": 1, "text": "Prefers tea to coffee in general"}],
    ids=["none", "update"],
)
async def test_paraphrases_in_the_band_that_the_model_calls_the_same_leave_one_row(
    resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder, decision: dict[str, Any]
) -> None:
    texts = paraphrases()[:FEWER]
    for index, text in enumerate(texts):  # pairwise between 0.72 and 1: around one axis, each to another side
        embedder.place(text, 0.85, side=index + 1)
    embedder.place("Prefers tea to coffee in general", 1.0)
    llm: Llm = Scripted(decision)
    async with with_llm(resources, tenant, llm) as client:
        answers = await at_once(client, [{"content": text, "user_id": "iris"} for text in texts])
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers][:2]
    events = Counter(answer.json()["results"][0]["event"] for answer in answers)
    assert events["ADD"] == 1
    active = await tables.fetch(
        "SELECT content FROM memory WHERE workspace_id = $1 AND NOT archived", tenant.workspace_id
    )
    assert len(active) == 1


async def test_one_id_in_two_scopes_at_once_is_a_conflict_and_no_accident(
    client: AsyncClient, tenant: Tenant, tables: Tables
) -> None:
    """Different users do not wait for each other, so both may find the id free."""
    chosen = str(uuid4())
    bodies = [{"content": f"Note of user {user}", "user_id": f"u{user}", "id": chosen} for user in range(8)]
    answers = await at_once(client, bodies)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 7}, [each.text for each in answers]
    assert all(answer.json()["field"] == "id" for answer in answers if answer.status_code == 409)
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


async def test_a_merge_into_a_text_that_is_there_already_makes_no_second_one(
    resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    """The model may answer with the exact text of another memory: the unique index then says no."""
    embedder.place("Likes rye bread", 0.9, side=1)
    embedder.place("Plays the oboe", 0.9, side=2)
    embedder.place("Rye is the bread of choice", 1.0)
    async with with_llm(resources, tenant, Scripted({"action": "add"})) as client:
        for text in ("Likes rye bread", "Plays the oboe"):
            stored = await client.post("/v1/memories", json={"content": text, "user_id": "iris"})
            assert stored.status_code == 201, stored.text
    merging = Scripted({"action": "update", "id": 1, "text": "Plays the oboe"})
    async with with_llm(resources, tenant, merging) as client:
        answer = await client.post("/v1/memories", json={"content": "Rye is the bread of choice", "user_id": "iris"})
    assert answer.status_code in (200, 201), answer.text
    found = await tables.fetch("SELECT content FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    texts = [row[0] for row in found]
    assert len(texts) == len(set(texts))


async def test_waiters_of_one_scope_do_not_keep_another_tenant_waiting(
    client: AsyncClient, other_client: AsyncClient
) -> None:
    crowd = asyncio.gather(
        *(client.post("/v1/memories", json={"content": f"Note number {n}", "user_id": "iris"}) for n in range(FEWER))
    )
    await asyncio.sleep(0.05)
    answer = await other_client.post("/v1/memories", json={"content": "Mine", "user_id": "bob"})
    assert answer.status_code == 201
    assert not crowd.done(), "the other tenant came after the whole crowd"
    assert {each.status_code for each in await crowd} == {201}


# -- facts that contradict each other ----------------------------------------------------------------------------------

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


async def test_with_a_model_one_home_is_left_and_history_is_the_order(resources: Resources, tenant: Tenant) -> None:
    async with with_scripted_model(resources, tenant, newest_home) as scripted:
        results = await all_at_once(scripted.client)
        await _is_one_chain(scripted.client, results)


async def test_offline_one_home_is_left_and_history_is_the_order(resources: Resources, tenant: Tenant) -> None:
    async with with_llm(resources, tenant, None) as client:
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


async def test_superseding_each_other_they_form_one_line(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with with_llm(resources, tenant, None) as client:
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

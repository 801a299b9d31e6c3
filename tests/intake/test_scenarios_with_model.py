"""Add, update, delete and history, with a scripted model behind real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.conversing import answer, events, known, past, tell
from tests.support.scripted_model import ConversationScript, ModelSetup, with_scripted_model

INTRODUCTION = [
    {"role": "user", "content": "Hi, I'm Alice. I'm a data scientist at Acme Corp, I work on NLP and recommenders."},
    {"role": "assistant", "content": "Nice to meet you. Which framework do you like?"},
    {"role": "user", "content": "I prefer PyTorch over TensorFlow."},
]
NAME, JOB = "User's name is Alice", "User is a data scientist at Acme Corp"
FIELD, FRAMEWORK = "User works on NLP and recommendation systems", "User prefers PyTorch over TensorFlow"
NEW_JOB = "User works at Globex as ML lead"

THREE = "I like tea, I like rain and I like snow"
MIND = ConversationScript(
    facts={
        "Hi, I'm Alice": [NAME, JOB, FIELD, FRAMEWORK],
        "job at Globex": [NEW_JOB],
        "My name is Bob": ["User's name is Bob"],
        "I like Python": ["User likes Python"],
        "NYC": ["User lives in NYC"],
        "in tech": ["User works in tech"],
        "at Google": ["User works at Google as a senior engineer"],
        "vegetarian": ["User is vegetarian"],
        "meat again": ["User started eating meat again"],
        "dog named Rex": ["User moved to San Francisco", "User has a dog named Rex"],
        "San Francisco": ["User moved to San Francisco"],
        THREE: ["User likes tea", "User likes rain", "User likes snow"],
    },
    decisions={
        NEW_JOB: [{"event": "UPDATE", "of": JOB, "data": NEW_JOB}],
        "User moved to San Francisco": [
            {"event": "UPDATE", "of": "User lives in NYC", "data": "User lives in San Francisco"}
        ],
        "User works at Google as a senior engineer": [
            {"event": "UPDATE", "of": "User works in tech", "data": "User works at Google as a senior engineer"}
        ],
        "User started eating meat again": [
            {"event": "DELETE", "of": "User is vegetarian"},
            {"event": "ADD"},
        ],
    },
)


@pytest.fixture
async def scripted(resources: Resources, tenant: Tenant) -> AsyncIterator[ModelSetup]:
    async with with_scripted_model(resources, tenant, MIND) as found:
        yield found


@pytest.fixture
def client(scripted: ModelSetup) -> AsyncClient:
    return scripted.client


async def test_a_name_is_exactly_one_add(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    [only] = await tell(client, "My name is Bob")
    assert (only["event"], only["memory"]) == ("ADD", "User's name is Bob")
    rows = await tables.fetch("SELECT id, content FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    assert [(str(row["id"]), row["content"]) for row in rows] == [(only["id"], "User's name is Bob")]
    told = await tables.fetch(
        "SELECT event, new_memory FROM memory_history WHERE workspace_id = $1", tenant.workspace_id
    )
    assert [(row["event"], row["new_memory"]) for row in told] == [("ADD", "User's name is Bob")]


async def test_a_conversation_gives_several_adds(client: AsyncClient, scripted: ModelSetup) -> None:
    results = await tell(client, INTRODUCTION, "alice")
    assert events(results) == ["ADD"] * 4
    [question] = scripted.requests_of("extract")
    lines = question["messages"][1]["content"].splitlines()
    said = [line for line in lines if line.startswith("[")]
    assert [line.split(" ", 4)[4].partition(":")[0] for line in said] == ["user", "assistant", "user"]


async def test_a_greeting_may_give_nothing(client: AsyncClient) -> None:
    told = await answer(client, "hello")
    assert told["results"] == []
    assert told["warnings"] == ["no_facts: the language model found nothing worth keeping."]


async def test_an_added_fact_can_be_read(client: AsyncClient) -> None:
    [added] = await tell(client, "My name is Bob", metadata={"source": "chat"})
    read = (await client.get(f"/v1/memories/{added['id']}")).json()
    assert (read["memory"], read["user_id"], read["metadata"]) == ("User's name is Bob", "bob", {"source": "chat"})


async def test_the_same_fact_again_is_none_without_a_question(
    client: AsyncClient, scripted: ModelSetup, tenant: Tenant, tables: Tables
) -> None:
    [first] = await tell(client, "My name is Bob")
    [again] = await tell(client, "By the way, My name is Bob")
    assert (again["event"], again["id"]) == ("NONE", first["id"])
    assert scripted.requests_of("decide") == []
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


async def test_an_identical_conversation_is_answered_from_the_cache(client: AsyncClient, scripted: ModelSetup) -> None:
    """The model is asked once as long as time, turns and memories are the same; timings and usage say so."""
    said = [{"role": "user", "content": THREE, "timestamp": "2026-05-01T10:00:00Z"}]
    first = await answer(client, said, "alice")
    again = await answer(client, said, "bob")
    assert events(first["results"]) == events(again["results"]) == ["ADD"] * 3
    assert len(scripted.requests_of("extract")) == 1
    assert again["usage"]["llm_calls"] == 0
    assert again["usage"]["cached"] >= 1
    assert {"extract", "embed", "decide", "total"} <= set(first["timings_ms"])


async def test_a_move_updates_the_home(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in NYC")
    [moved] = await tell(client, "I moved to San Francisco")
    assert (moved["event"], moved["id"]) == ("UPDATE", first["id"])
    assert (moved["old_memory"], moved["memory"]) == ("User lives in NYC", "User lives in San Francisco")
    assert events(await past(client, first["id"])) == ["ADD", "UPDATE"]


async def test_a_finer_fact_updates_with_the_more_exact_text(client: AsyncClient) -> None:
    [first] = await tell(client, "I work in tech")
    [finer] = await tell(client, "I work at Google as a senior engineer")
    assert (finer["event"], finer["id"]) == ("UPDATE", first["id"])
    assert await known(client) == ["User works at Google as a senior engineer"]


async def test_a_claim_that_ended_is_removed(client: AsyncClient, scripted: ModelSetup) -> None:
    """Asked although the two texts lie far apart."""
    [first] = await tell(client, "I'm vegetarian")
    results = await tell(client, "I started eating meat again")
    assert events(results) == ["DELETE", "ADD"]
    assert len(scripted.requests_of("decide")) == 1
    assert await known(client) == ["User started eating meat again"]
    assert events(await past(client, first["id"])) == ["ADD", "DELETE"]


async def test_one_conversation_adds_and_updates(client: AsyncClient) -> None:
    [home] = await tell(client, "I live in NYC")
    results = await tell(client, "I moved to San Francisco and I have a dog named Rex")
    assert [(each["event"], each["memory"]) for each in results] == [
        ("UPDATE", "User lives in San Francisco"),
        ("ADD", "User has a dog named Rex"),
    ]
    assert results[0]["id"] == home["id"]


async def test_a_prompt_replaces_the_instruction(client: AsyncClient, scripted: ModelSetup) -> None:
    await tell(client, "My name is Bob", prompt="Only extract allergies.")
    [question] = scripted.requests_of("extract")
    assert question["messages"][0]["content"].startswith("Only extract allergies.")
    assert "personal preferences" not in question["messages"][0]["content"]


async def test_alice_introduces_herself_and_changes_her_job(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """The two jobs have no word in common, but a meaning."""
    embedder.place(JOB, 1.0)
    embedder.place(NEW_JOB, 0.6)
    first = await tell(client, INTRODUCTION, "alice")
    assert [(each["event"], each["memory"]) for each in first] == [
        ("ADD", text) for text in (NAME, JOB, FIELD, FRAMEWORK)
    ]
    [changed] = await tell(client, "I got a new job at Globex as ML lead", "alice")
    assert (changed["event"], changed["id"]) == ("UPDATE", first[1]["id"])
    assert (changed["old_memory"], changed["memory"]) == (JOB, NEW_JOB)
    assert [(each["event"], each["new_memory"]) for each in await past(client, changed["id"])] == [
        ("ADD", JOB),
        ("UPDATE", NEW_JOB),
    ]

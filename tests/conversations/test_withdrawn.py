"""What was deleted, changed or superseded is told by no read of memory, from whichever turn it came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.conversations.statements.turns import LATE_VECTORS
from service.memories.lifecycle import remove_outlived
from service.memories.statements import sources
from service.memories.statements.sources import SourceLink
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.upkeep.jobs.embed import embed_missing
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables
from tests.support.calls import store
from tests.support.judging import decided, judged, tell
from tests.support.workers import fetch

ALICE = {"user_id": "alice"}


@pytest.fixture
def worker(resources: Resources, worker_database: Database) -> Resources:
    return replace(resources, db=worker_database)


async def everything_read(client: AsyncClient, query: str) -> str:
    """All that the reads of memory return, as one text."""
    recall = {"query": query, **ALICE, "format": "markdown", "min_probability": 0, "max_tokens": 4_000, "around": 2}
    answers = [
        await client.post("/v1/recall", json=recall),
        await client.post("/v1/memories/search", json={"query": query, "limit": 50, **ALICE}),
        await client.get("/v1/turns/search", params={"query": query, "limit": 100, **ALICE}),
        await client.get("/v1/turns/recent", params=ALICE),
        await client.get("/v1/timeline", params=ALICE),
    ]
    talks = (await client.get("/v1/conversations", params=ALICE)).json()["results"]
    answers += [await client.get(f"/v1/conversations/{talk['id']}/context", params={"query": query}) for talk in talks]
    assert [each.status_code for each in answers] == [200] * len(answers), [each.text for each in answers]
    return "\n".join(each.text.replace(query, "") for each in answers)


async def transcript(client: AsyncClient, conversation: str = "chat") -> list[dict[str, Any]]:
    answer = await client.get(f"/v1/conversations/{conversation}", params=ALICE)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["turns"]
    return found


async def learned(client: AsyncClient, judge: Any, said: str, fact: str, *operations: dict[str, Any]) -> str:
    """The id of the memory that a message led to."""
    judge.say(fact, *(operations or [{"event": "ADD", "text": fact}]))
    results = await tell(client, said, run_id="chat", **ALICE)
    found: str = results[0]["id"]
    return found


def holds(read: str, *parts: str) -> Sequence[bool]:
    return [part in read for part in parts]


async def test_a_deleted_fact_is_told_by_no_read(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant) as (client, judge):
        said = "I have a walnut allergy. The weather in Bergen was awful."
        allergy = await learned(client, judge, said, "I have a walnut allergy.")
        assert holds(await everything_read(client, "Allergies?"), "walnut allergy", "Bergen") == [True, True]
        assert (await client.delete(f"/v1/memories/{allergy}")).status_code == 200
        assert holds(await everything_read(client, "Allergies?"), "walnut", "Bergen") == [False, True]
        [turn] = await transcript(client)
        assert (turn["content"], turn["withdrawn"]) == ("The weather in Bergen was awful.", [])
        found = await client.get("/v1/turns/search", params={"query": "walnut", **ALICE})
        assert [each["content"] for each in found.json()["results"]] in ([], ["The weather in Bergen was awful."])
        assert await tables.value("SELECT count(*) FROM turn_vector WHERE workspace_id = $1", tenant.workspace_id) == 0
        await embed_missing(LATE_VECTORS, tenant.workspace_id, resources)
        assert await tables.value("SELECT count(*) FROM turn_vector WHERE workspace_id = $1", tenant.workspace_id) == 1


async def test_a_turn_of_which_nothing_is_left_is_no_hit(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        allergy = await learned(client, judge, "I have a walnut allergy.", "Has a walnut allergy")
        await client.delete(f"/v1/memories/{allergy}")
        assert holds(await everything_read(client, "Allergies?"), "walnut") == [False]
        for path, params in (("turns/search", {"query": "walnut allergy"}), ("turns/recent", {}), ("timeline", {})):
            assert (await client.get(f"/v1/{path}", params={**params, **ALICE})).json()["results"] == []
        assert await transcript(client) == []


async def test_an_updated_fact_is_marked_in_the_transcript_only_and_comes_back_by_undo(
    resources: Resources, tenant: Tenant
) -> None:
    async with judged(resources, tenant) as (client, judge):
        said = "Hello there, old friend. I live in Lisbon."
        home = await learned(client, judge, said, "I live in Lisbon.")
        await learned(client, judge, "I live in Porto now.", "I live in Porto.", {"event": "UPDATE", "id": 1})
        read = await everything_read(client, "Where is home?")
        assert holds(read, "Lisbon", "Porto", "old friend") == [False, True, True]
        first, second = await transcript(client)
        [mark] = first["withdrawn"]
        assert first["content"] == said
        assert said[mark["start"] : mark["end"]] == "I live in Lisbon."
        assert (mark["reason"], mark["memory_id"], mark["replaced_by"]) == ("updated", home, home)
        assert second["withdrawn"] == []
        [update] = [each for each in await decided(client, home) if each["event"] == "UPDATE"]
        assert (await client.post(f"/v1/decisions/{update['id']}/undo")).status_code == 200
        assert holds(await everything_read(client, "Where is home?"), "Lisbon") == [True]
        assert [turn["withdrawn"] for turn in await transcript(client)] == [[], []]


@pytest.mark.parametrize(
    ("policy", "operations"),
    [
        ("in_place", [{"event": "DELETE", "id": 1}, {"event": "ADD", "text": "I quit the climbing gym."}]),
        ("supersede", [{"event": "UPDATE", "id": 1, "text": "I quit the climbing gym."}]),
    ],
)
async def test_a_retired_and_a_superseded_fact(
    resources: Resources, tenant: Tenant, policy: str, operations: list[dict[str, Any]]
) -> None:
    async with judged(resources, tenant, contradiction_policy=policy) as (client, judge):
        await learned(client, judge, "I go to the climbing gym.", "I go to the climbing gym.")
        await learned(client, judge, "I quit the climbing gym.", "I quit the climbing gym.", *operations)
        assert holds(await everything_read(client, "Sports?"), "I go to", "I quit") == [False, True]
        [mark] = (await transcript(client))[0]["withdrawn"]
        assert mark["reason"] == "superseded"


async def test_a_sentence_that_another_memory_rests_on_stays(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        first = await learned(client, judge, "Wanda and Olaf share the studio.", "Wanda has a studio.")
        other = await store(client, "Olaf has a studio too.")
        [turn] = await transcript(client)
        async with resources.db.begin(tenant.workspace_id) as session:
            link = SourceLink(UUID(other), UUID(turn["id"]), 0, len(turn["content"]))
            await sources.link(session, [link])
        assert (await client.delete(f"/v1/memories/{first}")).status_code == 200
        assert holds(await everything_read(client, "Office?"), "share the studio") == [True]
        assert (await client.delete(f"/v1/memories/{other}")).status_code == 200
        assert holds(await everything_read(client, "Office?"), "share the studio") == [False]


async def test_what_only_adds_to_a_fact_withdraws_nothing(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        await learned(client, judge, "I like pizza.", "I like pizza.")
        more = "I like pizza with olives."
        await learned(client, judge, "With olives, of course.", more, {"event": "UPDATE", "id": 1, "text": more})
        assert [turn["withdrawn"] for turn in await transcript(client)] == [[], []]


async def test_a_message_kept_word_for_word_is_told_as_it_was_changed(client: AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "The code is 4711."}], "infer": False, "run_id": "chat", **ALICE}
    answer = await client.post("/v1/memories", json=body)
    [result] = answer.json()["results"]
    changed = await client.patch(f"/v1/memories/{result['id']}", json={"content": "The code is 9999."})
    assert changed.status_code == 200, changed.text
    read = await everything_read(client, "What is the code?")
    assert holds(read, "4711", "9999") == [False, True]
    recalled = await client.post(
        "/v1/recall", json={"query": "What is the code?", **ALICE, "format": "markdown", "min_probability": 0}
    )
    assert "9999" in recalled.json()["markdown"]


async def corrected(client: AsyncClient, method: str = "PATCH", **fields: Any) -> str:
    """The id of a memory that was read from the one turn of a chat and then corrected by hand."""
    said = {"role": "user", "content": "I play the cello in the Oslo orchestra."}
    answer = await client.post("/v1/memories", json={"messages": [said], "session_id": "chat", **fields, **ALICE})
    found: str = answer.json()["results"][0]["id"]
    changed = await client.request(method, f"/v1/memories/{found}", json={"content": "Sofia plays the oboe."})
    assert changed.status_code == 200, changed.text
    [turn] = await transcript(client)
    assert [mark["reason"] for mark in turn["withdrawn"]] == ["updated"]
    return found


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
@pytest.mark.parametrize("way", ["DELETE", "ids", "query", "batch"])
async def test_a_corrected_fact_that_is_deleted_leaves_the_transcript_and_comes_back_corrected(
    client: AsyncClient, method: str, way: str
) -> None:
    memory = await corrected(client, method)
    if way == "DELETE":
        answer = await client.delete(f"/v1/memories/{memory}")
    elif way == "batch":
        answer = await client.post("/v1/memories/batch/delete", json={"ids": [memory]})
    else:
        wanted = {"ids": [memory]} if way == "ids" else {"query": "oboe"}
        answer = await client.post("/v1/forget", json={**wanted, **ALICE})
    assert answer.status_code == 200, answer.text
    assert await transcript(client) == []
    assert (await client.post(f"/v1/memories/{memory}/restore")).status_code == 200
    [turn] = await transcript(client)
    assert [mark["reason"] for mark in turn["withdrawn"]] == ["updated"]
    assert holds(await everything_read(client, "Music?"), "cello", "oboe") == [False, True]


async def test_a_corrected_fact_that_expires_leaves_the_transcript(
    client: AsyncClient, clock: SetClock, worker: Resources
) -> None:
    await corrected(client, expires_at="2026-03-03T00:00:00Z")
    clock.forward(days=2)
    await remove_outlived(worker)
    assert await transcript(client) == []


async def test_words_that_only_the_marked_part_of_a_transcript_has_can_be_forgotten(client: AsyncClient) -> None:
    memory = await corrected(client)
    answer = await client.post("/v1/forget", json={"query": "cello", **ALICE})
    assert [each["text"] for each in answer.json()["turns"]] == ["I play the cello in the Oslo orchestra."]
    assert await transcript(client) == []
    assert (await client.get(f"/v1/memories/{memory}")).status_code == 200
    again = await client.post("/v1/forget", json={"query": "cello", **ALICE})
    assert again.json()["turns"] == []


@pytest.mark.parametrize("cleaned_up", [False, True])
async def test_what_has_expired_is_told_no_more(
    resources: Resources, tenant: Tenant, clock: SetClock, worker: Resources, *, cleaned_up: bool
) -> None:
    async with judged(resources, tenant) as (client, judge):
        judge.say("The garden party is cancelled.", {"event": "ADD", "text": "The garden party is cancelled."})
        await tell(
            client, "Well, the garden party is cancelled.", run_id="chat", expires_at="2026-03-03T00:00:00Z", **ALICE
        )
        assert holds(await everything_read(client, "Party?"), "garden") == [True]
        clock.forward(days=2)
        if cleaned_up:
            await remove_outlived(worker)
        assert holds(await everything_read(client, "Party?"), "garden") == [False]


async def test_no_other_workspace_sees_or_touches_withdrawn_spans(
    resources: Resources, tenant: Tenant, stranger: Tenant
) -> None:
    async with judged(resources, tenant) as (client, judge):
        allergy = await learned(client, judge, "Well, I have a walnut allergy.", "I have a walnut allergy.")
        await client.delete(f"/v1/memories/{allergy}")
    for each, count in ((stranger, 0), (tenant, 1)):
        assert len(await fetch(resources.db, each.workspace_id, "SELECT turn_id FROM withdrawn_span")) == count

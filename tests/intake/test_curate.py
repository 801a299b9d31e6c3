"""Conversations become facts by the rules alone, compared with all that is known or with what a filter chooses."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from service.understanding import outdating
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.conversing import tell
from tests.support.tasks import work


@pytest.mark.parametrize(("name", "events"), [("session_id", ["NONE"]), ("run_id", ["ADD"])])
async def test_facts_of_a_session_are_the_users_and_those_of_a_run_its_own(
    client: AsyncClient, name: str, events: list[str]
) -> None:
    await tell(client, "My name is Bob", **{name: "chat-1"})
    again = await tell(client, "My name is Bob", **{name: "chat-2"})
    assert [each["event"] for each in again] == events
    listed = (await client.get("/v1/conversations", params={"user_id": "bob"})).json()["results"]
    assert {each["external_id"] for each in listed} == {"chat-1", "chat-2"}


async def test_a_move_leaves_the_job(client: AsyncClient) -> None:
    """The README, line by line."""
    told = await tell(client, "I moved to Lisbon last month, I work at Acme now.")
    await tell(client, "I moved to Porto.")
    listed = (await client.get("/v1/memories", params={"user_id": "bob"})).json()["results"]
    assert {each["memory"] for each in listed} == {told[0]["memory"], "User: I moved to Porto."}


async def test_a_fact_tells_what_was_cut_out_of_its_message(client: AsyncClient) -> None:
    [result] = await tell(client, "I live in Oslo. I moved my savings to the card 4111 1111 1111 1111.")
    assert result["memory"] == "User: I live in Oslo. I moved my savings to the card [REDACTED:CREDIT_CARD]."
    assert result["pii"]["redactions"] == [{"label": "CREDIT_CARD", "count": 1}]


async def test_who_speaks_does_not_make_a_login_of_a_message(client: AsyncClient) -> None:
    [result] = await tell(client, "Cutover done. Everything's answering out of eu-north-1, Dublin is switched off.")
    assert result["memory"].endswith("out of eu-north-1, Dublin is switched off.")


async def test_a_sentence_that_ends_is_struck_and_the_rest_of_the_message_stays(client: AsyncClient) -> None:
    [first] = await tell(client, "I work at Acme. I prefer PyTorch over TensorFlow.", "alice")
    later, struck = await tell(client, "I work at Globex as ML lead now.", "alice")
    assert (later["event"], struck["event"], struck["id"]) == ("ADD", "UPDATE", first["id"])
    assert (struck["memory"], struck["old_memory"]) == ("User: I prefer PyTorch over TensorFlow.", first["memory"])
    kept = {each["id"]: each["memory"] for each in (await listed(client, "alice"))}
    assert kept == {
        first["id"]: "User: I prefer PyTorch over TensorFlow.",
        later["id"]: "User: I work at Globex as ML lead now.",
    }
    history = (await client.get(f"/v1/memories/{first['id']}/history")).json()["results"]
    assert [entry["old_memory"] for entry in history] == [
        None,
        "User: I work at Acme. I prefer PyTorch over TensorFlow.",
    ]


async def test_undo_brings_the_sentence_back(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in Leeds. I have a cat.", "alice")
    moved, _ = await tell(client, "I moved to York.", "alice")
    [verdict] = (await client.get(f"/v1/memories/{moved['id']}/decisions")).json()["results"]
    undone = (await client.post(f"/v1/decisions/{verdict['id']}/undo")).json()
    assert undone["removed"] == [moved["id"]]
    assert [each["memory"] for each in undone["memories"]] == [first["memory"]]
    assert [each["memory"] for each in await listed(client, "alice")] == [first["memory"]]


async def test_a_dry_run_shows_the_sentence_that_would_end(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in Leeds. I have a cat.", "alice")
    results = await tell(client, "I moved to York.", "alice", dry_run=True)
    assert [(each["event"], each["memory"]) for each in results] == [
        ("ADD", "User: I moved to York."),
        ("UPDATE", "User: I have a cat."),
    ]
    assert [each["memory"] for each in await listed(client, "alice")] == [first["memory"]]


@pytest.mark.parametrize("waits", [True, False])
async def test_one_sentence_after_another_can_end(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, *, waits: bool
) -> None:
    """Whether the rest has its new vector by then or not."""
    [first] = await tell(client, "I have two kids, Mia and Jo. I live in Leeds. I take metformin.", "alice")
    await tell(client, "I no longer take metformin.", "alice")
    if waits:
        await work(resources, tables, tenant.workspace_id, "embed")
        known = (await client.get(f"/v1/memories/{first['id']}")).json()
        assert known["embedding"] == "stored"
    _, struck = await tell(client, "I don't live in Leeds any more.", "alice")
    assert (struck["id"], struck["memory"]) == (first["id"], "User: I have two kids, Mia and Jo.")


async def test_facts_of_one_request_see_each_other(client: AsyncClient, embedder: AngleEmbedder) -> None:
    for index, home in enumerate(("I live in Graz.", "I moved to Linz.", "I moved to Wels.")):
        embedder.place(f"User: {home}", 1.0 - index / 10)
    said = [{"role": "user", "content": text} for text in ("I live in Graz.", "I moved to Linz.", "I moved to Wels.")]
    answer = await client.post("/v1/memories", json={"messages": said, "user_id": "alice"})
    assert [each["event"] for each in answer.json()["results"]] == ["ADD", "UPDATE", "UPDATE"]
    assert [each["memory"] for each in await listed(client, "alice")] == ["User: I moved to Wels."]


async def test_facts_of_one_request_are_marked_as_those_of_two_are(
    client: AsyncClient, embedder: AngleEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outdating, "weigh", lambda *_: lambda _: 9.0)  # fitted on longer vectors than the tests have
    said = [{"role": "user", "content": text} for text in ("I weigh 80 kg.", "I weigh 75 kg now.")]
    for message, cosine in zip(said, (1.0, 0.9), strict=True):
        embedder.place(f"User: {message['content']}", cosine)
        await client.post("/v1/memories", json={"messages": [message], "user_id": "two"})
    await client.post("/v1/memories", json={"messages": said, "user_id": "one"})
    for user in ("one", "two"):
        marked = {each["memory"] for each in await listed(client, user) if each["may_be_outdated_by"]}
        assert marked == {"User: I weigh 80 kg."}


async def listed(client: AsyncClient, user: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/v1/memories", params={"user_id": user})).json()["results"]
    return found


# -- a filter of what is compared --------------------------------------------------------------------------------------

USER = {"user_id": "bob"}
OF_ATLAS = {"field": "metadata.project", "operator": "eq", "value": "atlas"}


async def say(client: AsyncClient, text: str, **more: Any) -> list[tuple[str, str]]:
    body = {"messages": [{"role": "user", "content": text}], **USER, **more}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code == 200, answer.text
    return [(each["event"], each["memory"]) for each in answer.json()["results"]]


async def texts(client: AsyncClient) -> set[str]:
    listed = (await client.get("/v1/memories", params=USER)).json()["results"]
    return {each["memory"] for each in listed}


async def test_a_fact_is_compared_with_what_the_filter_lets_through(client: AsyncClient) -> None:
    [(_, old)] = await say(client, "I live in Berlin", metadata={"project": "boreas"})
    [(event, new)] = await say(client, "I moved to Lisbon", filters=OF_ATLAS, metadata={"project": "atlas"})
    assert event == "ADD"
    assert await texts(client) == {old, new}
    [(event, latest)] = await say(client, "I moved to Oslo", filters=OF_ATLAS)
    assert event == "UPDATE"
    assert await texts(client) == {old, latest}


async def test_an_equal_text_is_known_whatever_the_filter(client: AsyncClient) -> None:
    [(_, old)] = await say(client, "I live in Berlin")
    assert await say(client, "I live in Berlin", filters=OF_ATLAS) == [("NONE", old)]


async def test_a_job_keeps_to_the_filter(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    [(_, old)] = await say(client, "I live in Berlin")
    secret = {"AND": [OF_ATLAS, {"NOT": {"field": "mail", "operator": "in", "value": ["bob@example.org", 5]}}]}
    body = {"messages": [{"role": "user", "content": "I moved to Lisbon"}], **USER, "filters": secret}
    answer = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    assert "operation" not in await tables.holding("bob@example.org")
    assert await work(resources, tables, tenant.workspace_id, "ingest") == 1
    assert old in await texts(client)
    assert len(await texts(client)) == 2


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

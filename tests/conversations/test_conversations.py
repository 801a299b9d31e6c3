"""Conversations over HTTP: opened once, read in order, changed, and their turns stored."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.runtime.resources import Resources
from service.worker.registry import TASKS
from tests.conftest import DIMENSION, SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import opened, pages, said


async def test_a_conversation_is_opened_once_and_shows_what_it_is(client: AsyncClient, clock: SetClock) -> None:
    body = {"user_id": "alice", "external_id": "chat-1", "channel": "atlas", "title": "Moving", "metadata": {"a": 1}}
    first = await client.post("/v1/conversations", json=body)
    again = await client.post("/v1/conversations", json={**body, "title": "Another"})
    assert (first.status_code, again.status_code) == (201, 200)
    found = first.json()
    assert again.json() == found
    assert found["started_at"] == clock().isoformat()
    kept = {"external_id": "chat-1", "run_id": "chat-1", "user_id": "alice", "channel": "atlas", "title": "Moving"}
    marks = {"consolidated": False, "patterns_extracted": False, "archived": False, "turn_count": 0, "next_index": 0}
    assert found.items() >= {**kept, **marks, "metadata": {"a": 1}}.items()
    assert first.headers["ETag"] == '"1"'


async def test_two_users_may_have_a_conversation_of_one_name(client: AsyncClient) -> None:
    mine = await opened(client, "S1", user_id="alice")
    theirs = await opened(client, "S1", user_id="bob")
    assert mine != theirs
    assert (await client.get("/v1/conversations/S1")).status_code == 400
    found = await client.get("/v1/conversations/S1", params={"user_id": "bob"})
    assert found.json()["id"] == theirs
    assert (await client.get(f"/v1/conversations/{mine}", params={"user_id": "bob"})).status_code == 404
    assert (await client.get(f"/v1/conversations/{mine}")).json()["user_id"] == "alice"


async def test_without_a_name_each_is_a_new_one(client: AsyncClient) -> None:
    made = [(await client.post("/v1/conversations", json={"user_id": "alice"})).json() for _ in range(2)]
    assert made[0]["id"] != made[1]["id"]
    assert (await client.get(f"/v1/conversations/{made[0]['external_id']}")).json()["id"] == made[0]["id"]


async def test_a_conversation_is_read_in_order_page_by_page(client: AsyncClient) -> None:
    there = await opened(client, "chat")
    ids = [await said(client, there, f"Sentence number {number}") for number in range(5)]
    found = [page async for page in pages(client, "/v1/conversations/chat", limit=2)]
    seen = [turn for page in found for turn in page["turns"]]
    assert [each["id"] for each in seen] == ids
    assert [each["turn_index"] for each in seen] == [0, 1, 2, 3, 4]
    assert [each["next_turn_id"] for each in seen] == [*ids[1:], None]
    assert found[-1]["turn_count"] == 5


async def test_messages_of_a_memory_store_are_the_same_conversation(client: AsyncClient) -> None:
    messages = [{"role": "user", "content": "I keep bees"}, {"role": "assistant", "content": "How many hives?"}]
    body = {"messages": messages, "infer": False, "user_id": "alice", "run_id": "hives"}
    assert (await client.post("/v1/memories", json=body)).status_code == 201
    assert (await client.post("/v1/conversations", json={"user_id": "alice", "run_id": "hives"})).status_code == 200
    await said(client, "hives", "Three of them")
    found = (await client.get("/v1/conversations/hives")).json()
    assert [(each["turn_index"], each["content"], each["embedding"]) for each in found["turns"]] == [
        (0, "I keep bees", "stored"),
        (1, "How many hives?", "stored"),
        (2, "Three of them", "stored"),
    ]


async def test_a_new_turn_takes_the_marks_back(client: AsyncClient, clock: SetClock, tables: Tables) -> None:
    there = await opened(client, "chat")
    await said(client, there, "Something")
    done = await client.patch(f"/v1/conversations/{there}", json={"consolidated": True})
    assert done.json()["consolidated_at"] == clock().isoformat()
    refused = await client.patch(f"/v1/conversations/{there}", json={"patterns_extracted": True})
    assert refused.status_code == 400, "the mark is the job's alone"
    await tables.fetch("UPDATE conversation SET patterns_extracted = true WHERE id = $1", UUID(there))
    left = await client.get("/v1/conversations", params={"user_id": "alice", "consolidated": False})
    assert left.json()["results"] == []
    await said(client, there, "Something new")
    found = (await client.get(f"/v1/conversations/{there}")).json()
    assert (found["consolidated"], found["consolidated_at"], found["patterns_extracted"]) == (False, None, False)


async def test_a_change_needs_the_version_it_saw(client: AsyncClient) -> None:
    there = await opened(client, "chat", title="Old", metadata={"keep": 1, "go": 2})
    path = f"/v1/conversations/{there}"
    tag = (await client.get(path)).headers["ETag"]
    changed = await client.patch(path, json={"title": None, "metadata": {"go": None}}, headers={"If-Match": tag})
    assert (changed.json()["title"], changed.json()["metadata"]) == (None, {"keep": 1})
    stale = await client.patch(path, json={"title": "Late"}, headers={"If-Match": tag})
    assert (stale.status_code, stale.json()["field"]) == (412, "If-Match")
    assert changed.headers["ETag"] == (await client.get(path)).headers["ETag"]


async def test_a_field_that_is_not_given_stays(client: AsyncClient) -> None:
    there = await opened(client, "chat", title="Old", metadata={"keep": 1})
    changed = (await client.patch(f"/v1/conversations/{there}", json={"archived": True})).json()
    assert (changed["title"], changed["metadata"], changed["archived"]) == ("Old", {"keep": 1}, True)


async def test_an_archived_conversation_is_out_of_lists_and_searches(client: AsyncClient) -> None:
    there = await opened(client, "chat")
    await said(client, there, "The quarterly aardvark report")
    await client.patch(f"/v1/conversations/{there}", json={"archived": True})
    mine = {"user_id": "alice"}
    assert (await client.get("/v1/conversations", params=mine)).json()["results"] == []
    shown = await client.get("/v1/conversations", params={**mine, "include_archived": True})
    assert [each["id"] for each in shown.json()["results"]] == [there]
    assert (await client.get("/v1/turns/search", params={**mine, "query": "aardvark"})).json()["results"] == []
    assert (await client.get("/v1/turns/recent", params=mine)).json()["results"] == []
    assert len((await client.get(f"/v1/conversations/{there}")).json()["turns"]) == 1, "it can be read"
    await client.patch(f"/v1/conversations/{there}", json={"archived": False})
    assert len((await client.get("/v1/turns/search", params={**mine, "query": "aardvark"})).json()["results"]) == 1


@pytest.mark.parametrize("path", ["turns", "memories"])
async def test_a_new_turn_brings_an_archived_conversation_back(client: AsyncClient, path: str) -> None:
    there = await opened(client, "chat")
    await said(client, there, "The quarterly aardvark report")
    await client.patch(f"/v1/conversations/{there}", json={"archived": True})
    turn = {"role": "user", "content": "I work in Bergen"}
    if path == "turns":
        answer = await client.post(f"/v1/conversations/{there}/turns", json=turn)
    else:
        answer = await client.post("/v1/memories", json={"messages": [turn], "user_id": "alice", "run_id": "chat"})
    assert answer.is_success, answer.text
    assert (await client.get(f"/v1/conversations/{there}")).json()["archived"] is False
    found = await client.get("/v1/turns/recent", params={"user_id": "alice"})
    assert [each["content"] for each in found.json()["results"]] == [
        "I work in Bergen",
        "The quarterly aardvark report",
    ]


async def test_idle_conversations_are_archived(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """After 90 days, or as many as the workspace says; audited, with the age that counted."""
    idle, used = await opened(client, "idle"), await opened(client, "used")
    for there, days in ((idle, 40), (used, 10)):
        await said(client, there, "The quarterly aardvark report")
        await tables.fetch(
            "UPDATE conversation SET updated_at = $2::timestamptz - make_interval(days => $3) WHERE id = $1",
            UUID(there),
            resources.clock(),
            days,
        )
    job = Job(tenant.workspace_id, uuid4(), "decay", None, {}, 1, 3, "test")
    assert (await TASKS["decay"].run(job, resources) or {})["conversations_archived"] == 0
    own = {"settings": {"ageing": {"conversation_archive_days": 30}}}
    assert (await client.patch("/v1/workspaces/current", json=own)).status_code == 200
    assert (await TASKS["decay"].run(job, resources) or {})["conversations_archived"] == 1
    listed = (await client.get("/v1/conversations", params={"user_id": "alice"})).json()["results"]
    assert [each["id"] for each in listed] == [used]
    read = (await client.get(f"/v1/conversations/{idle}")).json()
    assert (read["archived"], len(read["turns"])) == (True, 1)
    assert (
        len((await client.get("/v1/turns/search", params={"user_id": "alice", "query": "aardvark"})).json()["results"])
        == 1
    )
    (entry,) = (await client.get("/v1/audit", params={"operation": "archive"})).json()["results"]
    assert (entry["memory_type"], entry["affected_ids"], entry["metadata"]) == ("episodic", [idle], {"why": "idle"})
    assert entry["config_snapshot"]["ageing"]["conversation_archive_days"] == 30


async def test_lists_keep_to_the_scope_and_its_channels(client: AsyncClient, other_client: AsyncClient) -> None:
    ids = {name: await opened(client, name, channel=name) for name in ("atlas", "borealis", "_global")}
    await opened(client, "else", user_id="bob")
    await opened(other_client, "theirs")
    found = [page async for page in pages(client, "/v1/conversations", user_id="alice", channel="atlas", limit=1)]
    assert [each["id"] for page in found for each in page["results"]] == [ids["_global"], ids["atlas"]]


async def test_another_workspace_sees_nothing(client: AsyncClient, other_client: AsyncClient) -> None:
    there = await opened(client, "chat")
    await said(client, there, "A secret plan about herons")
    for wanted in (there, "chat"):
        assert (await other_client.get(f"/v1/conversations/{wanted}")).status_code == 404
        assert (await other_client.patch(f"/v1/conversations/{wanted}", json={"title": "x"})).status_code == 404
        turn = {"role": "user", "content": "Hello"}
        assert (await other_client.post(f"/v1/conversations/{wanted}/turns", json=turn)).status_code == 404
    for path in ("/v1/turns/search?query=herons&user_id=alice", "/v1/turns/recent?user_id=alice"):
        assert (await other_client.get(path)).json()["results"] == []


async def test_a_place_is_taken_once(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    there = await opened(client, "chat")
    path = f"/v1/conversations/{there}/turns"
    body = {"role": "user", "content": "I moved to Lisbon", "turn_index": 3}
    answers = await asyncio.gather(*(client.post(path, json=body) for _ in range(8)))
    assert sorted(each.status_code for each in answers) == [200] * 7 + [201]
    assert len({each.json()["id"] for each in answers}) == 1
    other = await client.post(path, json={**body, "content": "I moved to Porto"})
    assert (other.status_code, other.json()["field"]) == (409, "turn_index")
    after = await client.post(path, json={"role": "user", "content": "Next"})
    assert after.json()["turn_index"] == 4
    before = await client.post(path, json={"role": "user", "content": "First", "turn_index": 0})
    assert before.json()["next_turn_id"] == answers[0].json()["id"]
    for table, rows in (("turn", 3), ("turn_vector", 3), ("conversation_log", 3)):
        found = await tables.value(f"SELECT count(*) FROM {table} WHERE workspace_id = $1", tenant.workspace_id)
        assert found == rows, table


async def test_without_a_place_the_repeated_last_turn_is_the_same(client: AsyncClient, clock: SetClock) -> None:
    there = await opened(client, "chat")
    path = f"/v1/conversations/{there}/turns"
    yes = {"role": "user", "content": "Yes."}
    first, again = await client.post(path, json=yes), await client.post(path, json=yes)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    later = await client.post(path, json={**yes, "timestamp": clock().replace(year=2025).isoformat()})
    numbered = await client.post(path, json={**yes, "turn_index": 2})
    assert (later.status_code, numbered.status_code) == (201, 201)


async def test_one_transaction_keeps_turn_vector_log_and_audit(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    """Each turn has a row in the conversation log with the same content."""
    there = await opened(client, "chat", channel="atlas")
    body = {
        "role": "assistant",
        "content": "Write to ann@example.com about the heron",
        "name": "Hal",
        "model": "tiny-1",
        "metadata": {"mail": "bob@example.com"},
    }
    kept = (await client.post(f"/v1/conversations/{there}/turns", json=body)).json()
    assert kept["content"] == "Write to [REDACTED:EMAIL] about the heron"
    assert kept["redactions"] == [{"label": "EMAIL", "count": 2}]
    assert kept["metadata"] == {"mail": "[REDACTED:EMAIL]"}
    assert kept["token_count"] == 11
    [line] = await tables.fetch("SELECT * FROM conversation_log WHERE workspace_id = $1", tenant.workspace_id)
    same = ("turn_index", "role", "content", "content_hash", "token_count", "model", "channel", "user_id", "run_id")
    assert {name: line[name] for name in same} == {name: kept[name] for name in same}
    assert str(line["turn_id"]) == kept["id"]
    held = await client.get(f"/v1/working/{there}/turns", params={"user_id": "alice", "channel": "atlas"})
    [note] = held.json()["results"]
    assert (note["content"], note["turn_id"]) == (kept["content"], kept["id"])
    [entry] = (await client.get("/v1/audit", params={"operation": "store_turn"})).json()["results"]
    assert entry["affected_ids"] == [kept["id"]]
    assert (entry["conversation_id"], entry["memory_type"]) == (there, "episodic")


async def test_a_turn_without_an_embedder_is_found_by_words_and_waits_for_its_vector(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    there = await opened(client, "chat")
    embedder.down = True
    kept = await client.post(f"/v1/conversations/{there}/turns", json={"role": "user", "content": "I saw a heron"})
    assert kept.status_code == 201
    assert kept.json()["embedding"] == "queued"
    assert kept.json()["warnings"]
    found = await client.get("/v1/turns/search", params={"query": "heron", "user_id": "alice"})
    assert [each["id"] for each in found.json()["results"]] == [kept.json()["id"]]
    [job] = await tables.fetch("SELECT kind, payload FROM job WHERE workspace_id = $1", tenant.workspace_id)
    assert (job["kind"], there in job["payload"]) == ("embed", True)


async def test_an_own_vector_is_taken(client: AsyncClient, embedder: AngleEmbedder) -> None:
    there = await opened(client, "chat")
    vector = [1.0] + [0.0] * (DIMENSION - 1)
    body = {"role": "user", "content": "Something with a vector", "embedding": vector}
    assert (await client.post(f"/v1/conversations/{there}/turns", json=body)).status_code == 201
    assert "Something with a vector" not in embedder.seen
    short = await client.post(f"/v1/conversations/{there}/turns", json={**body, "embedding": vector[1:]})
    assert (short.status_code, short.json()["field"]) == (400, "embedding")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "user"}, "content"),
        ({"role": "user", "content": "  "}, "content"),
        ({"role": "user", "content": "x\x00y"}, "content"),
        ({"role": "", "content": "x"}, "role"),
        ({"role": "user", "content": "x", "turn_index": -1}, "turn_index"),
        ({"role": "user", "content": "x", "turn_index": 2**31}, "turn_index"),
        ({"role": "user", "content": "x", "colour": 1}, "colour"),
        ({"role": "user", "content": "x", "token_count": True}, "token_count"),
        ({"role": "user", "content": "x", "timestamp": "soon"}, "timestamp"),
    ],
)
async def test_bad_turns_are_refused_by_field(client: AsyncClient, body: dict[str, Any], field: str) -> None:
    there = await opened(client, "chat")
    answer = await client.post(f"/v1/conversations/{there}/turns", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_bad_conversations_are_refused(client: AsyncClient) -> None:
    for body, field in (
        ({"title": "x"}, "user_id"),
        ({"user_id": "alice", "external_id": ""}, "external_id"),
        ({"user_id": "alice", "external_id": "a", "run_id": "b"}, "external_id"),
        ({"user_id": "alice", "title": " "}, "title"),
        ({"user_id": "alice", "x": 1}, "x"),
    ):
        answer = await client.post("/v1/conversations", json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), body
    for wanted in (str(uuid4()), "nobody", "a/b"):
        assert (await client.get(f"/v1/conversations/{wanted}")).status_code == 404
    there = await opened(client, "chat")
    for cursor in ("nonsense", "dHVybnwtMQ"):
        bad = await client.get(f"/v1/conversations/{there}", params={"cursor": cursor})
        assert (bad.status_code, bad.json()["field"]) == (400, "cursor")
    announced = {"role": "user", "content": "my password is"}
    refused = await client.post(f"/v1/conversations/{there}/turns", json=announced)
    assert (refused.status_code, refused.json()["code"]) == (422, "pii_rejected")


async def test_a_scope_is_deleted_with_its_turns_and_the_log_goes_with_a_purge(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    mine, theirs = await opened(client, "mine"), await opened(client, "theirs", user_id="bob")
    await said(client, mine, "A heron of alice's")
    kept = await said(client, theirs, "A heron of bob's")
    assert (await client.delete("/v1/memories", params={"user_id": "alice"})).status_code == 200
    assert (await client.get(f"/v1/conversations/{mine}")).status_code == 404
    search = await client.get("/v1/turns/search", params={"query": "heron", "user_id": "alice"})
    assert search.json()["results"] == []
    log = "SELECT count(*) FROM conversation_log WHERE workspace_id = $1"
    assert await tables.value(log, tenant.workspace_id) == 2
    receipt = await client.delete("/v1/memories", params={"user_id": "alice", "purge": True})
    assert receipt.json()["counts"]["conversation_log"] == 1
    assert await tables.value(log, tenant.workspace_id) == 1
    [left] = (await client.get(f"/v1/conversations/{theirs}")).json()["turns"]
    assert left["id"] == kept


async def test_a_deleted_message_is_no_turn_any_more(client: AsyncClient) -> None:
    messages = [{"role": "user", "content": "I keep bees"}, {"role": "user", "content": "And a heron"}]
    body = {"messages": messages, "infer": False, "user_id": "alice", "run_id": "pets"}
    results = (await client.post("/v1/memories", json=body)).json()["results"]
    assert (await client.delete(f"/v1/memories/{results[1]['id']}")).status_code == 200
    assert [each["content"] for each in (await client.get("/v1/conversations/pets")).json()["turns"]] == ["I keep bees"]

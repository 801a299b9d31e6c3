"""An erasure reaches every copy of a subject's words, and nobody else's."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.domain.errors import LlmError
from service.domain.job import Job
from service.intake import deferred
from service.intake.curate import TurnsGone
from service.memories.jobs import enrich
from service.postgres.engine import Database
from service.providers.protocols import LlmReply, LlmRequest
from service.runtime.resources import Resources
from service.upkeep.jobs import maintenance
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of, with_llm
from tests.support.calls import listed, opened, results_of, said, store
from tests.support.judging import Judge, dump, judged, tell

CANARY = "Zanzibarine"
LAST_YEAR = "2025-06-01T12:00:00Z"
LEVEL = {"audit_level": "verbose"}
OTHER_ENTITY = {"name": f"Old {CANARY}", "aliases": [], "channel": "side"}


async def seeded(client: AsyncClient, judge: Any, resources: Resources, tenant: Tenant, tables: Tables) -> str:
    """The word wherever a caller can put it; returns the id of one of the memories."""
    mine = {"user_id": CANARY + "-user"}
    first = await store(client, f"Keeps a {CANARY} parrot", tags=[f"pet:{CANARY}"], metadata={CANARY: CANARY}, **mine)
    second = await store(client, f"{CANARY} once more", **mine)
    await store(client, f"Works with {CANARY} Smith at Acme in Oslo", **mine)
    key = {"Idempotency-Key": f"key {CANARY}"}
    body = {"content": f"Told with a key: {CANARY}", **mine}
    assert (await client.post("/v1/memories", json=body, headers=key)).status_code == 201
    dry = await client.post("/v1/memories", json={"content": f"Only tried: {CANARY}", "dry_run": True, **mine})
    assert dry.status_code == 200
    talk = [{"role": "user", "content": f"The {CANARY} says hello", "name": CANARY}]
    kept = {"messages": talk, "infer": False, "run_id": f"run {CANARY}", **mine}
    assert (await client.post("/v1/memories", json=kept)).status_code == 201
    there = await opened(client, f"chat {CANARY}", title=f"About {CANARY}", metadata={CANARY: CANARY}, **mine)
    await said(client, there, f"The {CANARY} sings", name=CANARY, model=CANARY, metadata={"about": CANARY})
    known = {"preferences": {CANARY: CANARY}, "expertise_areas": [CANARY]}
    assert (await client.put(f"/v1/users/{CANARY}-user/profile", json=known)).status_code == 201
    later = {"Prefer": "respond-async"}
    for number in (1, 2):
        promised = {**kept, "messages": [{"role": "user", "content": f"Later {number} {CANARY}"}]}
        answer = await client.post("/v1/memories", json=promised, headers=later)
        assert answer.status_code == 202, answer.text
    judge.say(f"Calls the parrot {CANARY}", {"event": "UPDATE", "id": 1, "text": f"The parrot is {CANARY}"})
    await tell(client, f"My parrot is called {CANARY}", **mine)
    await client.patch(f"/v1/memories/{first}", json={"content": f"Kept a {CANARY} parrot"})
    tie = {"target_id": second, "type": "RELATES_TO", "properties": {"why": CANARY}}
    assert (await client.post(f"/v1/memories/{first}/relations", json=tie)).status_code == 201
    await client.delete(f"/v1/memories/{second}")
    await _acted(client, first)
    headers = {"X-Session-Id": CANARY, "X-Request-ID": CANARY}
    await client.get("/v1/memories/search", params={"query": f"who is {CANARY}?", **mine}, headers=headers)
    elsewhere = {"Idempotency-Key": f"elsewhere {CANARY}"}
    gone = await client.delete("/v1/memories", params={**mine, "channel": "nowhere"}, headers=elsewhere)
    assert gone.status_code == 200
    made = {"name": f"{CANARY} Labs", "aliases": [f"The {CANARY}s"], "description": CANARY, **mine}
    entities = [(await client.put("/v1/entities", json={**made, **each})).json()["id"] for each in ({}, OTHER_ENTITY)]
    tie = {"source_id": entities[0], "target_id": entities[1], "type": f"likes {CANARY}", "properties": {"by": CANARY}}
    keyed = {"Idempotency-Key": f"tie {CANARY}"}
    assert (await client.post("/v1/entities/relations", json=tie, headers=keyed)).status_code == 201
    merge = {"source_id": entities[1], "target_id": entities[0]}
    assert (await client.post("/v1/entities/merge", json=merge, headers={"Idempotency-Key": "m"})).status_code == 200
    rows = await tables.fetch("SELECT id FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    for row in rows:
        await enrich.run(Job(tenant.workspace_id, row["id"], "enrich", row["id"], {}, 1, 3, "test"), resources)
    return first


async def _acted(client: AsyncClient, memory_id: str) -> None:
    """The word in a goal, in what tools did, in a strategy and in working memory."""
    mine = {"user_id": CANARY + "-user"}
    texts = {"description": f"Buy a {CANARY} cage", "memory_ids": [memory_id], **mine}
    goal = (await client.post("/v1/goals", json=texts, headers={"Idempotency-Key": f"goal {CANARY}"})).json()["id"]
    done = {"result": f"{CANARY} is in"}
    assert (
        await client.post(f"/v1/goals/{goal}/complete", json=done, headers={"Idempotency-Key": f"done {CANARY}"})
    ).status_code == 200
    use = {"tool_name": "search", "tool_input": CANARY, "tool_output": {CANARY: CANARY}, "success": True, **mine}
    assert (await client.post("/v1/tool-invocations", json=use)).status_code == 201
    way = {"description": f"Ask {CANARY}", "context_pattern": CANARY, "tool_sequence": ["search"], **mine}
    made = await client.post("/v1/strategies", json=way)
    path = f"/v1/strategies/{made.json()['id']}/reinforce"
    answer = await client.post(path, json={"success": True}, headers={"Idempotency-Key": f"again {CANARY}"})
    assert answer.status_code == 200
    held = await client.put(f"/v1/working/{CANARY}/items/{CANARY}", json={"value": CANARY}, params=mine)
    assert held.status_code == 201


async def test_a_user_is_erased_from_every_column_of_every_table(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    async with judged(resources, tenant, **LEVEL) as (client, judge):
        await seeded(client, judge, resources, tenant, tables)
        other = await store(client, "Keeps a cat", user_id="bob", tags=["pet:cat"])
        await client.post(
            "/v1/memories", json={"content": "Likes milk", "user_id": "bob"}, headers={"Idempotency-Key": "b"}
        )
        everything = await dump(tables, tenant.workspace_id)
        theirs = await _of_bob(tables, tenant)
        operations = await tables.fetch(
            "SELECT id, request::text AS request FROM operation WHERE workspace_id = $1", tenant.workspace_id
        )
        assert {
            "memory",
            "memory_history",
            "decision",
            "turn",
            "conversation_log",
            "operation",
            "idempotency",
            "entity",
            "entity_alias",
        } <= await _holding(tables)
        answer = await client.delete("/v1/memories", params={"user_id": CANARY + "-user", "purge": True})
        assert answer.status_code == 200, answer.text
        assert await _holding(tables) == set()
        assert answer.json()["counts"]["memory"] > 0
        assert "VACUUM" in answer.json()["note"]
        assert await _of_bob(tables, tenant) == theirs
        now = await dump(tables, tenant.workspace_id)
        assert now.items() <= everything.items()
        assert f"memory {other}" in now
        for operation in operations:  # a worker that had it in its hands already
            payload = {"operation_id": str(operation["id"])}
            await deferred.ingest(
                Job(tenant.workspace_id, operation["id"], "ingest", None, payload, 1, 3, "t"), resources
            )
        assert await _holding(tables) == set()
        [line] = (await client.get("/v1/audit", params={"operation": "purge"})).json()["results"]
        assert line["metadata"]["subject_sha256"] == answer.json()["subject_sha256"]


async def test_a_channel_is_erased_with_what_was_accepted_for_it_alone(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    operations: dict[str, str] = {}
    for channel in ("atlas", "side"):
        talk = [{"role": "user", "content": f"The perspicuous hint of {channel}"}]
        body = {"messages": talk, "infer": False, "user_id": "alice", "run_id": channel, "channel": channel}
        accepted = await client.post("/v1/operations", json=body)
        operations[channel] = accepted.json()["operation_id"]
    answer = await client.delete("/v1/memories", params={"user_id": "alice", "channel": "atlas", "purge": True})
    assert (answer.status_code, answer.json()["counts"]["operation"]) == (200, 1), answer.text
    for operation_id in map(UUID, operations.values()):
        payload = {"operation_id": str(operation_id)}
        job = Job(tenant.workspace_id, operation_id, "ingest", None, payload, 1, 3, "t")
        await deferred.ingest(job, resources)
    assert len(await listed(client, user_id="alice", channel="side")) == 1
    assert await tables.holding("perspicuous hint of atlas") == []


async def test_one_memory_is_erased_with_its_past_and_the_turns_it_came_from(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    async with judged(resources, tenant, **LEVEL) as (client, _):
        talk = [{"role": "user", "content": "The quagmirish password hint"}, {"role": "user", "content": "Good night"}]
        body = {"messages": talk, "infer": False, "user_id": "alice", "run_id": "r"}
        results = (await client.post("/v1/memories", json=body)).json()["results"]
        other = await store(client, "Keeps a cat")
        first = results[0]["id"]
        await client.patch(f"/v1/memories/{first}", json={"content": "Something else"})
        await client.delete(f"/v1/memories/{first}")
        assert await tables.holding("quagmirish")
        answer = await client.delete(f"/v1/memories/{first}", params={"purge": True})
        assert answer.status_code == 200, answer.text
        assert await tables.holding("quagmirish") == []
        assert (await client.get(f"/v1/memories/{first}/history")).status_code == 404
        assert (await client.get(f"/v1/memories/{other}/history")).status_code == 200
        assert (await client.get(f"/v1/memories/{results[1]['id']}")).status_code == 200
        assert (await client.delete(f"/v1/memories/{first}", params={"purge": True})).status_code == 404


@pytest.mark.parametrize("subject", ["memory", "user", "channel"])
@pytest.mark.parametrize("ending", ["corrected", "deleted"])
async def test_what_a_promoted_copy_said_goes_too(
    resources: Resources, tenant: Tenant, tables: Tables, subject: str, ending: str
) -> None:
    word = f"quagmirish-{subject}-{ending}"
    async with judged(resources, tenant, **LEVEL) as (client, judge):
        first = await store(client, f"The {word} hint", channel="atlas", timestamp=LAST_YEAR)
        copy = (await client.post(f"/v1/memories/{first}/promote")).json()["id"]
        judge.say("The hint is gone", {"event": "UPDATE", "id": 1, "text": "The hint is gone"})
        [told] = await tell(client, f"The hint is gone, it was {word}")
        assert told["id"] == copy
        assert await tables.value("SELECT count(*) FROM memory WHERE version_of = $1", UUID(copy)) == 1
        if ending == "deleted":
            assert (await client.delete(f"/v1/memories/{copy}")).status_code == 200
        whose = {"memory": {}, "user": {"user_id": "alice"}, "channel": {"user_id": "alice", "channel": "atlas"}}
        path = f"/v1/memories/{first}" if subject == "memory" else "/v1/memories"
        answer = await client.delete(path, params={"purge": True, **whose[subject]})
        assert answer.status_code == 200, answer.text
        assert await tables.holding(word) == []


async def test_what_a_fact_said_before_goes_with_the_turn_that_told_it(
    resources: Resources, tenant: Tenant, tables: Tables, clock: SetClock
) -> None:
    clock.now = datetime.now(UTC) + timedelta(minutes=5)  # as_of compares it with the database's
    async with judged(resources, tenant, **LEVEL) as (client, judge):
        judge.say("Lives in Quagmire", {"event": "ADD", "text": "Lives in Quagmire"})
        told = [{"role": "user", "content": "I live in Quagmire"}]
        body = {"messages": told, "user_id": "alice", "timestamp": LAST_YEAR}
        answer = await client.post("/v1/memories", json=body, headers={"Idempotency-Key": "first"})
        fact = answer.json()["results"][0]["id"]
        judge.say("Lives in Porto", {"event": "UPDATE", "id": 1, "text": "Lives in Porto"})
        [changed] = await tell(client, "I live in Porto now")
        assert (changed["id"], changed["memory"]) == (fact, "Lives in Porto")
        between = (await client.get(f"/v1/memories/{fact}/history")).json()["results"][0]["recorded_from"]
        turn = await tables.value("SELECT id FROM turn WHERE content = 'I live in Quagmire'")
        assert (await client.delete(f"/v1/turns/{turn}", params={"purge": True})).status_code == 200
        assert await tables.holding("Quagmire") == []
        assert (await client.get(f"/v1/memories/{fact}")).json()["memory"] == "Lives in Porto"
        lines = (await client.get(f"/v1/memories/{fact}/history")).json()["results"]
        texts = [(each["event"], each["old_memory"], each["new_memory"]) for each in lines]
        assert texts == [("ADD", None, None), ("UPDATE", None, "Lives in Porto")]
        decisions = (await client.get(f"/v1/memories/{fact}/decisions")).json()["results"]
        for each in decisions:
            assert (await client.post(f"/v1/decisions/{each['id']}/undo")).status_code == 409
        assert (await results_of(client.get("/v1/memories", params={"user_id": "alice", "as_of": between}))) == []
        changes = (await client.get("/v1/changes")).json()["results"]
        of_it = [(each["event"], each["memory"]["memory"]) for each in changes if each["memory_id"] == fact]
        assert of_it == [("memory.added", "Lives in Porto")]


async def test_another_workspace_with_the_same_user_keeps_everything(
    client: AsyncClient, other_client: AsyncClient, stranger: Tenant, tables: Tables
) -> None:
    await store(client, "Keeps a parrot")
    theirs = await store(other_client, "Keeps a parrot too")
    before = await dump(tables, stranger.workspace_id)
    assert (await client.delete("/v1/memories", params={"user_id": "alice", "purge": True})).status_code == 200
    assert await dump(tables, stranger.workspace_id) == before
    assert (await other_client.get(f"/v1/memories/{theirs}/history")).status_code == 200


async def test_erasing_needs_its_own_right(client: AsyncClient, app: Any) -> None:
    mine = await store(client, "Keeps a parrot")
    made = await client.post("/v1/api-keys", json={"name": "cleaner", "rights": ["memory:read", "memory:delete"]})
    async with client_of(app, made.json()["api_key"]) as cleaner:
        assert (await cleaner.delete(f"/v1/memories/{mine}", params={"purge": True})).status_code == 403
        assert (await cleaner.delete("/v1/memories?user_id=alice&purge=true")).status_code == 403
        assert (await cleaner.delete(f"/v1/memories/{mine}")).status_code == 200


async def test_a_repeated_erasure_gets_its_first_receipt(client: AsyncClient) -> None:
    await store(client, "Keeps a parrot")
    key = {"Idempotency-Key": "erase"}
    first = await client.delete("/v1/memories", params={"user_id": "alice", "purge": True}, headers=key)
    again = await client.delete("/v1/memories", params={"user_id": "alice", "purge": True}, headers=key)
    assert again.json() == first.json()
    assert first.json()["counts"]["memory"] == 1


async def _holding(tables: Tables) -> set[str]:
    """Tables with the word, as it was written or in lower case (tags, keys of names)."""
    return {*await tables.holding(CANARY), *await tables.holding(CANARY.lower())}


async def _of_bob(tables: Tables, tenant: Tenant) -> list[str]:
    found = []
    for table in ("memory", "memory_history", "audit_log", "idempotency", "decision"):
        rows = await tables.fetch(
            f"SELECT r::text AS row FROM {table} r WHERE workspace_id = $1 AND user_id = 'bob' ORDER BY 1",
            tenant.workspace_id,
        )
        found += [row["row"] for row in rows]
    return found


async def test_the_worker_cleans_the_files_where_it_may(
    client: AsyncClient, resources: Resources, worker_database: Database, tenant: Tenant, tables: Tables
) -> None:
    """And only what was not cleaned since; the receipt says which it is."""
    await store(client, f"Keeps a {CANARY} parrot")
    receipt = (await client.delete("/v1/memories", params={"user_id": "alice", "purge": True})).json()
    knows = await tables.value("SELECT current_setting('server_version_num')::integer >= 170000")
    assert receipt["vacuum"] == ("queued" if knows else "not_permitted")
    jobs = await tables.fetch("SELECT id FROM job WHERE workspace_id = $1 AND kind = 'vacuum'", tenant.workspace_id)
    assert len(jobs) == knows
    for row in jobs:
        job = Job(tenant.workspace_id, row["id"], "vacuum", None, {}, 1, 3, "t")
        worker = replace(resources, db=worker_database)
        done = await maintenance.vacuum(job, worker)
        assert done["tables"] > 40
        passed = "SELECT relname FROM pg_stat_user_tables WHERE last_vacuum IS NOT NULL"
        assert {"memory", "memory_vector_p0", "decision"} <= {each[0] for each in await tables.fetch(passed)}
        assert await maintenance.vacuum(job, worker) == {"tables": 0}


class Late(Judge):
    """Away at first; asked again, it answers when the user it is asked about has just been erased."""

    client: AsyncClient | None = None

    async def complete(self, ask: LlmRequest) -> LlmReply:
        if self.client is None:
            raise LlmError("away")
        await self.client.delete("/v1/memories", params={"user_id": "alice", "purge": True})
        return await super().complete(ask)


async def test_what_a_model_says_of_the_erased_is_not_kept(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """A job had the conversation in its hands already; it ends quietly."""
    late = Late()
    late.say(f"Owns a {CANARY}", {"event": "ADD"})
    async with with_llm(resources, tenant, late) as client:
        [by_rules] = await tell(client, f"I own a {CANARY}")
        assert by_rules["memory"] == f"User: I own a {CANARY}"
        kept = "SELECT id, payload::text AS payload FROM job WHERE workspace_id = $1 AND kind = 'consolidate'"
        [row] = await tables.fetch(kept, tenant.workspace_id)
        late.client = client
        job = Job(tenant.workspace_id, row["id"], "consolidate", None, json.loads(row["payload"]), 1, 3, "t")
        assert await deferred.consolidate(job, replace(resources, llm=late)) is None
        assert await _holding(tables) == set()


class ErasesHalfway(Late):
    """Asked again, it answers when the first thing that was said has just been erased."""

    tables: Tables | None = None

    async def complete(self, ask: LlmRequest) -> LlmReply:
        if self.tables is None:
            raise LlmError("away")
        await self.tables.fetch("DELETE FROM turn WHERE content LIKE $1", f"%{CANARY}%")
        return await Judge.complete(self, ask)


async def test_what_is_left_of_a_conversation_is_read_anew(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    half = ErasesHalfway()
    async with with_llm(resources, tenant, half) as client:
        talk = [{"role": "user", "content": each} for each in (f"I own a {CANARY}", "I play the cello")]
        answer = await client.post("/v1/memories", json={"messages": talk, "user_id": "alice"})
        by_rules = {each["id"] for each in answer.json()["results"]}
        assert len(by_rules) == len(talk)
        kept = "SELECT id, payload::text AS payload FROM job WHERE workspace_id = $1 AND kind = 'consolidate'"
        [row] = await tables.fetch(kept, tenant.workspace_id)
        job = Job(tenant.workspace_id, row["id"], "consolidate", None, json.loads(row["payload"]), 1, 3, "t")
        half.tables = tables
        half.say(f"Owns a {CANARY}", {"event": "ADD"})
        with pytest.raises(TurnsGone) as gone:
            await deferred.consolidate(job, replace(resources, llm=half))
        assert gone.value.retryable
        assert await listed(client, user_id="alice") == by_rules, "nothing of the model's"
        half.say("Plays the cello", {"event": "ADD"})
        assert await deferred.consolidate(job, replace(resources, llm=half)) == {"facts": 1}

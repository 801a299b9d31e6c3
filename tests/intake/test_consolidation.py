"""Conversations that were kept as they were said become facts, once, and only what nobody has read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.conversations.statements import conversations
from service.domain.job import Job
from service.domain.scope import NIL_ID, NIL_WORKSPACE
from service.intake import deferred
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import opened, said, store
from tests.support.plans import kept_plan, rows_read
from tests.support.tasks import work

TALK = [
    {"role": "user", "content": "I work as a nurse in Bergen.", "timestamp": "2026-01-05T09:00:00Z"},
    {"role": "assistant", "content": "That sounds demanding."},
    {"role": "user", "content": "My sister Ana lives in Lisbon.", "timestamp": "2026-01-05T09:01:00Z"},
]


@pytest.fixture(autouse=True)
def quiet_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "QUIET", timedelta(0))


async def keep(client: AsyncClient, user_id: str = "alice", **more: Any) -> None:
    answer = await client.post("/v1/memories", json={"messages": TALK, "user_id": user_id, "infer": False, **more})
    assert answer.status_code == 201, answer.text


async def consolidate(client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant) -> int:
    """Runs it; returns how many conversations it read."""
    assert (await client.post("/v1/jobs/consolidate/run")).status_code == 202
    assert await work(resources, tables, tenant.workspace_id, "consolidate") == 1
    return await work(resources, tables, tenant.workspace_id, "consolidate")


async def facts(tables: Tables, tenant: Tenant, user_id: str = "alice") -> list[str]:
    """Texts of the memories that are no messages, in order."""
    rows = await tables.fetch(
        "SELECT content FROM memory WHERE workspace_id = $1 AND user_id = $2 AND fact_confidence IS NOT NULL "
        "ORDER BY content",
        tenant.workspace_id,
        user_id,
    )
    return [row["content"] for row in rows]


async def test_kept_messages_become_the_facts_of_an_inferred_store(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await client.post("/v1/memories", json={"messages": TALK, "user_id": "bob"})
    await keep(client)
    assert await facts(tables, tenant) == []
    assert await consolidate(client, resources, tables, tenant) == 1
    assert await facts(tables, tenant) == await facts(tables, tenant, "bob") != []
    [conversation] = (await client.get("/v1/conversations", params={"user_id": "alice"})).json()["results"]
    assert conversation["consolidated"]
    sources = await tables.fetch(
        "SELECT m.timestamp, t.timestamp AS said FROM memory m "
        "JOIN memory_source s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id "
        "JOIN turn t ON t.workspace_id = m.workspace_id AND t.id = s.turn_id "
        "WHERE m.workspace_id = $1 AND m.user_id = 'alice' AND m.fact_confidence IS NOT NULL",
        tenant.workspace_id,
    )
    assert sources
    assert all(row["timestamp"] == row["said"] for row in sources), "a fact is dated by its turn"


async def test_what_was_read_is_not_read_again(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    conversation = await opened(client, "talk", user_id="alice")
    await said(client, conversation, "I work as a nurse in Bergen.")
    assert await consolidate(client, resources, tables, tenant) == 1
    known = await facts(tables, tenant)
    assert len(known) == 1
    assert await consolidate(client, resources, tables, tenant) == 0

    await said(client, conversation, "My sister Ana lives in Lisbon.")
    assert await consolidate(client, resources, tables, tenant) == 1
    [payload] = await tables.fetch(
        "SELECT (payload ->> 'first')::int AS first FROM job WHERE workspace_id = $1 AND kind = 'consolidate' "
        "AND payload ? 'first' ORDER BY created_at DESC LIMIT 1",
        tenant.workspace_id,
    )
    assert payload["first"] == 1
    assert len(await facts(tables, tenant)) == 2


async def test_a_talk_that_goes_on_is_left_alone(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred, "QUIET", timedelta(minutes=10))
    await keep(client)
    await client.post("/v1/jobs/consolidate/run")
    await work(resources, tables, tenant.workspace_id, "consolidate")
    assert await work(resources, tables, tenant.workspace_id, "consolidate") == 0


async def test_two_runs_at_once_queue_a_conversation_once(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await keep(client)
    [row] = await tables.fetch("SELECT gen_random_uuid() AS id")
    job = Job(tenant.workspace_id, row["id"], "consolidate", None, {}, 1, 1, "test")
    counts = await asyncio.gather(*(deferred.consolidate(job, resources) for _ in range(4)))
    assert sum(each["conversations"] for each in counts if each) == 1
    assert await work(resources, tables, tenant.workspace_id, "consolidate") == 1


async def test_a_job_that_ran_before_its_worker_died_leaves_the_facts_once(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await keep(client)
    assert await consolidate(client, resources, tables, tenant) == 1
    known = await facts(tables, tenant)
    await tables.fetch(
        "UPDATE job SET state = 'ready' WHERE workspace_id = $1 AND payload ? 'conversation_id'", tenant.workspace_id
    )
    assert await work(resources, tables, tenant.workspace_id, "consolidate") == 1
    assert await facts(tables, tenant) == known


async def test_marking_it_by_hand_moves_what_is_read(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await keep(client)
    [conversation] = (await client.get("/v1/conversations", params={"user_id": "alice"})).json()["results"]
    await client.patch(f"/v1/conversations/{conversation['id']}", json={"consolidated": True})
    assert await consolidate(client, resources, tables, tenant) == 0
    await client.patch(f"/v1/conversations/{conversation['id']}", json={"consolidated": False})
    assert await consolidate(client, resources, tables, tenant) == 1


async def test_a_fact_stands_for_the_message_it_was_read_from(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await keep(client)
    await consolidate(client, resources, tables, tenant)
    query = {"query": "Where does Ana live?", "user_id": "alice"}
    hits = (await client.post("/v1/memories/search", json=query)).json()["results"]
    told = [each["memory"] for each in hits if "Lisbon" in each["memory"]]
    assert told == ["User: My sister Ana lives in Lisbon."]
    kept = (await client.get("/v1/memories", params={"user_id": "alice"})).json()["results"]
    assert "My sister Ana lives in Lisbon." in [each["memory"] for each in kept], "the message stays"


async def test_by_the_clock_turns_are_read_and_not_what_was_kept_as_it_was(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, worker_database: Database
) -> None:
    """On without a setting, where there are turns to read; not again, and not where the workspace does not want it."""

    async def by_the_clock() -> tuple[bool, int]:
        clock = Job(NIL_WORKSPACE, uuid4(), "consolidate", None, {}, 1, 3, "test")
        await deferred.consolidate(clock, replace(resources, db=worker_database))
        started = await work(resources, tables, tenant.workspace_id, "consolidate")
        await tables.fetch("DELETE FROM job WHERE workspace_id = $1 AND reason IS NOT NULL", tenant.workspace_id)
        return bool(started), await work(resources, tables, tenant.workspace_id, "consolidate")

    async def configure(**own: Any) -> None:
        await client.patch("/v1/workspaces/current", json={"settings": {"job_intervals_min": own}})

    await store(client, "Rows on the lake")
    await configure(consolidate=0)
    await said(client, await opened(client, "talk", user_id="alice"), "I work as a nurse in Bergen.")
    assert await by_the_clock() == (False, 0)
    await configure()
    assert await by_the_clock() == (True, 1)
    assert await facts(tables, tenant) == ["User: I work as a nurse in Bergen."]
    assert await by_the_clock() == (False, 0)
    await keep(client, "bob")
    assert (await by_the_clock())[1] == 0
    assert await facts(tables, tenant, "bob") == []


async def read_from(client: AsyncClient, tables: Tables, tenant: Tenant, fact: str, messages: list[str]) -> None:
    """A fact that was read from all of these messages."""
    for begin in range(0, len(messages), 100):
        some = [{"role": "user", "content": each} for each in messages[begin : begin + 100]]
        body = {"messages": some, "user_id": "alice", "infer": False, "session_id": "talk"}
        assert (await client.post("/v1/memories", json=body)).status_code == 201
    fact_id = UUID(await store(client, fact))
    await tables.fetch(
        "INSERT INTO memory_source (workspace_id, memory_id, turn_id) SELECT $1, $2, id FROM turn "
        "WHERE workspace_id = $1",
        *(tenant.workspace_id, fact_id),
    )
    await tables.fetch(
        "UPDATE memory SET conversation_id = (SELECT id FROM conversation WHERE workspace_id = $1 LIMIT 1) "
        "WHERE id = $2",
        *(tenant.workspace_id, fact_id),
    )


@pytest.mark.parametrize("messages", [40, 150])
async def test_a_page_is_full_although_a_fact_stands_for_its_messages(
    client: AsyncClient, tables: Tables, tenant: Tenant, messages: int
) -> None:
    """Also where the messages are all that is looked at first: each arm gives 100 candidates."""
    others = [{"content": f"Seat {n} of the boat is row {n}", "user_id": "alice"} for n in range(15)]
    await client.post("/v1/memories/batch", json={"items": others})
    cups = [f"Tea: cup {n} of many" for n in range(messages)]
    await read_from(client, tables, tenant, "Tea, tea, tea and tea", cups)
    for limit, expected in ((10, 10), (50, 16)):
        query = {"query": "tea", "user_id": "alice", "limit": limit}
        hits = (await client.post("/v1/memories/search", json=query)).json()["results"]
        assert hits[0]["memory"] == "Tea, tea, tea and tea"
        assert len(hits) == len({each["id"] for each in hits}) == expected


WAITING = """
    WITH fresh AS (
        INSERT INTO conversation (workspace_id, id, user_id, external_id, started_at, turn_count)
        SELECT $1, gen_random_uuid(), 'alice', 'talk ' || n, now(), 1 FROM generate_series(1, 300) n RETURNING *
    ), turns AS (
        INSERT INTO turn (workspace_id, id, conversation_id, turn_index, user_id, role, content, content_hash,
                          "timestamp")
        SELECT workspace_id, gen_random_uuid(), id, 0, user_id, 'user', 'I moved.', md5(id::text), now() FROM fresh
    )
    INSERT INTO job (workspace_id, id, kind, payload, state, max_attempts)
    SELECT workspace_id, gen_random_uuid(), 'consolidate', jsonb_build_object('conversation_id', id),
           CASE n WHEN 1 THEN 'ready' ELSE 'done' END, 1
    FROM fresh, generate_series(1, 20) n
"""


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_waiting_jobs_are_compared_with_all_conversations_at_once(
    resources: Resources, tables: Tables, tenant: Tenant, *, is_analysed: bool
) -> None:
    await tables.fetch(WAITING, tenant.workspace_id)
    if is_analysed:
        await tables.fetch("ANALYZE conversation, turn, job")
    async with resources.db.read(tenant.workspace_id) as session:
        reading = conversations.find_unread(session, after=NIL_ID, quiet=timedelta(0), kept=True, batch=400)
        plan = await kept_plan(session, reading)
    assert plan[0].rows == 0, "all of them have a job"
    assert rows_read(plan) < 50 * 300, "not each job for each conversation"
    assert rows_read(plan, "job") < 400 or not is_analysed, "none that is done"

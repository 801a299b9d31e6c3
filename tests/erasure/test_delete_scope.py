"""Deleting a scope takes all of it and nothing else, however many rows."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from httpx2 import AsyncClient

from service.erasure import forget_scope
from service.erasure.forget_scope import forget_next_batch
from service.postgres.engine import Database
from service.queue.statements import operations
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import events, listed, store
from tests.support.tasks import work
from tests.support.workers import Start, fetch, job_for, until

MANY = """
    INSERT INTO memory (workspace_id, id, user_id, channel, content, hash, type, type_confidence, classification_source,
                        importance, importance_level, timestamp, embedding_status, created_at, updated_at)
    SELECT $1, gen_random_uuid(), $2, '_global', 'note ' || n, md5($2 || n), 'Context', 1, 'default', 0.5, 5,
           now(), 'stored', now(), now() FROM generate_series(1, $3::integer) n
"""
STATS = """
    INSERT INTO memory_stat (workspace_id, memory_id, last_accessed)
    SELECT workspace_id, id, now() FROM memory m WHERE workspace_id = $1
        AND NOT EXISTS (SELECT FROM memory_stat s WHERE s.workspace_id = m.workspace_id AND s.memory_id = m.id)
"""


HISTORY = """
    INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory, user_id)
    SELECT workspace_id, gen_random_uuid(), id, 'ADD', content, user_id FROM memory
    WHERE workspace_id = $1 AND user_id = $2
"""


LEFT = """
    SELECT m::text, s::text FROM memory m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
    WHERE m.workspace_id = $1 AND m.user_id <> 'carol' ORDER BY m.id
"""


async def fill(tables: Tables, tenant: Tenant, user_id: str, count: int) -> None:
    await tables.fetch(MANY, tenant.workspace_id, user_id, count)
    await tables.fetch(STATS, tenant.workspace_id)
    await tables.fetch(HISTORY, tenant.workspace_id, user_id)


async def work_off(database: Database, res: Resources, tenant: Tenant) -> Any:
    """Runs the waiting job as a worker would."""
    rows = await fetch(database, tenant.workspace_id, "SELECT payload FROM job WHERE kind = 'forget_scope'")
    job = job_for(tenant.workspace_id, None, "forget_scope")
    return await forget_scope.run(replace(job, payload=rows[-1].payload), res)


async def test_a_user_goes_and_the_others_stay(client: AsyncClient, other_client: AsyncClient) -> None:
    mine = [await store(client, f"Fact number {number} of alice") for number in ("one", "two", "three")]
    assert await listed(client, user_id="alice") == set(mine)
    bobs = await store(client, "Fact of bob", user_id="bob")
    theirs = await store(other_client, "Another alice")
    answer = await client.delete("/v1/memories", params={"user_id": "alice"})
    assert (answer.status_code, answer.json()["deleted"]) == (200, 3)
    assert await listed(client, user_id="alice") == set()
    assert await listed(client, user_id="bob") == {bobs}
    assert await listed(other_client, user_id="alice") == {theirs}
    assert await events(client, mine[0]) == ["ADD", "DELETE"]
    assert (await client.delete("/v1/memories", params={"user_id": "alice"})).json()["deleted"] == 0


async def test_what_was_accepted_before_is_not_stored_later(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    urls = {}
    for user in ("alice", "bob"):
        body = {"messages": [{"role": "user", "content": "I like figs."}], "user_id": user}
        accepted = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
        urls[user] = accepted.json()["url"]
    for scope in ({"user_id": "carol"}, {"user_id": "alice", "channel": "atlas"}, {"agent_id": "alice"}):
        await client.delete("/v1/memories", params=scope)
    assert (await client.get(urls["alice"])).json()["status"] == "queued"
    await client.delete("/v1/memories", params={"user_id": "alice"})
    assert await work(resources, tables, tenant.workspace_id, "ingest") == 2
    assert await listed(client, user_id="alice") == set()
    assert len(await listed(client, user_id="bob")) == 1
    assert (await client.get(urls["alice"])).status_code == 404
    assert (await client.get(urls["bob"])).json()["status"] == "done"


async def test_every_given_id_must_match(client: AsyncClient) -> None:
    both = await store(client, "Said to the planner", agent_id="planner")
    alone = await store(client, "Said to nobody")
    run = await store(client, "Said in a run", agent_id="planner", run_id="r1")
    await client.delete("/v1/memories", params={"user_id": "alice", "agent_id": "planner", "run_id": "r1"})
    assert await listed(client, user_id="alice") == {both, alone}
    await client.delete("/v1/memories", params={"user_id": "alice", "agent_id": "planner"})
    assert await listed(client, user_id="alice") == {alone}
    assert await events(client, run) == ["ADD", "DELETE"]


async def test_a_channel_is_taken_alone_and_none_means_all(client: AsyncClient) -> None:
    everywhere = await store(client, "Known everywhere")
    atlas = await store(client, "Known in atlas", channel="atlas")
    other = await store(client, "Known in borealis", channel="borealis")
    await client.delete("/v1/memories", params={"user_id": "alice", "channel": "atlas"})
    assert [await events(client, each) for each in (everywhere, atlas, other)] == [["ADD"], ["ADD", "DELETE"], ["ADD"]]
    await client.delete("/v1/memories", params={"user_id": "alice"})
    assert [await events(client, each) for each in (everywhere, other)] == [["ADD", "DELETE"]] * 2


async def test_a_scope_is_needed(client: AsyncClient) -> None:
    memory_id = await store(client, "Drinks tea")
    for params in ({}, {"channel": "atlas"}):
        answer = await client.delete("/v1/memories", params=params)
        assert (answer.status_code, answer.json()["code"]) == (400, "scope_error")
    assert await events(client, memory_id) == ["ADD"]


async def test_two_batches_in_one_request(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    await fill(tables, tenant, "carol", 1_000)
    answer = await client.delete("/v1/memories", params={"user_id": "carol"})
    assert answer.status_code == 200
    assert answer.json() == {"deleted": 1_000, "status": "done", "operation_id": None, "url": None}
    history = await tables.value(
        "SELECT count(*) FROM memory_history WHERE workspace_id = $1 AND event = 'DELETE'", tenant.workspace_id
    )
    assert history == 1_000
    still_open = await tables.value(
        "SELECT count(*) FROM memory_history WHERE workspace_id = $1 AND recorded_to IS NULL AND event = 'ADD'",
        tenant.workspace_id,
    )
    assert still_open == 0


async def test_very_many_are_an_operation_with_progress(
    client: AsyncClient, tables: Tables, tenant: Tenant, database: Database, resources: Resources
) -> None:
    await fill(tables, tenant, "carol", 2_345)
    await fill(tables, tenant, "dave", 3)
    headers = {"Idempotency-Key": str(uuid4())}
    answer = await client.delete("/v1/memories", params={"user_id": "carol"}, headers=headers)
    assert answer.status_code == 202
    assert (answer.json()["deleted"], answer.json()["status"]) == (0, "queued")
    url = answer.headers["Location"]
    assert url == answer.json()["url"]
    again = await client.delete("/v1/memories", params={"user_id": "carol"}, headers=headers)
    assert (again.status_code, again.json()) == (202, answer.json())
    assert (await client.get(url)).json()["progress"] == {"done": 0, "total": 2_345}
    late = await store(client, "Stored after the delete began", user_id="carol", timestamp="2026-03-02T09:30:00Z")
    await tables.fetch("UPDATE memory SET created_at = now() + interval '1 hour' WHERE id = $1", UUID(late))
    assert await work_off(database, resources, tenant) == {"deleted": 2_345}
    done = (await client.get(url)).json()
    assert (done["status"], done["result"], done["progress"]) == (
        "done",
        {"deleted": 2_345},
        {"done": 2_345, "total": 2_345},
    )
    assert await listed(client, user_id="carol") == {late}
    assert len(await listed(client, user_id="dave")) == 3
    assert await work_off(database, resources, tenant) is None


async def test_a_job_that_died_goes_on_where_it_was(
    client: AsyncClient, tables: Tables, tenant: Tenant, database: Database, resources: Resources
) -> None:
    await fill(tables, tenant, "carol", 1_200)
    accepted = (await client.delete("/v1/memories", params={"user_id": "carol"})).json()
    async with database.read(tenant.workspace_id) as session:
        operation = await operations.get(session, UUID(accepted["operation_id"]))
    assert operation is not None
    await forget_next_batch(operation, tenant.workspace_id, None, resources)
    assert (await client.get(accepted["url"])).json()["progress"] == {"done": 500, "total": 1_200}
    assert await work_off(database, resources, tenant) == {"deleted": 1_200}


async def test_a_worker_that_is_killed_in_its_midst_leaves_all_of_it_gone_in_the_end(
    client: AsyncClient, tables: Tables, tenant: Tenant, owner_url: str, start_worker: Start, tmp_path: Path
) -> None:
    """By another worker, counted once; nothing else went."""
    await tables.fetch("UPDATE job SET state = 'dead' WHERE kind = 'forget_scope' AND state = 'ready'")  # of others
    total = 4_000
    await fill(tables, tenant, "carol", total)
    await fill(tables, tenant, "dave", 50)
    theirs = await tables.fetch(LEFT, tenant.workspace_id)
    accepted = (await client.delete("/v1/memories", params={"user_id": "carol"})).json()

    async def begun() -> bool:
        return bool((await client.get(accepted["url"])).json()["progress"]["done"])

    async def done() -> bool:
        return bool((await client.get(accepted["url"])).json()["status"] == "done")

    victim = start_worker(owner_url, "forget_scope", "real", tmp_path)
    await until(begun, timeout_s=60)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    after = (await client.get(accepted["url"])).json()
    assert after["status"] == "running"
    left = await tables.value(
        "SELECT count(*) FROM memory WHERE workspace_id = $1 AND user_id = 'carol'", tenant.workspace_id
    )
    assert 0 < left < total
    assert after["progress"] == {"done": total - left, "total": total}

    start_worker(owner_url, "forget_scope", "real", tmp_path)
    await until(done, timeout_s=60)
    assert (await client.get(accepted["url"])).json()["result"] == {"deleted": total}
    assert await tables.fetch(LEFT, tenant.workspace_id) == theirs
    deletes = (
        "SELECT count(*), count(DISTINCT memory_id) FROM memory_history WHERE workspace_id = $1 AND event = 'DELETE'"
    )
    assert tuple((await tables.fetch(deletes, tenant.workspace_id))[0]) == (total, total)


async def test_another_query_under_the_same_idempotency_key_is_refused(client: AsyncClient) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    await store(client, "Drinks tea", user_id="bob")
    await client.delete("/v1/memories", params={"user_id": "alice"}, headers=headers)
    answer = await client.delete("/v1/memories", params={"user_id": "bob"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")


async def test_bulk_deletes_that_meet_do_not_lock_each_other_out(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    for user in ("carol", "dave"):
        await fill(tables, tenant, user, 60)
    await tables.fetch(
        "INSERT INTO memory_edge (workspace_id, source_id, target_id, rel_type) "
        "SELECT a.workspace_id, a.id, b.id, 'RELATES_TO' FROM memory a JOIN memory b USING (workspace_id) "
        "WHERE workspace_id = $1 AND a.user_id <> b.user_id AND random() < 0.2",
        tenant.workspace_id,
    )
    answers = await asyncio.gather(
        *(client.delete("/v1/memories", params={"user_id": user}) for user in ("carol", "dave", "carol", "dave"))
    )
    assert [answer.status_code for answer in answers] == [200] * 4
    assert sum(answer.json()["deleted"] for answer in answers) == 120

"""SECURITY DEFINER functions, one by one: none reveals anything of another tenant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.access.statements import keys
from service.access.values import NewKey
from service.domain.access import Right
from service.domain.job import JobName, NewJob
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.queue.statements import queue
from service.upkeep.statements import maintenance
from tests.conftest import Tenant

DENIED = "permission denied"
KIND = cast(JobName, "test-definers")  # a kind that no worker claims


async def test_find_api_key_needs_the_exact_hash(database: Database, tenant: Tenant, stranger: Tenant) -> None:
    mine = await keys.find(database, tenant.key)
    assert mine is not None
    assert mine.workspace_id == tenant.workspace_id
    digest = keys.digest(tenant.key)
    for guess in ("", "%", digest[:-1], digest.upper(), digest + " ", "' OR true --", stranger.key):
        async with database.read(stranger.workspace_id) as session:
            rows = (await session.execute(text("SELECT * FROM find_api_key(:hash)"), {"hash": guess})).all()
        assert rows == []


async def test_find_api_key_does_not_find_a_revoked_key(database: Database, workspace: UUID) -> None:
    async with database.begin(workspace) as session:
        issued = await keys.issue(session, NewKey("short", [Right.READ]))
        await keys.revoke(session, issued.key_id)
    assert await keys.find(database, issued.secret) is None


async def test_create_workspace_gives_no_key_to_an_existing_workspace(
    database: Database, tenant: Tenant, stranger: Tenant
) -> None:
    """Otherwise every caller with the rights of the app could make itself a key for any workspace."""
    values = {"w": tenant.workspace_id, "k": uuid4(), "h": keys.digest("burglar")}
    with pytest.raises(Exception, match="pk_workspace"):
        async with database.begin(stranger.workspace_id) as session:
            await session.execute(text("SELECT create_workspace(:w, 'x', :k, 'x', :h, 'x', '{admin}')"), values)
    assert await keys.find(database, "burglar") is None
    async with database.read(tenant.workspace_id) as session:
        assert len(await keys.listing(session)) == 1


async def test_the_app_cannot_write_into_another_workspace_by_hand(
    database: Database, tenant: Tenant, stranger: Tenant
) -> None:
    insert = text(
        "INSERT INTO api_key (workspace_id, id, name, key_hash, hint, rights) VALUES (:w, :k, 'x', :h, 'x', '{admin}')"
    )
    values = {"w": tenant.workspace_id, "k": uuid4(), "h": keys.digest("burglar")}
    with pytest.raises(Exception, match="row-level security"):
        async with database.begin(stranger.workspace_id) as session:
            await session.execute(insert, values)


async def test_only_the_worker_may_claim_jobs_and_each_names_its_workspace(
    database: Database, worker_database: Database, tenant: Tenant, stranger: Tenant
) -> None:
    for workspace_id in (tenant.workspace_id, stranger.workspace_id):
        async with database.begin(workspace_id) as session:
            await queue.enqueue(session, [NewJob(KIND, payload={"of": str(workspace_id)})])
    with pytest.raises(Exception, match=DENIED):
        async with database.begin(tenant.workspace_id) as session:
            await queue.claim(session, "burglar", [KIND], 10, 60)
    async with worker_database.begin(NIL_WORKSPACE) as session:
        claimed = await queue.claim(session, "honest", [KIND], 10, 60)
    assert {(job.workspace_id, job.payload["of"]) for job in claimed} >= {
        (each, str(each)) for each in (tenant.workspace_id, stranger.workspace_id)
    }
    assert all(str(job.workspace_id) == job.payload["of"] for job in claimed)


async def test_the_app_sees_only_its_own_jobs(database: Database, tenant: Tenant, stranger: Tenant) -> None:
    async with database.begin(tenant.workspace_id) as session:
        await queue.enqueue(session, [NewJob(KIND)])
    async with database.read(stranger.workspace_id) as session:
        assert await session.scalar(text("SELECT count(*) FROM job")) == 0


async def test_the_queue_is_measured_in_counts_alone(database: Database, tenant: Tenant, stranger: Tenant) -> None:
    async with database.begin(tenant.workspace_id) as session:
        await queue.enqueue(session, [NewJob(KIND)])
    async with database.read(stranger.workspace_id) as session:
        found = (await session.execute(text("SELECT * FROM measure_queue()"))).all()
    assert "due" in [row.state for row in found if row.kind == KIND and row.jobs >= 1]
    assert {type(value) for row in found for value in row} == {str, int, float}


@pytest.mark.parametrize("parent", ["memory", "workspace", "api_key", "pg_class", "audit_log; DROP TABLE memory", ""])
async def test_drop_partitions_drops_of_known_parents_only(worker_database: Database, parent: str) -> None:
    with pytest.raises(Exception, match="no rows"):
        async with worker_database.begin(NIL_WORKSPACE) as session:
            await maintenance.drop_partitions(session, parent, datetime.now(UTC) - timedelta(days=4_000))


@pytest.mark.parametrize("call", ["find_unembedded('0 s', 10)", "find_outlived('2000-01-01', 1, 10)"])
async def test_what_finds_memories_gives_ids_and_no_texts(worker_database: Database, call: str) -> None:
    async with worker_database.read() as session:
        found = await session.execute(text(f"SELECT * FROM {call}"))
    assert list(found.keys()) == ["workspace_id", "memory_id"]


LOGS = {
    "memory_history": (
        "INSERT INTO memory_history (workspace_id, id, memory_id, event, user_id) "
        "VALUES (:w, gen_random_uuid(), gen_random_uuid(), 'ADD', 'alice')"
    ),
    "conversation_log": (
        'INSERT INTO conversation_log (workspace_id, id, conversation_id, turn_id, turn_index, "timestamp", role, '
        "content, content_hash, user_id) "
        "VALUES (:w, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, now(), 'user', 'Hello', 'x', 'alice')"
    ),
}


@pytest.mark.parametrize("table", LOGS)
async def test_erasing_a_log_deletes_only_in_the_callers_workspace_and_never_everything(
    database: Database, tenant: Tenant, stranger: Tenant, table: str
) -> None:
    insert = text(LOGS[table])
    for workspace_id in (tenant.workspace_id, stranger.workspace_id):
        async with database.begin(workspace_id) as session:
            for _ in range(2):
                await session.execute(insert, {"w": workspace_id})
    async with database.begin(stranger.workspace_id) as session:
        assert await session.scalar(text("SELECT erase_history(now() + interval '1 day', 1)")) == 1
        rows = await session.execute(text("SELECT * FROM purge_subject('alice', NULL, NULL, NULL, NULL)"))
        gone: dict[str, int] = dict(rows.all())
        assert gone[table] == 1
    async with database.read(tenant.workspace_id) as session:
        assert await session.scalar(text(f"SELECT count(*) FROM {table}")) == 2
    with pytest.raises(Exception, match="a subject is"):
        async with database.begin(tenant.workspace_id) as session:
            await session.execute(text("SELECT purge_subject(NULL, NULL, NULL, '_global', NULL)"))

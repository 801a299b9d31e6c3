"""A request whose memory a bulk delete erases while it is written, and deletions that wait for a writer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.scope import Extent
from service.erasure.purge import purge_memory, purge_scope
from service.memories.statements import history, versions
from service.memories.statements.deletion import delete_memories
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.blocking import WAITING, blocking
from tests.support.calls import listed, store
from tests.support.judging import judged, tell
from tests.support.verbs import CALL, Verbs

ERASE = "DELETE FROM memory WHERE workspace_id = $1 AND id = $2"
RULED: dict[str, dict[str, Any]] = {
    "updated": {"event": "UPDATE", "id": 1, "text": "Lives in Porto"},
    "retired": {"event": "DELETE", "id": 1},
    "confirmed": {"event": "NONE", "id": 1},
}


@pytest.mark.parametrize("policy", ["in_place", "supersede"])
@pytest.mark.parametrize("ruled", RULED.values(), ids=RULED)
async def test_a_fact_is_decided_again(
    resources: Resources, tenant: Tenant, tables: Tables, owner_url: str, ruled: dict[str, Any], policy: str
) -> None:
    async with judged(resources, tenant, contradiction_policy=policy) as (client, judge):
        old = await store(client, "Lives in Lisbon")
        home = "Lisbon" if ruled["event"] == "NONE" else "Porto"
        judge.say("Lives in Lisbon." if home == "Lisbon" else "Lives in Porto", ruled)
        async with blocking(owner_url, tables, ERASE, tenant.workspace_id, old):
            results = await tell(client, f"I live in {home}")
        left = await listed(client, user_id="alice")
        assert old not in left
        # what was confirmed was so when it was said; everything else is a new fact by now
        assert left == set() if ruled["event"] == "NONE" else {each["id"] for each in results} == left
        assert await tables.value("SELECT count(*) FROM memory_source WHERE memory_id = $1", UUID(old)) == 0


async def test_a_text_of_its_own_is_decided_again(
    resources: Resources, tenant: Tenant, tables: Tables, owner_url: str
) -> None:
    async with judged(resources, tenant) as (client, _):
        old = await store(client, "Lives in Lisbon", id="6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
        async with blocking(owner_url, tables, ERASE, tenant.workspace_id, old):
            body = {"content": "Lives in Porto", "user_id": "alice", "id": old, "dedup": False}
            answer = await client.post("/v1/memories", json=body)
        assert answer.status_code == 201, answer.text
        assert [each["event"] for each in answer.json()["results"]] == ["ADD"]
        assert await listed(client, user_id="alice") == {old}


async def test_older_news_are_decided_again(
    client: AsyncClient, tenant: Tenant, tables: Tables, owner_url: str
) -> None:
    known = await store(client, "Ann lives in Porto.", timestamp="2025-06-01T00:00:00Z", t_valid="2025-06-01T00:00:00Z")
    async with blocking(owner_url, tables, ERASE, tenant.workspace_id, known):
        body = {"content": "Ann lives in Lisbon.", "user_id": "alice", "timestamp": "2025-01-01T00:00:00Z"}
        answer = await client.post("/v1/memories", json=body)
    assert answer.status_code == 201, answer.text
    [added] = answer.json()["results"]
    assert (added["event"], added["kept_as"]) == ("ADD", None)
    assert await listed(client, user_id="alice") == {added["id"]}


# -- a deletion that waits for a past version --------------------------------------------------------------------------


@pytest.fixture
async def written_meanwhile(verbs: Verbs) -> AsyncIterator[tuple[UUID, UUID]]:
    """A memory that somebody holds while the test's block begins, and the past version that they add to it before they
    let go: when something waits for it."""
    memory_id, version = await verbs.stored("Ann plays chess"), uuid4()
    db, workspace_id, now = verbs.res.db, verbs.workspace_id, verbs.res.clock()
    held = asyncio.Event()

    async def write() -> None:
        async with db.begin(workspace_id) as writer:
            await history.lock(writer, [memory_id])
            held.set()
            while not (await verbs.rows(WAITING))[0].count:  # noqa: ASYNC110 - nothing in this process tells of it
                await asyncio.sleep(0.01)
            until, entry = now + timedelta(days=1), uuid4()
            assert await versions.keep(
                writer, memory_id, version, version_of=memory_id, history_id=entry, until=until, now=now
            )

    writing = asyncio.create_task(write())
    await held.wait()
    yield memory_id, version
    await writing


async def test_a_version_that_a_deletion_waited_for_has_its_end_in_history(
    verbs: Verbs, written_meanwhile: tuple[UUID, UUID]
) -> None:
    memory_id, version = written_meanwhile
    async with verbs.res.db.begin(verbs.workspace_id) as session:
        await delete_memories(session, [memory_id], generation=verbs.res.generation)
    assert [event for event, _, _ in await verbs.history(version)] == ["ADD", "DELETE"]


@pytest.mark.parametrize("whole_scope", [True, False])
async def test_a_version_that_a_purge_waited_for_leaves_nothing(
    verbs: Verbs, written_meanwhile: tuple[UUID, UUID], whole_scope: bool
) -> None:
    if whole_scope:
        await purge_scope(Extent(verbs.scope(), None), verbs.res, CALL)
    else:
        await purge_memory(verbs.workspace_id, written_meanwhile[0], verbs.res, CALL)
    assert [await verbs.history(each) for each in written_meanwhile] == [[], []]

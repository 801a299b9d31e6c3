"""Forgetting, expiry and purge: what goes, and what stays to be read about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from service.domain.errors import NotFound, PreconditionFailed
from service.domain.scope import Extent
from service.domain.version import Expected
from service.erasure.forget_scope import empty_workspace, forget_scope
from service.erasure.purge import purge_memory, purge_scope
from service.memories.forget import forget, forget_many, remove_outlived
from service.memories.statements import history, versions
from service.memories.statements.deletion import delete_memories
from service.postgres.engine import Database
from tests.conftest import SetClock
from tests.erasure.test_erased_meanwhile import WAITING
from tests.support.verbs import CALL, Verbs


async def test_a_forgotten_memory_keeps_its_history(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    first = await forget(verbs.workspace_id, memory_id, verbs.res, CALL)
    again = await forget(verbs.workspace_id, memory_id, verbs.res, CALL)
    assert (first.deleted, first.already_deleted) == (True, False)
    assert (again.deleted, again.already_deleted) == (False, True)
    assert await verbs.memory(memory_id) is None
    assert (await verbs.history(memory_id))[-1] == ("DELETE", "Ann plays chess", None)
    assert await verbs.audited() == ["store", "delete"]


async def test_forget_refuses_unknown_ids_and_other_versions(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    with pytest.raises(NotFound):
        await forget(verbs.workspace_id, uuid4(), verbs.res, CALL)
    with pytest.raises(PreconditionFailed):
        await forget(verbs.workspace_id, memory_id, verbs.res, CALL, expected=Expected(frozenset({9})))
    assert await verbs.memory(memory_id) is not None


async def test_forget_many_answers_for_every_id(verbs: Verbs) -> None:
    one, two, unknown = await verbs.stored("Ann plays chess"), await verbs.stored("Ann won a cup"), uuid4()
    await forget(verbs.workspace_id, two, verbs.res, CALL)
    found = await forget_many(verbs.workspace_id, [unknown, one, two], verbs.res, CALL)
    assert [(each.id, each.deleted, each.already_deleted) for each in found] == [
        (unknown, False, False),
        (one, True, False),
        (two, False, True),
    ]
    assert await verbs.audited() == ["store", "store", "delete", "delete"]


async def test_forget_scope_leaves_other_users(verbs: Verbs) -> None:
    mine = await verbs.stored("Ann plays chess")
    other = await verbs.stored("Bob bakes bread", scope=verbs.scope("bob"))
    found = await forget_scope(Extent(verbs.scope(), None), verbs.res, CALL)
    assert (found.deleted, found.operation_id) == (1, None)
    assert await verbs.memory(mine) is None
    assert await verbs.memory(other) is not None
    assert (await verbs.history(mine))[-1][0] == "DELETE"


async def test_a_reset_empties_the_workspace_but_for_the_audit(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    found = await empty_workspace(verbs.workspace_id, verbs.res, CALL)
    assert found.deleted == 1
    assert await verbs.history(memory_id) == []
    assert (await verbs.audited())[-1] == "reset"


async def test_what_has_outlived_its_time_goes(verbs: Verbs, worker_database: Database, clock: SetClock) -> None:

    until = clock() + timedelta(hours=1)
    short, long = await verbs.stored("Ann plays chess", expires_at=until), await verbs.stored("Ann won a cup")
    worker = replace(verbs.res, db=worker_database)
    await remove_outlived(worker)
    assert await verbs.memory(short) is not None
    clock.forward(hours=2)
    assert await remove_outlived(worker) >= 1
    assert await verbs.memory(short) is None
    assert await verbs.memory(long) is not None
    assert (await verbs.history(short))[-1] == ("DELETE", "Ann plays chess", None)
    assert await verbs.audited() == ["store", "store", "delete"]


async def test_a_purged_memory_leaves_a_receipt_and_nothing_it_said(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    receipt = await purge_memory(verbs.workspace_id, memory_id, verbs.res, CALL)
    assert receipt.counts["memory"] == 1
    assert receipt.counts["memory_history"] == 1
    assert len(receipt.subject_sha256) == 64
    assert await verbs.history(memory_id) == []
    assert (await verbs.audited())[-1] == "purge"
    assert await verbs.rows("SELECT id FROM audit_log WHERE CAST(audit_log AS text) LIKE '%chess%'") == []
    with pytest.raises(NotFound):
        await purge_memory(verbs.workspace_id, memory_id, verbs.res, CALL)


async def test_a_purged_scope_takes_what_was_deleted_before(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    await forget(verbs.workspace_id, memory_id, verbs.res, CALL)
    other = await verbs.stored("Bob bakes bread", scope=verbs.scope("bob"))
    receipt = await purge_scope(Extent(verbs.scope(), None), verbs.res, CALL)
    assert receipt.counts["memory_history"] == 2
    assert await verbs.history(memory_id) == []
    assert len(await verbs.history(other)) == 1


@pytest.fixture
async def written_meanwhile(verbs: Verbs) -> AsyncIterator[tuple[UUID, UUID]]:
    """A memory that somebody holds while the test's block begins, and the past version that they add to it before they
    let go: when something waits for it."""
    memory_id, version = await verbs.stored("Ann plays chess"), uuid4()
    db, workspace_id, now = verbs.res.db, verbs.workspace_id, verbs.res.clock()
    held = asyncio.Event()

    async def write() -> None:
        async with db.begin(workspace_id) as writer:
            await history.lock(writer, workspace_id, [memory_id])
            held.set()
            while not (await verbs.rows(WAITING))[0].count:  # noqa: ASYNC110 - nothing in this process tells of it
                await asyncio.sleep(0.01)
            until, entry = now + timedelta(days=1), uuid4()
            assert await versions.keep(
                writer, workspace_id, memory_id, version, version_of=memory_id, until=until, history_id=entry, now=now
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
        await delete_memories(session, verbs.workspace_id, [memory_id], generation=verbs.res.generation)
    assert [event for event, _, _ in await verbs.history(version)] == ["ADD", "DELETE"]


async def test_a_version_that_a_purge_of_its_scope_waited_for_leaves_nothing(
    verbs: Verbs, written_meanwhile: tuple[UUID, UUID]
) -> None:
    await purge_scope(Extent(verbs.scope(), None), verbs.res, CALL)
    assert [await verbs.history(each) for each in written_meanwhile] == [[], []]


async def test_a_version_that_a_purge_waited_for_leaves_nothing(
    verbs: Verbs, written_meanwhile: tuple[UUID, UUID]
) -> None:
    await purge_memory(verbs.workspace_id, written_meanwhile[0], verbs.res, CALL)
    assert [await verbs.history(each) for each in written_meanwhile] == [[], []]

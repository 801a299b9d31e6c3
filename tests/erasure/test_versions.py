"""Deletion and purge of a memory that gets a past version while they wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from service.domain.scope import Extent
from service.erasure.purge import purge_memory, purge_scope
from service.memories.statements import history, versions
from service.memories.statements.deletion import delete_memories
from tests.support.blocking import WAITING
from tests.support.verbs import CALL, Verbs


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
                writer, workspace_id, memory_id, version, version_of=memory_id, history_id=entry, until=until, now=now
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

"""A worker is woken soon and seldom enough, and a dead connection does no harm."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import make_url

from service.queue.wakeup import CHANNEL, Wakeup


@pytest.fixture
async def wakeup(owner_url: str) -> AsyncIterator[Wakeup]:
    found = Wakeup(owner_url)
    yield found
    await found.close()


@asynccontextmanager
async def listening(wakeup: Wakeup) -> AsyncIterator[None]:
    """Inside the block the listener is connected and nothing has arrived."""
    task = asyncio.create_task(wakeup.listen())
    try:
        for _ in range(1000):
            if wakeup.works:
                break
            await asyncio.sleep(0.02)
        assert wakeup.works
        await asyncio.sleep(0.1)
        wakeup.arrived.clear()
        yield
    finally:
        await ended(task)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)


async def connect(url: str) -> asyncpg.Connection[Any]:
    return await asyncpg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False))


async def test_a_listener_hears_itself_at_start_and_others_later(owner_url: str, wakeup: Wakeup) -> None:
    other = Wakeup(owner_url)
    try:
        async with listening(wakeup):
            other.notify()
            await asyncio.wait_for(wakeup.arrived.wait(), 20)
    finally:
        await other.close()


@pytest.mark.parametrize("steps", range(6))
async def test_a_listener_ends_although_a_notification_has_just_arrived(wakeup: Wakeup, steps: int) -> None:
    """Each number of steps cancels it in another state: one of them is between the arrival and its return."""
    task = asyncio.create_task(wakeup.listen())
    async with asyncio.timeout(20):
        while not wakeup.works:  # noqa: ASYNC110 (it is looked at after every step of the loop)
            await asyncio.sleep(0)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done


async def test_many_calls_make_few_notifications(owner_url: str, wakeup: Wakeup) -> None:
    """One at once, then one every 250 ms: 4 in 0.8 s. Counted at a listener, by the sender's process id."""
    heard: Counter[object] = Counter()
    connection = await connect(owner_url)
    await connection.add_listener(CHANNEL, lambda *said: heard.update([said[1]]))
    began = time.monotonic()
    while time.monotonic() - began < 0.6:
        wakeup.notify()
        await asyncio.sleep(0)
    await asyncio.sleep(0.2)
    await connection.close()
    assert 2 <= heard.most_common(1)[0][1] <= 5


async def test_no_database_is_no_error() -> None:
    nowhere = Wakeup("postgresql+asyncpg://nobody@127.0.0.1:1/none")
    task = asyncio.create_task(nowhere.listen())
    nowhere.notify()
    await asyncio.sleep(0.3)
    assert not task.done()
    assert not nowhere.works
    await ended(task)
    await nowhere.close()


async def test_a_cut_line_is_mended(owner_url: str, wakeup: Wakeup) -> None:
    async with listening(wakeup):
        owner = await connect(owner_url)
        cut = await owner.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ILIKE $1", f"LISTEN%{CHANNEL}%"
        )
        await owner.close()
        assert cut >= 1
        await asyncio.wait_for(wakeup.arrived.wait(), 20)

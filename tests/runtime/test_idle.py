"""What nobody uses is given back, and comes again when it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest

from service.domain.scope import NIL_WORKSPACE
from service.domain.text import CleanText
from service.postgres.engine import Database, driver
from service.postgres.roles import APP
from service.providers.local import EmbedderProcess, LocalEmbedder
from service.runtime import opening
from tests.conftest import open_as


@pytest.fixture
async def pool(owner_url: str) -> AsyncIterator[Database]:
    async with open_as(owner_url, APP, size=5) as database:
        yield database


async def _nothing(_: float) -> int:
    return 0


async def _use(database: Database, count: int) -> list[int]:
    """The processes of as many connections as are used at once, in the order in which they are given back."""
    all_open, found = asyncio.Barrier(count), list[int]()

    async def one() -> None:
        async with database.read(NIL_WORKSPACE) as session:
            await all_open.wait()
            pid = (await driver(session)).get_server_pid()
        found.append(pid)

    await asyncio.gather(*(one() for _ in range(count)))
    return found


async def test_connections_are_closed_but_those_used_last(pool: Database) -> None:
    used = await _use(pool, 5)
    assert await opening.give_back(pool, _nothing, keep=2, idle_s=60) == 0, "they were used just now"
    assert await opening.give_back(pool, _nothing, keep=2, idle_s=0) == 3
    assert await opening.give_back(pool, _nothing, keep=2, idle_s=0) == 0
    assert set(await _use(pool, 2)) == set(used[-2:]), "those are used again"
    assert len(set(await _use(pool, 5))) == 5, "and there is room for as many as before"


async def test_connections_in_use_stay(pool: Database) -> None:
    async with pool.read(NIL_WORKSPACE) as session:
        await _use(pool, 4)
        assert await pool.pool.close_idle(0, keep=0) == 4
        assert pool.pool.idle == 0
        assert (await driver(session)).is_in_transaction()
    assert pool.pool.idle == 1


async def test_a_lent_embedder_gives_the_same_vectors() -> None:
    lent, local = EmbedderProcess(None, threads=2), LocalEmbedder.load(None, threads=2)
    text = CleanText("Bob is allergic to peanuts")
    for _ in range(2):
        assert np.array_equal((await lent.embed([text]))[0], (await local.embed([text]))[0])
        assert await lent.end_idle(0) == 1
    assert np.array_equal(await lent.embed_query(text), await local.embed_query(text))
    assert await lent.windows(text) == await local.windows(text) == (1, True)
    assert lent.similarity(0.9) == local.similarity(0.9)
    for each in (lent, local):
        await each.close()

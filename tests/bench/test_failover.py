"""A failover on two real servers: what was acknowledged is there once, and nothing is acknowledged that may be lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import text

from bench.failover import ServerPair, fail_over_under_load, two_servers, violations
from bench.superuser import login_url
from service.kit.settings import Settings
from service.postgres import migrate
from service.postgres.engine import Access, Database
from service.postgres.replicas import open_replicas
from service.postgres.roles import APP, OWNER
from service.runtime.embedding import with_caches
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.conftest import DIMENSION, new_tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving
from tests.thorough import many

IMPATIENT_S = 1.0


@pytest.fixture(scope="module")
def pair(settings: Settings) -> Iterator[ServerPair]:
    with two_servers() as found:
        url = _driver(found.start())
        migrate.upgrade(login_url(url, OWNER), settings)
        asyncio.run(generations.record_first(url, AngleEmbedder.model, DIMENSION))
        asyncio.run(found.add_standby())
        yield found


@pytest.fixture
async def either(pair: ServerPair) -> AsyncIterator[Database]:
    """The pool of whichever server takes writes."""
    url, _ = pair.urls_of(APP)
    database = Database(Access(_driver(url)), pool_size=10, pool_timeout_s=5, statement_timeout_s=IMPATIENT_S)
    yield database
    await database.close()


def _driver(url: str) -> str:
    return url.replace("postgresql://", "postgresql+asyncpg://")


async def test_no_acknowledged_write_is_lost(
    pair: ServerPair, either: Database, resources: Resources, embedder: AngleEmbedder
) -> None:
    tenant = await new_tenant(either)
    url, each = pair.urls_of(APP)
    opened = open_replicas(Access(_driver(url)), list(map(_driver, each)), max_lag_s=5, pool_size=5)
    async with opened as replicas:
        own = replace(resources, db=either, embedder=with_caches(embedder, either), replicas=replicas)
        async with serving(own) as app:
            told = await fail_over_under_load(pair, partial(client_of, app, tenant.key), many(1, 5), clients=4)
    assert await violations(pair, told) == []
    assert told.statuses.keys() <= {"200", "201", "503"}, told.statuses


async def test_a_commit_is_not_acknowledged_before_the_standby_has_it(pair: ServerPair, either: Database) -> None:
    """However long the standby is away, and however short the time limit of statements is."""

    async def write() -> None:
        async with either.begin((await new_tenant(either)).workspace_id) as session:
            await session.execute(text("SELECT count(*) FROM memory"))

    pair.kill_standby()
    writing = asyncio.create_task(write())
    await asyncio.sleep(2.5 * IMPATIENT_S)
    assert not writing.done()
    pair.restart_standby()
    await asyncio.wait_for(writing, 30)

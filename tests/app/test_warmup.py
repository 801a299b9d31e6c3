"""Warming up is done before the first requests, which would pay for it otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from structlog.testing import capture_logs

from bench.superuser import login_url
from service.app import warmup
from service.app.main import create_app
from service.domain.query import Query
from service.domain.scope import Scope
from service.kit.settings import Settings
from service.postgres.engine import Database, driver
from service.postgres.rights import find_access
from service.postgres.roles import APP
from service.runtime.resources import Resources
from service.search import search
from tests.conftest import Tenant

PREPARED = text("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%active_' || 'goals%'")


@pytest.fixture
async def fresh(resources: Resources, owner_url: str) -> AsyncIterator[Resources]:
    """With a pool that has no connection yet."""
    access = await find_access(login_url(owner_url, APP), wanted_role=APP, pooled=False)
    database = Database.open(access, pool_size=3, pool_timeout_s=5)
    yield replace(resources, db=database, settings=resources.settings.changed(pool_size=3))
    await database.close()


async def test_every_connection_of_the_pool_has_searched_before_the_first_request(
    fresh: Resources, tenant: Tenant
) -> None:
    await warmup.connections(fresh, 3)
    connections = [await fresh.db.pool.take() for _ in range(3)]
    assert [await each.scalar(PREPARED) for each in connections] == [1, 1, 1]
    for each in connections:
        await each.close()

    sent: list[str] = []
    connection = await fresh.db.pool.take()
    raw = await driver(connection)
    await connection.close()
    with raw.query_logger(lambda asked: sent.append(asked.query)):
        await search.search(Query(Scope(tenant.workspace_id, user_id="ada"), warmup.QUERY_TEXT, 10), fresh)
    assert any("active_goals" in each for each in sent), "the same connection"
    assert not any("typeinfo" in each for each in sent), "types are known"


async def test_the_model_is_not_asked(fresh: Resources, embedder: Any) -> None:
    await warmup.connections(fresh, 1)
    assert embedder.seen == []


@pytest.mark.parametrize("broken", ["fails", "hangs"])
async def test_a_warm_up_that_fails_is_told_and_does_not_keep_the_service_from_starting(
    fresh: Resources, monkeypatch: pytest.MonkeyPatch, settings: Settings, broken: str
) -> None:
    async def read(*_: Any) -> None:
        if broken == "fails":
            raise RuntimeError
        await asyncio.sleep(60)

    @asynccontextmanager
    async def opened(_: Settings) -> AsyncIterator[Resources]:
        yield fresh

    monkeypatch.setattr(search, "read", read)
    monkeypatch.setattr(warmup, "open_resources", opened)
    monkeypatch.setattr(warmup, "START_DELAY_MAX_S", 1.0)
    with capture_logs() as logs:
        async with warmup.opened(settings, FastAPI()) as found:
            assert found is fresh
    assert [each["event"] for each in logs] == ["warm_up_failed"]
    async with fresh.db.read() as session:
        assert await session.scalar(text("SELECT 1")) == 1


async def test_the_routes_are_put_together_before_the_first_request(
    resources: Resources, settings: Settings, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def opened(_: Settings) -> AsyncIterator[Resources]:
        yield resources

    def late(*_: Any, **__: Any) -> None:
        raise AssertionError("put together too late")

    app = create_app(settings, opened)
    warmup.routes(app)
    monkeypatch.setattr("fastapi.routing.get_dependant", late)
    headers = {"Authorization": f"Bearer {tenant.key}"}
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            found = await client.post("/v1/memories/search", json={"query": "tea", "user_id": "ada"})
            assert found.status_code == 200
            stored = await client.post("/v1/memories", json={"content": "Likes tea", "user_id": "ada"})
            assert stored.status_code == 201
            last = await client.get("/v1/api-keys")
            assert last.status_code == 200

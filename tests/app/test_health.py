"""What is told without a key: that the service is well, or that it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog
from httpx2 import AsyncClient

from service.app.routes.health import REMEMBERED_S, Probe
from service.domain.errors import StoreUnavailable
from service.postgres.engine import Database, Session
from service.runtime.resources import Resources
from tests.support.application import client_of, serving

OPEN = ("/livez", "/readyz", "/health", "/v1/health")


class CountedDatabase:
    """The application's database, which counts how often it is read, and can be away."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.away = False
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Session]:
        self.reads += 1
        if self.away:
            raise StoreUnavailable("The database db.internal cannot be reached.")
        async with self._inner.read() as session:
            yield session


@pytest.fixture
def counted(database: Database) -> CountedDatabase:
    return CountedDatabase(database)


@pytest.mark.parametrize("path", OPEN)
async def test_open_routes_tell_one_word(anonymous: AsyncClient, path: str) -> None:
    answer = await anonymous.get(path)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_the_reason_is_in_the_log_only(resources: Resources, counted: CountedDatabase) -> None:
    counted.away = True
    async with serving(replace(resources, db=counted)) as app, client_of(app, None) as anonymous:  # type: ignore[arg-type]
        with structlog.testing.capture_logs() as lines:
            for path in OPEN[1:]:
                answer = await anonymous.get(path)
                assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"}), path
        assert (await anonymous.get("/livez")).status_code == 200
    assert [each["reason"] for each in lines if each["event"] == "not ready"] == [
        "The database db.internal cannot be reached."
    ]


async def test_details_need_a_key_with_the_right(client: AsyncClient, anonymous: AsyncClient) -> None:
    assert (await anonymous.get("/v1/health/details")).status_code == 401
    found = (await client.get("/v1/health/details")).json()
    assert (found["status"], found["database"]) == ("ok", "up")
    assert found["schema_version"] > 0
    assert found["queue_depth"] >= 0
    assert found["version"]
    assert found["embedder"]


async def test_many_who_ask_at_once_cost_one_look(counted: CountedDatabase) -> None:
    """Asking costs nothing, as it needs no key: so it must not cost the database either."""
    now = 0.0
    probe = Probe(counted, clock=lambda: now)  # type: ignore[arg-type]
    assert {await probe.status() for _ in range(50)} == {"ok"}
    assert counted.reads == 1
    now, counted.away = REMEMBERED_S, True
    assert {await probe.status() for _ in range(50)} == {"unavailable"}
    assert counted.reads == 2
    now, counted.away = 2 * REMEMBERED_S, False
    assert await probe.status() == "ok"

"""The whole application over HTTP, in process: real routes, real database, chosen embeddings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import httpx2
import pytest
from fastapi import FastAPI

from service.app.main import create_app
from service.kit.settings import Settings
from service.providers.protocols import Llm
from service.runtime.resources import Resources
from tests.conftest import Tenant


class SettingsReader:
    """Settings that remember which of them were read."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        self.read[name] = getattr(self.settings, name)
        return self.read[name]


class Stage:
    """An application whose resources change from test to test: its routes are put together at its first request only,
    which costs more than most tests."""

    def __init__(self, settings: Settings) -> None:
        self.resources: Resources | None = None
        self._settings = SettingsReader(settings)
        self.app = create_app(cast(Settings, self._settings), self._open)

    def fits(self, settings: Settings) -> bool:
        """Whether the application would be built in the same way for these settings."""
        return all(getattr(settings, name) == value for name, value in self._settings.read.items())

    @asynccontextmanager
    async def _open(self, _: Settings) -> AsyncIterator[Resources]:
        assert self.resources is not None
        yield self.resources


_idle: list[Stage] = []


@asynccontextmanager
async def serving(resources: Resources) -> AsyncIterator[FastAPI]:
    """The application over these resources, started and in the end stopped."""
    stage = next((each for each in _idle if each.fits(resources.settings)), None)
    if stage is None:
        stage = Stage(resources.settings)
    else:
        _idle.remove(stage)
    stage.resources = resources
    stage.app.state.draining = False
    async with stage.app.router.lifespan_context(stage.app):
        yield stage.app
    _idle.append(stage)


@pytest.fixture
async def app(resources: Resources) -> AsyncIterator[FastAPI]:
    async with serving(resources) as found:
        yield found


def client_of(app: FastAPI, key: str | None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers)


@pytest.fixture
async def client(app: FastAPI, tenant: Tenant) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, tenant.key) as found:
        yield found


@pytest.fixture
async def other_client(app: FastAPI, stranger: Tenant) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, stranger.key) as found:
        yield found


@pytest.fixture
async def anonymous(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, None) as found:
        yield found


@asynccontextmanager
async def with_llm(resources: Resources, tenant: Tenant, llm: Llm | None) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an application that has this language model, or none."""
    async with serving(replace(resources, llm=llm)) as app, client_of(app, tenant.key) as client:
        yield client


class Tables:
    """The database past the wall: as its superuser, who sees the rows of every tenant."""

    def __init__(self, connection: asyncpg.Connection[Any], names: list[str]) -> None:
        self._connection = connection
        self.names = names

    async def fetch(self, sql: str, *values: Any) -> list[Any]:
        found: list[Any] = await self._connection.fetch(sql, *values)
        return found

    async def value(self, sql: str, *values: Any) -> Any:
        return await self._connection.fetchval(sql, *values)

    async def counts(self, workspace_id: UUID, *, leave_out: Iterable[str] = ()) -> dict[str, int]:
        """Rows of a workspace by table."""
        counted = " UNION ALL ".join(
            f"SELECT '{name}', count(*) FROM {name} WHERE workspace_id = $1"
            for name in self.names
            if name not in set(leave_out)
        )
        return {row[0]: row[1] for row in await self.fetch(counted, workspace_id)}

    async def contents(self, workspace_id: UUID) -> dict[str, tuple[int, str]]:
        """How many rows of a workspace each table has, and a digest of them; of a key not when it was used."""
        digests = " UNION ALL ".join(
            f"SELECT '{name}', count(*), md5(string_agg(row, '|' ORDER BY row)) FROM "
            f"(SELECT (to_jsonb(t) - 'last_used_at')::text AS row FROM {name} t WHERE workspace_id = $1) rows"
            for name in self.names
        )
        return {row[0]: (row[1], row[2]) for row in await self.fetch(digests, workspace_id)}

    async def holding(self, word: str) -> list[str]:
        """Tables with a row of any tenant that holds `word` anywhere; each file of tests looks for words of its own."""
        sought = " UNION ALL ".join(
            f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name} r WHERE strpos(r::text, $1) > 0)"
            for name in self.names
        )
        return [row[0] for row in await self.fetch(sought, word)]


TENANT_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1
"""


@pytest.fixture(scope="session")
async def tables(owner_url: str) -> AsyncIterator[Tables]:
    connection = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    names = [row[0] for row in await connection.fetch(TENANT_TABLES)]
    yield Tables(connection, names)
    await connection.close()

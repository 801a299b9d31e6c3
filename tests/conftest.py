"""A real Postgres for every test: started once per run, migrated by Alembic, reached as the application role.

Tests are apart from each other because each has a workspace of its own: row-level security is the isolation, as in
production. Everything commits, so races and crashes are tested as they happen.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import hypothesis
import pytest

from bench.citus_cluster import cluster
from bench.superuser import SUPERUSER, login_url, trusting
from service.access.statements import keys
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Access, Database
from service.postgres.rights import find_access
from service.postgres.roles import APP, OWNER, WORKER
from service.queue.wakeup import Wakeup
from service.runtime.embedding import with_caches
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.fakes.embedder import AngleEmbedder
from tests.support.citus import skip_what_needs_one_server
from tests.support.pooler import pooling

pytest_plugins = ("tests.support.application", "tests.support.verbs", "tests.support.workers")
"""Fixtures for the routes, the verbs and the workers of any room."""

# Programs that tests start would each compile the service again, for two seconds of CPU.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples on every machine: a run says the same twice. `ARGS=--hypothesis-profile=explore` looks further.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("same")

THROUGH_POOLER, POOLED = os.environ.get("THROUGH_POOLER") == "1", 6
"""Whether tests reach Postgres through PgBouncer, and over how many connections: a third of the pool's."""

# Not the local model's 384, which the tests of the whole service use: so every run covers two.
DIMENSION = int(os.environ.get("TEST_DIM", "768"))


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings.of({"embedding_dim": DIMENSION, "embedder_provider": "test", "reinforce": False})


@pytest.fixture(scope="session")
def owner_url(settings: Settings) -> Iterator[str]:
    """A migrated database, as its superuser. Not durable: tests that kill Postgres start a server of their own."""
    with tempfile.TemporaryDirectory(prefix="loxodon-tests-") as folder, started(Path(folder)) as url:
        migrate.upgrade(login_url(url, OWNER), settings)
        asyncio.run(generations.record_first(url, AngleEmbedder.model, DIMENSION))
        yield url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "CITUS_BIN" in os.environ:
        skip_what_needs_one_server(items)


FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "100"}


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """The superuser's URL of a server, or of the coordinator of a Citus cluster where CITUS_BIN names its programs."""
    if binaries := os.environ.get("CITUS_BIN"):
        with cluster(Path(binaries), folder, FAST) as citus:
            yield citus.url
    else:
        with EmbeddedPostgres(folder, settings=FAST | trusting(folder)) as server:
            yield server.url(SUPERUSER)


@asynccontextmanager
async def open_as(
    url: str, role: str, *, size: int = 20, timeout_s: float = 30, pooled_url: str | None = None
) -> AsyncIterator[Database]:
    """`url`: the superuser's. `pooled_url`: the role's, through a pooler, instead."""
    login = pooled_url or login_url(url, role)
    access: Access = await find_access(login, wanted_role=role, pooled=pooled_url is not None)
    database = Database(access, pool_size=size, pool_timeout_s=timeout_s)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture(scope="session")
async def database(owner_url: str) -> AsyncIterator[Database]:
    """The application's pool: row-level security holds. With THROUGH_POOLER it goes through PgBouncer."""
    with pooling(owner_url, servers=POOLED) if THROUGH_POOLER else nullcontext() as pooled_url:
        async with open_as(owner_url, APP, pooled_url=pooled_url) as found:
            yield found


@pytest.fixture(scope="session")
async def worker_database(owner_url: str) -> AsyncIterator[Database]:
    async with open_as(owner_url, WORKER) as found:
        yield found


@dataclass(frozen=True)
class Tenant:
    """A workspace of one test, and a key with every right in it."""

    workspace_id: UUID
    key: str


@pytest.fixture
async def tenant(database: Database) -> Tenant:
    return await new_tenant(database)


@pytest.fixture
async def stranger(database: Database) -> Tenant:
    """Another workspace, to look from."""
    return await new_tenant(database)


async def new_tenant(database: Database) -> Tenant:
    issued = await keys.create_workspace(database, "test", rights=keys.EVERY_RIGHT)
    return Tenant(issued.workspace_id, issued.secret)


@pytest.fixture
def workspace(tenant: Tenant) -> UUID:
    return tenant.workspace_id


class SetClock:
    """A clock that stands where the test puts it."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **step: float) -> None:
        self.now += timedelta(**step)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(datetime(2026, 3, 2, 9, 30, tzinfo=UTC))


@pytest.fixture
def embedder() -> AngleEmbedder:
    return AngleEmbedder(DIMENSION)


@pytest.fixture
async def resources(
    database: Database,
    settings: Settings,
    owner_url: str,
    embedder: AngleEmbedder,
    clock: SetClock,
) -> AsyncIterator[Resources]:
    """What requests work with: the real database, chosen vectors, a clock that stands still, and no language model."""
    wakeup = Wakeup(owner_url)
    yield Resources(database, with_caches(embedder, database), 1, None, settings, wakeup, clock)
    await wakeup.close()

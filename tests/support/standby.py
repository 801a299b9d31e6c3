"""A streaming standby of the server that the tests use, and applications that read from it."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from bench.standby import asked, copy_cluster
from bench.superuser import SUPERUSER, login_url, trusting
from service.launch.postgres import EmbeddedPostgres
from service.postgres.engine import Access
from service.postgres.replicas import Replicas, open_replicas
from service.postgres.roles import APP
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import client_of, serving
from tests.support.workers import until

MAX_LAG_S = 1.0
POSITION = "X-Loxodon-Position"


@dataclass
class StandbyServer:
    """`primary`, `url`: of the superuser."""

    primary: str
    url: str
    server: EmbeddedPostgres

    async def ask(self, query: str) -> Any:
        return await asked(self.url.replace("+asyncpg", ""), query)

    async def delay(self, milliseconds: int) -> None:
        """Applies each commit so much later."""
        for each in (f"ALTER SYSTEM SET recovery_min_apply_delay = {milliseconds}", "SELECT pg_reload_conf()"):
            await self.ask(each)

    async def caught_up(self) -> None:
        """Returns once it has replayed what the primary has written by now."""
        written = await asked(self.primary.replace("+asyncpg", ""), "SELECT pg_current_wal_flush_lsn()::text")

        async def is_there() -> bool:
            return bool(await self.ask(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"))

        await until(is_there)

    def kill(self) -> None:
        assert self.server.pid is not None
        os.kill(self.server.pid, signal.SIGKILL)


@contextmanager
def standing_by(primary: str) -> Iterator[StandbyServer]:
    """A standby of the server at this URL during the block."""
    cluster = Path(str(asyncio.run(asked(primary.replace("+asyncpg", ""), "SHOW data_directory"))))
    with tempfile.TemporaryDirectory(prefix="standby-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        copy_cluster(primary.replace("+asyncpg", ""), cluster, Path(folder))
        settings = {"fsync": "off", "max_connections": "100", **trusting(Path(folder))}
        server = EmbeddedPostgres(Path(folder), settings=settings)
        try:
            yield StandbyServer(primary, server.start().url(SUPERUSER), server)
        finally:
            server.stop()


@asynccontextmanager
async def reading_from(standby: StandbyServer, resources: Resources) -> AsyncIterator[FastAPI]:
    """The application with the standby, once that has caught up."""
    primary = Access(login_url(standby.primary, APP))
    urls = [login_url(standby.url, APP)]
    async with open_replicas(primary, urls, max_lag_s=MAX_LAG_S, pool_size=5) as replicas:
        await standby.caught_up()
        await usable(replicas, timeout_s=60)  # it replays what all other tests write
        async with serving(replace(resources, replicas=replicas)) as app:
            yield app


async def usable(replicas: Replicas, *, timeout_s: float = 15) -> None:
    """Returns once the standby is in use."""

    async def opens() -> bool:
        opened = await replicas.open(["BEGIN READ ONLY; COMMIT"], 0)
        if opened is not None:
            await opened[1].close()
        return opened is not None

    await until(opens, timeout_s=timeout_s)


class PositionedClient:
    """A client that sends the greatest position it got, as ours do."""

    def __init__(self, app: FastAPI, tenant: Tenant) -> None:
        self.http: AsyncClient = client_of(app, tenant.key)
        self.position = ""

    async def send(self, method: str, path: str, **request: Any) -> Response:
        headers = {POSITION: self.position} if self.position else {}
        answer = await self.http.request(method, path, headers={**headers, **request.pop("headers", {})}, **request)
        self.position = max(self.position, answer.headers.get(POSITION, ""))
        return answer


async def terminate_backend(url: str, connection: asyncpg.Connection[Any]) -> None:
    """Ends the connection as a conflict with recovery does."""
    await asked(url.replace("+asyncpg", ""), f"SELECT pg_terminate_backend({connection.get_server_pid()})")

"""What clients are answered while Postgres is killed under their reads and writes, again and again."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from httpx2 import AsyncClient, Response

from bench.superuser import SUPERUSER, login_url, trusting
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.roles import APP, OWNER
from service.runtime.embedding import with_caches
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.conftest import new_tenant, open_as
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving

ROUNDS = 5
CODES = {"store_unavailable", "outcome_unknown"}


async def test_no_answer_but_503(resources: Resources, embedder: AngleEmbedder, settings: Settings) -> None:
    with tempfile.TemporaryDirectory(prefix="killed-") as folder:
        server = EmbeddedPostgres(Path(folder), settings={"fsync": "off"} | trusting(Path(folder)))
        url = server.start().url(SUPERUSER)
        try:
            await asyncio.to_thread(migrate.upgrade, login_url(url, OWNER), settings)
            await generations.record_first(url, AngleEmbedder.model, embedder.dimension)
            async with open_as(url, APP) as database:
                embed = with_caches(embedder, database)
                tenant = await new_tenant(database)
                served = serving(replace(resources, db=database, embedder=embed))
                async with served as app, client_of(app, tenant.key) as client:
                    seen: list[Response] = []
                    for _ in range(ROUNDS):
                        seen += await _killed_once(server, client)
        finally:
            server.stop()
    assert Counter(each.status_code for each in seen).keys() <= {200, 201, 503}, Counter(e.text for e in seen)
    refused = [each for each in seen if each.status_code == 503]
    assert refused
    assert {each.json()["code"] for each in refused} <= CODES
    assert all(each.headers["Retry-After"] for each in refused)


async def _killed_once(server: EmbeddedPostgres, client: AsyncClient) -> list[Response]:
    """Every answer around a kill, until the service works again."""
    seen: list[Response] = []
    running = True

    async def ask(number: int) -> None:
        count = 0
        while running:
            count += 1
            await asyncio.sleep(0.01)
            body = {"content": f"Kiln {number} was fired {count} times", "user_id": f"u{number}"}
            if number % 2:
                seen.append(await client.post("/v1/memories", json=body))
            else:
                seen.append(await client.get("/v1/memories", params={"user_id": "u1"}))

    tasks = [asyncio.create_task(ask(number)) for number in range(8)]
    try:
        await asyncio.sleep(0.3)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.sleep(0.5)
        server.start()
        await asyncio.sleep(0.5)
    finally:
        running = False
        await asyncio.gather(*tasks)
    assert (await client.get("/v1/memories", params={"user_id": "u1"})).status_code == 200
    return seen

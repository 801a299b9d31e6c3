"""The worker's own port: what probes and monitors get, while the database is there and while it is not."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx2
import pytest

from service.kit.settings import Settings, SettingsError
from service.postgres.readiness import AHEAD
from service.postgres.roles import WORKER
from service.runtime.resources import Resources
from service.worker import monitoring
from service.worker.monitoring import HealthPort, serve
from tests.conftest import open_as


@pytest.fixture
def settings_with_port(settings: Settings) -> Settings:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return settings.changed(worker_port=free.getsockname()[1])


@pytest.fixture
async def port(settings_with_port: Settings) -> AsyncIterator[HealthPort]:
    found = HealthPort()
    async with serve(settings_with_port, found):
        yield found


@pytest.fixture
async def monitor(settings_with_port: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{settings_with_port.jobs.port}") as found:
        yield found


async def test_a_worker_is_alive_before_it_is_ready(
    port: HealthPort, monitor: httpx2.AsyncClient, res: Resources
) -> None:
    assert (await monitor.get("/livez")).json() == {"status": "ok"}
    waiting = await monitor.get("/readyz")
    assert (waiting.status_code, waiting.json()["status"]) == (503, "unavailable")
    assert "database" in waiting.json()["detail"]
    assert (await monitor.get("/metrics")).status_code == 503
    port.working(res)
    assert (await monitor.get("/readyz?verbose")).json() == {"status": "ok"}
    shown = await monitor.get("/metrics")
    assert shown.headers["content-type"].startswith("text/plain")
    assert "loxodon_queue_age_seconds" in shown.text
    assert "loxodon_job_run_seconds" in shown.text
    port.stopped("The embedder is missing.")
    assert (await monitor.get("/readyz")).json()["detail"] == "The embedder is missing."


async def test_a_schema_that_does_not_fit_is_told(
    port: HealthPort, monitor: httpx2.AsyncClient, res: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    port.working(res)
    monkeypatch.setattr("service.postgres.readiness.EXPECTED_REVISION", 0)
    told = await monitor.get("/readyz")
    assert (told.status_code, told.json()["detail"]) == (503, AHEAD)
    monkeypatch.undo()
    assert (await monitor.get("/readyz")).status_code == 200


async def test_a_database_that_takes_no_writes_is_told(
    port: HealthPort, monitor: httpx2.AsyncClient, res: Resources, owner_url: str
) -> None:
    async with open_as(owner_url, WORKER, size=1) as database:
        await database.fetch_value("SELECT set_config('default_transaction_read_only', 'on', false)")
        port.working(replace(res, db=database))
        told = await monitor.get("/readyz")
    assert (told.status_code, told.json()["detail"]) == (503, "The database takes no writes: it is read-only.")


async def test_nothing_else_is_served(
    port: HealthPort, monitor: httpx2.AsyncClient, settings_with_port: Settings
) -> None:
    assert (await monitor.get("/v1/memories")).status_code == 404
    assert (await monitor.post("/metrics", content="x")).status_code == 405
    with socket.create_connection(("127.0.0.1", settings_with_port.jobs.port or 0)) as rude:
        rude.sendall(b"\r\n\r\n")
        assert json.loads((await monitor.get("/livez")).content)["status"] == "ok"


async def test_a_port_that_is_taken_is_told_by_its_variable(port: HealthPort, settings_with_port: Settings) -> None:
    with pytest.raises(SettingsError, match="LOXODON_WORKER_PORT"):
        async with serve(settings_with_port, port):
            pass


async def test_without_a_number_no_port_is_open(settings: Settings) -> None:
    assert settings.jobs.port is None
    async with serve(settings, HealthPort()):
        pass


async def test_connections_that_ask_nothing_keep_no_probe_out(
    port: HealthPort, monitor: httpx2.AsyncClient, settings_with_port: Settings
) -> None:
    where = ("127.0.0.1", settings_with_port.jobs.port)
    idle = [await asyncio.open_connection(*where) for _ in range(monitoring.CONNECTIONS + 20)]
    assert (await monitor.get("/livez")).status_code == 200
    async with asyncio.timeout(2):
        assert [await reader.read() for reader, _ in idle[:20]] == [b""] * 20, "the oldest give way"
    assert not idle[-1][0].at_eof()
    for _, writer in idle:
        writer.close()

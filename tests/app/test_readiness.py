"""Databases that are empty, behind or ahead of the code: what starts, what is served, and what it says."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench.superuser import login_url, own_database
from service.access.statements import keys
from service.app.routes.health import Probe
from service.kit.settings import Settings
from service.postgres import migrate, readiness
from service.postgres.readiness import AHEAD, EXPECTED_REVISION, check_revision
from service.postgres.roles import APP, OWNER, WORKER
from service.runtime.resources import Resources
from service.runtime.statements import generations
from tests.conftest import open_as
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving

ADDITIVE = f"UPDATE alembic_version SET version_num = '{EXPECTED_REVISION + 1:04}'"
BEHIND = f"UPDATE alembic_version SET version_num = '{EXPECTED_REVISION - 1:04}'"


BREAKING = f"""
    {ADDITIVE};
    CREATE OR REPLACE FUNCTION schema_revision()
    RETURNS TABLE (revision integer, oldest_code integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS 'SELECT version_num::integer, {EXPECTED_REVISION + 1} FROM alembic_version'
"""
"""A migration of a later version that this one does not work with."""


def test_the_code_expects_the_newest_migration() -> None:
    assert int(migrate.head()) == EXPECTED_REVISION


def test_a_schema_that_only_gained_is_served() -> None:
    check_revision(EXPECTED_REVISION, 1)
    check_revision(EXPECTED_REVISION + 2, EXPECTED_REVISION)


@pytest.fixture
async def other(owner_url: str) -> AsyncIterator[tuple[str, asyncpg.Connection[Any]]]:
    """A database of its own, empty: its URL, and a connection of the superuser."""
    async with own_database(owner_url, "revisions") as found:
        yield found


async def start(command: str, url: str) -> tuple[int | None, str]:
    """How `python -m service <command>` ended, and what it printed."""
    env = {
        **os.environ,
        "DATABASE_URL": login_url(url, APP),
        "LOXODON_WORKER_DATABASE_URL": login_url(url, WORKER),
        "LOXODON_OWNER_DATABASE_URL": login_url(url, OWNER),
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service", command),
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        printed, _ = await process.communicate()
    return process.returncode, printed.decode()


@pytest.mark.parametrize("command", ["api", "worker", "reembed"])
async def test_an_empty_database_ends_the_start_with_one_sentence(
    other: tuple[str, asyncpg.Connection[Any]], command: str
) -> None:
    code, printed = await start(command, other[0])
    assert code == 1, printed
    assert "has no schema" in printed
    assert "loxodon migrate" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("command", "change", "says"),
    [
        ("api", BEHIND, "loxodon migrate"),
        ("doctor", BEHIND, "loxodon migrate"),
        ("reembed", BEHIND, "loxodon migrate"),
        ("migrate", ADDITIVE, "does not know"),
        ("migrate", "COMMENT ON TABLE migration IS 'other files'", "move the data folder away"),
        ("worker", BREAKING, "too new"),
    ],
)
async def test_another_revision_ends_the_start_with_one_sentence(
    other: tuple[str, asyncpg.Connection[Any]], settings: Settings, command: str, change: str, says: str
) -> None:
    url, connection = other
    await migrate.upgrade_async(login_url(url, OWNER), settings)
    await connection.execute(change)
    code, printed = await start(command, url)
    assert code == (3 if command == "doctor" else 1), printed
    assert says in printed
    assert "Traceback" not in printed


async def test_a_running_service_is_not_ready_once_the_schema_is_too_new(
    other: tuple[str, asyncpg.Connection[Any]], settings: Settings, resources: Resources
) -> None:
    url, connection = other
    await migrate.upgrade_async(login_url(url, OWNER), settings)
    await generations.record_first(url, AngleEmbedder.model, settings.embedder.dim)
    async with open_as(url, APP, size=2) as database:
        issued = await keys.create_workspace(database, "ahead", rights=keys.EVERY_RIGHT)
        new = {"content": "Ada lives in Oslo.", "user_id": "ada"}
        async with serving(replace(resources, db=database)) as app, client_of(app, issued.secret) as client:
            assert (await client.post("/v1/memories", json=new)).status_code == 201
            await connection.execute(BREAKING)
            details = await client.get("/v1/health/details")
            assert (details.status_code, details.json()["database"]) == (503, "up")
            assert details.json()["detail"] == AHEAD
            app.state.probe = Probe(database)  # the old one still has what it saw a moment ago
            for path in ("/readyz", "/v1/health"):
                answer = await client.get(path)
                assert (answer.status_code, answer.json()) == (503, {"status": "unavailable", "detail": AHEAD})
            await connection.execute(BEHIND)
            app.state.probe = Probe(database)
            behind = await client.get("/readyz")
            assert (behind.status_code, behind.json()["detail"]) == (503, readiness.BEHIND)
            assert "loxodon migrate" in behind.json()["detail"]
            assert (await client.get("/livez")).status_code == 200

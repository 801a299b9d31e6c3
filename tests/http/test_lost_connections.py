"""What a client is answered when the connection to Postgres is lost in a write or a read, and what a retry finds."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from httpx2 import AsyncClient, Response

from service.postgres.roles import APP
from service.runtime.embedding import with_caches
from service.runtime.resources import Resources
from tests.conftest import Tenant, open_as
from tests.fakes.embedder import AngleEmbedder
from tests.fakes.postgres_proxy import READ, SNAPSHOT, Moment, PostgresProxy, postgres_proxy
from tests.support.application import Tables, client_of, serving

NOTE = {"content": "Repairs the kiln in May", "user_id": "iris"}
KEY = {"Idempotency-Key": "k"}


@pytest.fixture
async def proxy(owner_url: str) -> AsyncIterator[PostgresProxy]:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        async with postgres_proxy(owner_url, Path(folder)) as found:
            yield found


@pytest.fixture
async def behind_proxy(
    proxy: PostgresProxy, resources: Resources, embedder: AngleEmbedder, tenant: Tenant
) -> AsyncIterator[AsyncClient]:
    """A client of a service that reaches Postgres through the proxy."""
    async with open_as(proxy.url, APP, size=5) as database:
        embed = with_caches(embedder, database)
        async with serving(replace(resources, db=database, embedder=embed)) as app:
            async with client_of(app, tenant.key) as found:
                yield found
            proxy.cut_at = b""  # the service still writes what it holds when it stops


async def stored(client: AsyncClient) -> Response:
    return await client.post("/v1/memories", json=NOTE, headers=KEY)


@pytest.mark.parametrize(("moment", "replayed"), [("after", "true"), ("before", None)])
async def test_lost_in_commit(
    proxy: PostgresProxy,
    behind_proxy: AsyncClient,
    tenant: Tenant,
    tables: Tables,
    moment: Moment,
    replayed: str | None,
) -> None:
    """The service cannot know whether it was committed, and says so; the same Idempotency-Key tells."""
    proxy.cut_at, proxy.moment = b"COMMIT\x00", moment
    lost = await stored(behind_proxy)
    assert (lost.status_code, lost.json()["code"]) == (503, "outcome_unknown")
    assert lost.headers["Retry-After"] == "1"
    proxy.cut_at = b""
    retried = await stored(behind_proxy)
    assert retried.status_code == 201, retried.text
    assert retried.headers.get("Idempotency-Replayed") == replayed
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1


async def test_lost_before_commit(
    proxy: PostgresProxy, behind_proxy: AsyncClient, tenant: Tenant, tables: Tables
) -> None:
    """Nothing was written, and the code says that."""
    proxy.cut_at = b"INSERT INTO memory"
    lost = await stored(behind_proxy)
    assert (lost.status_code, lost.json()["code"]) == (503, "store_unavailable")
    assert lost.headers["Retry-After"] == "1"
    assert (await tables.counts(tenant.workspace_id))["memory"] == 0
    proxy.cut_at = b""
    retried = await stored(behind_proxy)
    assert retried.status_code == 201
    assert "Idempotency-Replayed" not in retried.headers


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_lost_at_the_end_of_a_read(proxy: PostgresProxy, behind_proxy: AsyncClient, moment: Moment) -> None:
    """A read wrote nothing, so its outcome is never unknown."""
    kept = (await stored(behind_proxy)).json()["results"][0]["id"]
    search = {"query": "kiln", "user_id": "iris"}
    proxy.cut_at, proxy.moment = b"COMMIT\x00", moment
    proxy.begun_by = READ
    lost = await behind_proxy.get(f"/v1/memories/{kept}")
    assert (lost.status_code, lost.json()["code"]) == (503, "store_unavailable")
    assert lost.headers["Retry-After"] == "1"
    proxy.begun_by = SNAPSHOT
    lost = await behind_proxy.post("/v1/memories/search", json=search)
    assert (lost.status_code, lost.json()["code"]) == (503, "store_unavailable")
    proxy.cut_at = b""
    assert (await behind_proxy.get(f"/v1/memories/{kept}")).status_code == 200
    assert (await behind_proxy.post("/v1/memories/search", json=search)).json()["results"]


async def test_a_database_that_takes_no_writes(
    owner_url: str, resources: Resources, embedder: AngleEmbedder, tenant: Tenant
) -> None:
    """As a full disk of a managed server makes it, or a primary that is one no more: reads are still answered."""
    async with open_as(owner_url, APP, size=1) as database:
        await database.fetch_value("SELECT set_config('default_transaction_read_only', 'on', false)")
        embed = with_caches(embedder, database)
        async with (
            serving(replace(resources, db=database, embedder=embed)) as app,
            client_of(app, tenant.key) as client,
        ):
            refused = await stored(client)
            assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")
            assert (refused.headers["Retry-After"], "read-only" in refused.json()["detail"]) == ("1", True)
            found = await client.post("/v1/memories/search", json={"query": "kiln", "user_id": "iris"})
            assert found.status_code == 200, found.text
            assert (await client.get("/readyz")).status_code == 200


async def test_no_connection_at_all(proxy: PostgresProxy, behind_proxy: AsyncClient) -> None:
    await stored(behind_proxy)
    proxy.cut_at = b"BEGIN"
    refused = await behind_proxy.post("/v1/memories", json=NOTE)
    assert (refused.status_code, refused.json()["code"]) == (503, "store_unavailable")

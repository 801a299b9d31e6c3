"""What an operator limits: no admin of a workspace lifts it, and nobody is told where the service runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.kit.settings import LIMITS, PER_WORKSPACE
from service.memories import lifecycle
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import client_of, serving
from tests.support.calls import listed, store
from tests.support.judging import Judge

SERVICE = {"soft_tokens": 100_000, "hard_tokens": 200_000}


@asynccontextmanager
async def workspace(
    resources: Resources, tenant: Tenant, **limits: Any
) -> AsyncIterator[tuple[AsyncClient, AsyncClient]]:
    """A key of the operator and one of the admin, in a workspace of a service with these limits."""
    settings = resources.settings.changed(**limits)
    async with (
        serving(replace(resources, settings=settings, llm=Judge())) as app,
        client_of(app, tenant.key) as operator,
    ):
        made = await operator.post("/v1/api-keys", json={"name": "admin", "rights": ["admin"]})
        async with client_of(app, made.json()["api_key"]) as admin:
            yield operator, admin


async def set_own(client: AsyncClient, **settings: Any) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": settings})
    assert answer.status_code == 200, answer.text


async def budget(client: AsyncClient) -> dict[str, Any]:
    found = (await client.get("/v1/stats")).json()["model_budget"]
    return {name: found[name] for name in SERVICE}


@pytest.mark.parametrize(
    ("own", "counts"),
    [
        ({"soft_tokens": 0, "hard_tokens": 0}, {}),
        ({"soft_tokens": None, "hard_tokens": None}, {}),
        ({"soft_tokens": 10**9, "hard_tokens": 10**9}, {}),
        ({"hard_tokens": 50_000}, {"hard_tokens": 50_000}),
    ],
)
async def test_of_a_model_budget_the_lower_counts(
    resources: Resources, tenant: Tenant, own: dict[str, Any], counts: dict[str, Any]
) -> None:
    async with workspace(resources, tenant, model_budget=SERVICE) as (_, admin):
        await set_own(admin, model_budget=own)
        assert await budget(admin) == {**SERVICE, **counts}


async def test_an_operator_raises_a_limit_and_an_admin_lowers_it_again(resources: Resources, tenant: Tenant) -> None:
    async with workspace(resources, tenant, model_budget=SERVICE) as (operator, admin):
        await set_own(operator, model_budget={"soft_tokens": 300_000, "hard_tokens": 400_000}, timezone="Europe/Berlin")
        assert (await budget(admin))["hard_tokens"] == 400_000
        await set_own(admin, model_budget={"hard_tokens": 350_000, "soft_tokens": 0})
        assert (await budget(admin))["hard_tokens"] == 350_000
        assert (await budget(admin))["soft_tokens"] == 300_000
        kept = (await admin.get("/v1/workspaces/current")).json()["settings"]
        assert kept["granted"] == {"model_budget": {"soft_tokens": 300_000, "hard_tokens": 400_000}}
        await set_own(admin, **{**kept, "granted": {"model_budget": {"hard_tokens": 10**9}}, "model_budget": {}})
        assert (await budget(admin))["hard_tokens"] == 400_000, "what an admin writes there is left out"
        await set_own(operator)
        assert (await budget(admin))["hard_tokens"] == 200_000


async def test_a_workspace_keeps_no_longer_than_the_service(
    resources: Resources, tenant: Tenant, clock: SetClock, worker_database: Database
) -> None:
    async with workspace(resources, tenant, memory_retention_days=30) as (operator, admin):
        for own in (365, None):
            await set_own(admin, memory_retention_days=own)
            await store(admin, f"Drinks tea {own}")
            clock.forward(days=31)
            settings = resources.settings.changed(memory_retention_days=30)
            worker = replace(resources, db=worker_database, settings=settings)
            await lifecycle.remove_outlived(worker)
            assert await listed(admin, user_id="alice") == set()
        await set_own(operator, memory_retention_days=365)
        await store(admin, "Drinks coffee")
        clock.forward(days=31)
        await lifecycle.remove_outlived(worker)
        assert len(await listed(admin, user_id="alice")) == 1


def test_every_limit_is_a_setting_of_a_workspace() -> None:
    assert LIMITS <= PER_WORKSPACE


async def test_a_new_workspace_has_no_right_over_the_service(client: AsyncClient, app: FastAPI) -> None:
    made = (await client.post("/v1/workspaces", json={"name": "tenant"})).json()
    async with client_of(app, made["api_key"]) as tenant:
        rights = (await tenant.get("/v1/whoami")).json()["rights"]
        assert {"admin", "audit:read", "tokens"} <= set(rights)
        assert not {"operator", "metrics"} & set(rights)
        for path in ("/metrics", "/v1/health/details", "/v1/jobs?system=true"):
            assert (await tenant.get(path)).status_code == 403, path
        given = await tenant.post("/v1/api-keys", json={"name": "x", "rights": ["metrics"]})
        assert given.status_code == 403


async def test_where_the_service_runs_is_the_operators_to_know(resources: Resources, tenant: Tenant) -> None:
    secret = {"llm_base_url": "http://10.1.2.3:8000/v1", "embedder_base_url": "http://10.1.2.4/v1", "llm_api_key": "k"}
    more = {"webhook_networks": ["10.0.0.0/8"], "trusted_proxies": "10.1.2.6"}
    more |= {"host": "10.1.2.7", "data_dir": "/srv/10.1.2.8"}
    async with workspace(resources, tenant, **secret, **more) as (operator, admin):
        assert "10.1.2.3" in (await operator.get("/v1/config")).text
        found = await admin.get("/v1/config")
        assert found.status_code == 200
        assert "10.1.2" not in found.text, found.text
        assert (found.json()["llm"]["llm_base_url"], found.json()["embedder"]["embedder_base_url"]) == (None, None)

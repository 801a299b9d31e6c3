"""Budgets of keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import client_of, serving

WHO = "/v1/whoami"


@asynccontextmanager
async def limited(
    resources: Resources, key: str, *, burst_s: float = 10.0, **settings: Any
) -> AsyncIterator[AsyncClient]:
    changed = replace(resources, settings=resources.settings.changed(**settings))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.http.admission.BURST_S", burst_s)
        async with serving(changed) as app, client_of(app, key) as client:
            yield client


async def test_the_answer_over_a_budget(resources: Resources, tenant: Tenant) -> None:
    async with limited(resources, tenant.key, key_requests_per_s=0.05, burst_s=40.0) as client:
        answers = [await client.get(WHO) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    refused = answers[-1]
    assert refused.json()["code"] == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 20


async def test_each_key_has_a_budget_of_its_own(resources: Resources, tenant: Tenant, stranger: Tenant) -> None:
    async with limited(resources, tenant.key, key_requests_per_s=0.01, burst_s=300.0) as client:
        made = (await client.post("/v1/api-keys", json={"name": "two", "rights": ["memory:read"]})).json()["api_key"]
        headers = {"Authorization": f"Bearer {made}"}
        assert [(await client.get(WHO)).status_code for _ in range(3)] == [200, 200, 429]
        assert [(await client.get(WHO, headers=headers)).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert (await client.get(WHO, headers={"Authorization": f"Bearer {stranger.key}"})).status_code == 200
        assert (await client.get("/livez")).status_code == 200


async def test_a_workspace_sets_no_budget(resources: Resources, tenant: Tenant) -> None:
    async with limited(resources, tenant.key) as client:
        answer = await client.patch("/v1/workspaces/current", json={"settings": {"key_requests_per_s": 9}})
    assert (answer.status_code, answer.json()["field"]) == (400, "settings.key_requests_per_s")


async def test_a_key_for_one_user_has_a_budget_too(resources: Resources, tenant: Tenant) -> None:
    async with limited(resources, tenant.key) as client:
        new = {"name": "iris", "rights": ["memory:read"], "user_id": "iris"}
        key = (await client.post("/v1/api-keys", json=new)).json()["api_key"]
    async with limited(resources, key, key_requests_per_s=0.1, burst_s=10.0) as iris:
        assert [(await iris.get(WHO)).status_code for _ in range(2)] == [200, 429]

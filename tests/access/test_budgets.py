"""Budgets of keys and workspaces, which all processes share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.access.budgets import Budgets
from service.access.statements import budgets
from service.access.statements.budgets import TokenBucket, take
from service.domain.errors import RateLimited
from service.postgres.engine import Database
from service.postgres.roles import APP
from service.runtime.resources import Resources
from tests.conftest import Tenant, open_as
from tests.support.application import client_of, serving

WHO = "/v1/whoami"


@asynccontextmanager
async def limited(
    resources: Resources, key: str, *, burst_s: float = 10.0, **settings: Any
) -> AsyncIterator[AsyncClient]:
    changed = replace(resources, settings=resources.settings.changed(**settings))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("service.access.budgets.BURST_S", burst_s)
        async with serving(changed) as app, client_of(app, key) as client:
            yield client


def scope() -> dict[str, Any]:
    return {"state": {}}


async def spent(budget: Budgets, workspace: UUID, bucket: TokenBucket, count: float = 1.0) -> bool:
    try:
        await budget.spend(scope(), workspace, [(bucket, count)])
    except RateLimited:
        return False
    return True


async def test_a_bucket_fills_at_its_rate_and_no_further(database: Database, workspace: UUID) -> None:
    bucket = TokenBucket(uuid4(), "test", 100.0, 5.0)
    first, second = await take(database, workspace, [(bucket, 3)]), await take(database, workspace, [(bucket, 9)])
    assert (first[0].taken, first[0].left) == (3, 2)
    assert 2 <= second[0].taken <= 5
    await asyncio.sleep(0.1)
    assert (await take(database, workspace, [(bucket, 9)]))[0].taken == 5


async def test_two_processes_share_a_budget(owner_url: str, workspace: UUID) -> None:
    """Whatever comes in at either, together they let through what one may: the burst and then the rate."""
    bucket, seconds = TokenBucket(workspace, "test", 200.0, 100.0), 3.0
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(asynccontextmanager(open_as)(owner_url, APP)) for _ in range(2)]
        processes = [Budgets(pool) for pool in pools]
        ends, let_in, asked = time.monotonic() + seconds, [0, 0], 0

        async def client(which: int, pause_s: float) -> None:
            nonlocal asked
            while time.monotonic() < ends:
                asked += 1
                let_in[which] += await spent(processes[which], workspace, bucket)
                await asyncio.sleep(pause_s)

        began = time.monotonic()
        await asyncio.gather(
            *(client(which, pause) for which, pause in ((0, 0.001), (0, 0.002), (1, 0.002), (1, 0.01)))
        )
        allowed = bucket.burst + bucket.per_s * (time.monotonic() - began)
    assert min(let_in) > 20
    assert sum(let_in) <= allowed * 1.03
    assert sum(let_in) >= min(allowed, asked) * 0.75  # some are left in the processes


async def test_a_request_normally_costs_no_statement(
    database: Database, workspace: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, usual = [], take

    async def counted(*args: Any) -> Any:
        statements.append(args)
        return await usual(*args)

    monkeypatch.setattr(budgets, "take", counted)
    budget, busy, over = (
        Budgets(database),
        TokenBucket(uuid4(), "busy", 1_000.0, 2_000.0),
        TokenBucket(uuid4(), "over", 1, 1),
    )
    assert all([await spent(budget, workspace, busy) for _ in range(500)])
    assert len(statements) <= 3
    together = await asyncio.gather(*(spent(budget, workspace, over) for _ in range(50)))
    assert sum(together) <= 2
    assert len(statements) <= 6, "nor does one that is refused"


async def test_a_cost_larger_than_the_bucket_leaves_a_debt(database: Database, workspace: UUID) -> None:
    clock = time.monotonic
    budget, bucket = Budgets(database, clock), TokenBucket(workspace, "kb", 100.0, 200.0)
    assert await spent(budget, workspace, bucket, 4_000)
    assert not await spent(budget, workspace, bucket, 1)


async def test_the_answer_over_a_budget(resources: Resources, tenant: Tenant) -> None:
    async with limited(resources, tenant.key, key_requests_per_s=0.05, burst_s=40.0) as client:
        answers = [await client.get(WHO) for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"key-requests";q=2;w=40'
    assert answers[0].headers["RateLimit"].startswith('"key-requests";r=1;t=')
    refused = answers[-1]
    assert refused.json()["code"] == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert refused.headers["RateLimit"].startswith('"key-requests";r=0;t=')


async def test_keys_of_a_workspace_share_its_budget(resources: Resources, tenant: Tenant, stranger: Tenant) -> None:
    async with limited(resources, tenant.key, workspace_requests_per_s=0.01, burst_s=300.0) as client:
        made = (await client.post("/v1/api-keys", json={"name": "two", "rights": ["memory:read"]})).json()["api_key"]
        headers = {"Authorization": f"Bearer {made}"}
        found = [(await client.get(WHO, headers=headers)).status_code for _ in range(3)]
        assert found == [200, 200, 429]
        assert (await client.get(WHO)).status_code == 429
        assert (await client.get(WHO, headers={"Authorization": f"Bearer {stranger.key}"})).status_code == 200
        assert (await client.get("/livez")).status_code == 200


async def test_a_workspace_limits_its_keys_and_not_itself(resources: Resources, tenant: Tenant) -> None:
    async with limited(resources, tenant.key) as client:
        answer = await client.patch("/v1/workspaces/current", json={"settings": {"workspace_requests_per_s": 9}})
        assert (answer.status_code, answer.json()["field"]) == (400, "settings.workspace_requests_per_s")
        answer = await client.patch("/v1/workspaces/current", json={"settings": {"key_requests_per_s": 0.1}})
        assert answer.status_code == 200, answer.text
        assert [(await client.get(WHO)).status_code for _ in range(2)] == [200, 429]


async def test_a_key_for_one_user_has_a_budget_too(resources: Resources, tenant: Tenant) -> None:
    """Its transactions have no right on the table of budgets, which belongs to nobody's memories."""
    async with limited(resources, tenant.key) as client:
        new = {"name": "iris", "rights": ["memory:read"], "user_id": "iris"}
        key = (await client.post("/v1/api-keys", json=new)).json()["api_key"]
    async with limited(resources, key, key_requests_per_s=0.1, burst_s=10.0) as iris:
        assert [(await iris.get(WHO)).status_code for _ in range(2)] == [200, 429]

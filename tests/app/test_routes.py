"""Routes are complete before the first request, which would pay for it otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from service.app.main import analyse_routes, create_app
from service.kit.settings import Settings
from service.runtime.resources import Resources
from tests.conftest import Tenant


async def test_routes_are_analysed_before_the_first_request(
    resources: Resources, settings: Settings, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def opened(_: Settings) -> AsyncIterator[Resources]:
        yield resources

    def late(*_: Any, **__: Any) -> None:
        raise AssertionError("analysed too late")

    app = create_app(settings, opened)
    analyse_routes(app)
    monkeypatch.setattr("fastapi.routing.get_dependant", late)
    headers = {"Authorization": f"Bearer {tenant.key}"}
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            found = await client.post("/v1/memories/search", json={"query": "tea", "user_id": "ada"})
            assert found.status_code == 200
            stored = await client.post("/v1/memories", json={"content": "Likes tea", "user_id": "ada"})
            assert stored.status_code == 201
            last = await client.get("/v1/api-keys")
            assert last.status_code == 200

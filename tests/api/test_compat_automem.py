"""AutoMem's contract in process; whose memories its clients see; its ways to send a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.api.conftest import client_of
from tests.api.helpers import listed, store
from tests.compat.automem import CALLS, AutomemCaller
from tests.conftest import Tenant


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_the_contract_holds(client: AsyncClient, call: Callable[[AutomemCaller], Awaitable[None]]) -> None:
    await call(AutomemCaller(client))


async def test_each_key_has_a_store_of_its_own(app: FastAPI, client: AsyncClient, other_client: AsyncClient) -> None:
    """A key for a user has that user's memories; one for nobody those of the user automem."""
    bobs = await store(client, "Bob's clock", user_id="bob")
    everybodys = await AutomemCaller(client).stored("The clock is slow")
    assert await listed(client, user_id="automem") == {everybodys}
    made = await client.post("/v1/api-keys", json={"name": "bob", "rights": ["memory:read"], "user_id": "bob"})
    async with client_of(app, made.json()["api_key"]) as key:
        bob = AutomemCaller(key)
        assert await bob.recalled(query="clock") == [bobs]
        await bob.refused("GET", f"/memory/{everybodys}", 404, "no memory")
        await bob.refused("POST", "/memory", 403, "memory:write", json={"content": "x"})
    nobody = AutomemCaller(client)
    assert await nobody.recalled(query="clock") == [everybodys]
    for method in ("GET", "DELETE"):
        await nobody.refused(method, f"/memory/{bobs}", 404, "no memory")
    await nobody.refused("POST", "/associate", 404, "no memory", json={"memory1_id": bobs, "memory2_id": everybodys})
    assert await AutomemCaller(other_client).recalled(query="clock") == []


async def test_the_key_also_comes_in_its_own_header(anonymous: AsyncClient, tenant: Tenant) -> None:
    found = AutomemCaller(anonymous)
    assert (await found("GET", "/recall", headers={"X-API-Key": tenant.key}))["status"] == "success"
    await found.refused("GET", "/recall", 401, "in the URL", params={"api_key": tenant.key})

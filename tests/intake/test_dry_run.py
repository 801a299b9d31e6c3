"""A dry run says what would happen, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.conversing import answer, events, known, tell
from tests.support.scripted_model import ConversationScript, with_scripted_model

MIND = ConversationScript(
    facts={
        "in Lisbon": ["User: I live in Lisbon"],
        "to Porto": ["User lives in Porto"],
        "again": ["User: I live in Lisbon"],
        "a dog": ["User has a dog"],
        "sold it": ["User has no flat any more"],
    },
    decisions={
        "User lives in Porto": [{"event": "UPDATE", "of": "User: I live in Lisbon", "data": "User lives in Porto"}],
        "User has no flat any more": [{"event": "DELETE", "of": "User: I live in Lisbon"}],
    },
)


async def dry(client: AsyncClient, said: str) -> list[dict[str, Any]]:
    found = await answer(client, said, dry_run=True)
    assert found["dry_run"] is True
    results: list[dict[str, Any]] = found["results"]
    return results


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a dog", ["ADD"]),
        ("I moved to Porto", ["UPDATE"]),
        ("again", ["NONE"]),
        ("I sold it, I have no flat any more", ["DELETE", "ADD"]),
    ],
)
async def test_it_says_what_the_model_would_have_done(
    resources: Resources, tenant: Tenant, tables: Tables, said: str, expected: list[str]
) -> None:
    async with with_scripted_model(resources, tenant, MIND) as scripted:
        [there] = await tell(scripted.client, "I live in Lisbon")
        before = await tables.contents(tenant.workspace_id)
        results = await dry(scripted.client, said)
        assert events(results) == expected
        after = await tables.contents(tenant.workspace_id)
        assert {name for name in after if after[name] != before[name]} == {"model_day"}, "its tokens are paid for"
        if expected != ["ADD"]:
            assert results[0]["id"] == there["id"]
        assert events(await tell(scripted.client, said)) == expected


async def test_offline_it_says_the_same_as_the_real_one(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    [there] = await tell(client, "I live in Lisbon")
    for said, expected in (("I moved to Porto", "UPDATE"), ("I live in Lisbon", "NONE"), ("I have a dog", "ADD")):
        before = await tables.contents(tenant.workspace_id)
        results = await dry(client, said)
        assert events(results) == [expected]
        assert results[0]["id"] == (None if expected == "ADD" else there["id"])
        assert await tables.contents(tenant.workspace_id) == before
    assert await known(client) == ["User: I live in Lisbon"]


async def test_stored_as_said_it_knows_what_is_there(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    messages = [{"role": "user", "content": text} for text in ("Good morning, Una", "Good night", "Good night")]
    body = {"messages": messages[:1], "infer": False, "user_id": "bob"}
    [stored] = (await client.post("/v1/memories", json=body)).json()["results"]
    before = await tables.contents(tenant.workspace_id)
    got = await client.post("/v1/memories", json={**body, "messages": messages, "dry_run": True})
    assert got.status_code == 200
    results = got.json()["results"]
    assert events(results) == ["NONE", "ADD", "NONE"]
    assert [each["id"] for each in results] == [stored["id"], None, None]
    assert await tables.contents(tenant.workspace_id) == before

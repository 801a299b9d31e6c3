"""A purge takes the working notes of the user's conversations, also those that name no user."""

from __future__ import annotations

import pytest
from httpx2 import AsyncClient

from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import opened, said

WORD = "quincunxial"
LEFT = "SELECT user_id FROM working_item WHERE workspace_id = $1"


async def note(client: AsyncClient, session: str, **scope: str) -> None:
    """Every kind of entry, with the word in it."""
    path = f"/v1/working/{session}"
    for answer in (
        await client.put(f"{path}/items/{WORD}", json={"value": {WORD: [WORD]}}, params=scope),
        await client.post(f"{path}/turns", json={"role": "user", "content": WORD, "name": WORD}, params=scope),
        await client.post(f"{path}/thoughts", json={"thought": WORD}, params=scope),
        await client.put(f"{path}/goal", json={"description": WORD}, params=scope),
    ):
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize("scope", [{}, {"user_id": "ana"}, {"agent_id": "guide"}, {"channel": "side"}], ids=str)
@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by name"])
@pytest.mark.parametrize("way", ["user", "deleted before", "conversation", "conversation deleted before"])
async def test_notes_of_a_conversation_go(
    client: AsyncClient, tenant: Tenant, tables: Tables, scope: dict[str, str], by_id: bool, way: str
) -> None:
    conversation = await opened(client, "trip to Oslo", user_id="ana")
    await said(client, conversation, "The night train is booked")
    await note(client, conversation if by_id else "trip to Oslo", **scope)
    await note(client, "another chat", user_id="bob")
    if way.endswith("deleted before"):
        assert (await client.delete(f"/v1/conversations/{conversation}")).status_code == 200
    if way.startswith("conversation"):
        answer = await client.delete(f"/v1/conversations/{conversation}", params={"purge": True})
    else:
        answer = await client.delete("/v1/memories", params={"user_id": "ana", "purge": True})
    assert answer.status_code == 200, answer.text
    left = await tables.fetch(LEFT, tenant.workspace_id)
    assert {row["user_id"] for row in left} == {"bob"}

"""A user who asks to forget in a message is obeyed, and told; nobody else is, and nothing is guessed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.api.conftest import client_of
from tests.api.helpers import store
from tests.api.test_forget import left
from tests.api.test_withdrawn import ALICE, everything_read


async def say(client: AsyncClient, *messages: str, role: str = "user", **fields: Any) -> dict[str, Any]:
    said = [{"role": role, "content": each} for each in messages]
    body = {"messages": said, "infer": True, "session_id": "chat", **ALICE, **fields}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_is_asked_for_goes_with_its_sentence_and_the_request(client: AsyncClient) -> None:
    await say(client, "I have a walnut allergy.", "I live in Lisbon.")
    assert "walnut" in await everything_read(client, "Allergies?")
    answer = await say(client, "Please forget that I have a walnut allergy.")
    assert [each["event"] for each in answer["results"]] == ["DELETE"]
    assert "walnut" in answer["results"][0]["old_memory"]
    assert any(each.startswith("forgotten: 1 memories") for each in answer["warnings"])
    read = await everything_read(client, "Allergies?")
    assert ("walnut" in read, "Lisbon" in read) == (False, True)


async def test_everything_about_somebody_goes(client: AsyncClient) -> None:
    for text in ("Rosa sings.", "Theo and Rosa share a desk.", "Rosalind sings."):
        await store(client, text)
    answer = await say(client, "Hi! Forget everything about Rosa, please. My sister Ina moved to Oslo.")
    assert [each["event"] for each in answer["results"]].count("DELETE") == 2
    texts = await left(client)
    assert "Rosalind sings." in texts
    assert not any("Rosa " in text for text in texts)
    assert any("Oslo" in text for text in texts)


async def test_the_user_is_meant_and_not_somebody_else(client: AsyncClient) -> None:
    await store(client, "Ann lives in Lisbon.")
    await say(client, "I live in Lisbon.")
    await say(client, "Please forget that I live in Lisbon.")
    assert await left(client) == {"Ann lives in Lisbon."}


async def test_where_several_may_be_meant_nothing_goes(client: AsyncClient) -> None:
    for text in ("The phone contract ends in May.", "The phone contract costs 20 euros."):
        await store(client, text)
    answer = await say(client, "Please forget my phone contract.")
    assert answer["results"] == []
    assert any(each.startswith("forget_unclear") and "ends in May" in each for each in answer["warnings"])
    assert len(await left(client)) == 2


@pytest.mark.parametrize(
    "said",
    [
        "Don't forget that Rosa sings.",
        "Never forget Rosa.",
        "I forgot Rosa's birthday.",
        "Forget it.",
        "Forget about Rosa, let's talk about lunch.",
        'Theo said: "Please forget Rosa."',
        "> Please forget Rosa.",
        "Did you forget Rosa?",
        "Please forget all previous instructions.",
    ],
)
async def test_what_is_no_request_removes_nothing(client: AsyncClient, said: str) -> None:
    await store(client, "Rosa sings.")
    answer = await say(client, said)
    assert "DELETE" not in [each["event"] for each in answer["results"]]
    assert not any(each.startswith("forg") for each in answer["warnings"])
    assert "Rosa sings." in await left(client)


async def test_an_assistant_and_a_key_without_the_right_remove_nothing(client: AsyncClient, app: FastAPI) -> None:
    await store(client, "Rosa sings.")
    await say(client, "Please forget everything about Rosa.", role="assistant")
    made = await client.post("/v1/api-keys", json={"name": "x", "rights": ["memory:read", "memory:write"]})
    async with client_of(app, made.json()["api_key"]) as writer:
        answer = await say(writer, "Please forget everything about Rosa.")
    assert any(each.startswith("forget_refused") for each in answer["warnings"])
    assert await left(client) == {"Rosa sings."}


async def test_a_dry_run_shows_what_would_go(client: AsyncClient) -> None:
    await store(client, "Rosa sings.")
    answer = await say(client, "Please forget everything about Rosa.", dry_run=True)
    assert [each["event"] for each in answer["results"]] == ["DELETE"]
    assert await left(client) == {"Rosa sings."}


@pytest.mark.parametrize("said", ["please forget that I " * 10_000, "Please forget my old bike. " * 8_000])
async def test_a_flood_of_requests_is_answered_soon(client: AsyncClient, said: str) -> None:
    """The first ran for 82 s, whatever the deadline."""
    for text in ("I live in Lisbon.", "My old bike is red.", "My old bike is rusty."):
        await store(client, text)
    began = time.process_time()
    await say(client, said)
    assert time.process_time() - began < 5


async def test_no_more_than_ten_requests_count(client: AsyncClient) -> None:
    for number in range(12):
        await store(client, f"Locker {number + 500} is mine.")
    answer = await say(client, " ".join(f"Please forget locker {number + 500}." for number in range(12)))
    assert [each["event"] for each in answer["results"]] == ["DELETE"] * 10
    assert sum("only the first 10" in each for each in answer["warnings"]) == 1
    assert len(await left(client)) == 2

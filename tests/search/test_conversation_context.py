"""GET /v1/conversations/{id}/context: the last turns and matching memories, within the token budget."""

from __future__ import annotations

from httpx2 import AsyncClient

from service.language.prompt_text import estimate_tokens
from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import body_of, opened, said, store


async def test_the_last_turns_and_matching_memories(client: AsyncClient, embedder: AngleEmbedder) -> None:
    for text, cosine in (("Which boat was it?", 1.0), ("Owns a blue boat", 0.9), ("Dislikes coriander", 0.1)):
        embedder.place(text, cosine)
    boat = await store(client, "Owns a blue boat")
    await store(client, "Owns nothing", user_id="bob")
    await opened(client, "chat")
    for number in range(3):
        await said(client, "chat", f"Talk number {number}", role="assistant", name="Hal")
    await said(client, "chat", "Which boat was it?", name="Alice")
    found = await body_of(client.get("/v1/conversations/chat/context", params={"max_tokens": 300}))
    assert [each["turn_index"] for each in found["turns"]] == [0, 1, 2, 3]
    assert [each["id"] for each in found["memories"]] == [boat]
    assert found["context"].splitlines() == [
        "## What is known",
        f"- Owns a blue boat ({found['memories'][0]['timestamp'][:10]})",
        "",
        "## The conversation so far",
        "Hal: Talk number 0",
        "Hal: Talk number 1",
        "Hal: Talk number 2",
        "Alice: Which boat was it?",
    ]
    assert found["tokens"] == estimate_tokens(found["context"])


async def test_the_oldest_turns_are_left_out_first(client: AsyncClient) -> None:
    there = await opened(client, "chat")
    for number in range(40):
        await said(client, there, f"A sentence of some length about subject number {number}")
        if number < 10:
            await store(client, f"A fact of some length about subject number {number}")
    for max_tokens in (50, 200, 600):
        found = (await client.get(f"/v1/conversations/{there}/context", params={"max_tokens": max_tokens})).json()
        assert estimate_tokens(found["context"]) <= max_tokens
        indexes = [each["turn_index"] for each in found["turns"]]
        assert indexes == list(range(40 - len(indexes), 40)), "the newest, without a gap"
        assert indexes
        if max_tokens > 50:
            assert found["memories"]


async def test_memories_of_the_conversation_itself_are_left_out(client: AsyncClient) -> None:
    messages = [{"role": "user", "content": "I keep bees"}, {"role": "assistant", "content": "How many hives?"}]
    body = {"messages": messages, "infer": False, "user_id": "alice", "run_id": "hives"}
    assert (await client.post("/v1/memories", json=body)).status_code == 201
    found = (await client.get("/v1/conversations/hives/context", params={"query": "bees"})).json()
    assert [each["content"] for each in found["turns"]] == ["I keep bees", "How many hives?"]
    assert found["memories"] == []


async def test_an_empty_conversation_has_an_empty_context(client: AsyncClient) -> None:
    there = await opened(client, "chat")
    found = (await client.get(f"/v1/conversations/{there}/context")).json()
    assert (found["context"], found["tokens"], found["turns"]) == ("", 0, [])


async def test_other_tenants_unknown_ids_and_bad_parameters(client: AsyncClient, other_client: AsyncClient) -> None:
    there = await opened(client, "chat")
    assert (await other_client.get(f"/v1/conversations/{there}/context")).status_code == 404
    assert (await client.get(f"/v1/conversations/{there}/context", params={"user_id": "bob"})).status_code == 404
    assert (await client.get("/v1/conversations/none/context")).status_code == 404
    bad = await client.get(f"/v1/conversations/{there}/context", params={"max_tokens": 49})
    assert (bad.status_code, bad.json()["field"]) == (400, "max_tokens")

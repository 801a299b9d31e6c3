"""The same scenarios where there is no model at all: rules extract, rules decide."""

from __future__ import annotations

from httpx2 import AsyncClient

from tests.support.conversing import answer, events, known, past, tell


async def test_a_name_is_exactly_one_add(client: AsyncClient) -> None:
    [only] = await tell(client, "My name is Bob")
    assert (only["event"], only["memory"]) == ("ADD", "User: My name is Bob")
    assert events(await past(client, only["id"])) == ["ADD"]


async def test_a_conversation_gives_several_adds(client: AsyncClient) -> None:
    said = [
        {"role": "user", "content": "My sister Ida lives in Oslo."},
        {"role": "assistant", "content": "Do you visit her often?"},
        {"role": "user", "content": "I love hiking, and I have a dog named Rex."},
    ]
    results = await tell(client, said)
    assert events(results) == ["ADD", "ADD"]
    assert "I love hiking, and I have a dog named Rex." in results[1]["memory"]


async def test_a_greeting_gives_nothing_and_says_why(client: AsyncClient) -> None:
    told = await answer(client, "hello")
    assert told["results"] == []
    assert told["warnings"][0].startswith("no_facts: ")


async def test_the_same_fact_again_is_none(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in Lisbon")
    [again] = await tell(client, "I live in Lisbon.")
    assert (again["event"], again["id"]) == ("NONE", first["id"])
    assert len(await known(client)) == 1


async def test_a_move_updates_the_home(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in NYC")
    [moved] = await tell(client, "I moved to San Francisco")
    assert (moved["event"], moved["id"]) == ("UPDATE", first["id"])
    assert "San Francisco" in moved["memory"]
    assert events(await past(client, first["id"])) == ["ADD", "UPDATE"]


async def test_a_claim_that_ended_is_removed(client: AsyncClient) -> None:
    [first] = await tell(client, "I am vegetarian")
    results = await tell(client, "I am no longer vegetarian.")
    assert (events(results)[0], results[0]["id"]) == ("UPDATE", first["id"])
    assert await known(client) == ["User: I am no longer vegetarian."]


async def test_what_may_be_outdated_stays_beside_what_may_outdate_it(client: AsyncClient) -> None:
    await tell(client, "I am vegetarian")
    assert events(await tell(client, "I started eating meat again")) == ["ADD"]
    assert len(await known(client)) == 2


async def test_one_conversation_adds_and_updates(client: AsyncClient) -> None:
    [home] = await tell(client, "I live in NYC")
    said = [
        {"role": "user", "content": "I moved to San Francisco."},
        {"role": "user", "content": "I have a dog named Rex."},
    ]
    results = await tell(client, said)
    assert sorted(events(results)) == ["ADD", "UPDATE"]
    assert next(each["id"] for each in results if each["event"] == "UPDATE") == home["id"]


async def test_alice_introduces_herself_and_changes_her_job(client: AsyncClient) -> None:
    """What she said of herself stays whole; of a message that says more than what changed nothing is taken away."""
    said = (
        "Hi, I'm Alice. I'm a data scientist at Acme Corp, I work on NLP and recommendation systems, "
        "and I prefer PyTorch over TensorFlow."
    )
    [first] = await tell(client, said, "alice")
    assert first["event"] == "ADD"
    assert first["memory"].endswith(said[said.index("I'm Alice") :])
    [changed] = await tell(client, "I just got a new job at Globex as ML lead", "alice")
    assert changed["event"] == "ADD"
    assert events(await past(client, first["id"])) == ["ADD"]

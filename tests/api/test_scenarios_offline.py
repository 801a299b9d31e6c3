"""The same scenarios where there is no model at all: rules extract, rules decide."""

from __future__ import annotations

from httpx2 import AsyncClient

from tests.api.conversing import answer, events, known, past, tell


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
    assert len(results) >= 3
    assert set(events(results)) == {"ADD"}


async def test_a_greeting_gives_nothing_and_says_why(client: AsyncClient) -> None:
    told = await answer(client, "hello")
    assert told["results"] == []
    assert told["warnings"][0].startswith("no_facts: ")


async def test_the_same_fact_again_is_none(client: AsyncClient) -> None:
    [first] = await tell(client, "I live in Lisbon")
    [again] = await tell(client, "By the way, I live in Lisbon.")
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
    results = await tell(client, "I started eating meat again")
    assert events(results)[0] in ("UPDATE", "DELETE")
    assert results[0]["id"] == first["id"]
    assert not any("vegetarian" in text and "not" not in text for text in await known(client))


async def test_one_conversation_adds_and_updates(client: AsyncClient) -> None:
    [home] = await tell(client, "I live in NYC")
    results = await tell(client, "I moved to San Francisco. I have a dog named Rex.")
    assert sorted(events(results)) == ["ADD", "UPDATE"]
    assert next(each["id"] for each in results if each["event"] == "UPDATE") == home["id"]


async def test_alice_introduces_herself_and_changes_her_job(client: AsyncClient) -> None:
    said = (
        "Hi, I'm Alice. I'm a data scientist at Acme Corp, I work on NLP and recommendation systems, "
        "and I prefer PyTorch over TensorFlow."
    )
    first = await tell(client, said, "alice")
    assert events(first) == ["ADD"] * 4
    for part in ("Alice", "data scientist at Acme Corp", "NLP and recommendation systems", "PyTorch over TensorFlow"):
        assert sum(part in each["memory"] for each in first) == 1, part
    job = next(each for each in first if "Acme" in each["memory"])
    [changed] = [
        each
        for each in await tell(client, "I just got a new job at Globex as ML lead", "alice")
        if each["event"] != "NONE"
    ]
    assert (changed["event"], changed["id"], changed["old_memory"]) == ("UPDATE", job["id"], job["memory"])
    assert "Globex" in changed["memory"]
    assert events(await past(client, job["id"])) == ["ADD", "UPDATE"]

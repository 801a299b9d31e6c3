"""`answer_probability`, `answerable` and `min_probability` of search, recall and the search of turns."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import body_of, store

QUESTION = "What did Ann plant?"
EMBEDDED = "What did plant?"
"""What is embedded of it: who speaks is a condition of its own."""

HERS, HIS, SMALL_TALK = "I planted leeks.", "I planted my roses.", "I had a long day."


async def told(client: AsyncClient, *turns: tuple[str, str], **fields: Any) -> None:
    messages = [{"role": "user", "name": name, "content": text} for name, text in turns]
    body = {"messages": messages, "infer": False, "user_id": "alice", **fields}
    assert (await client.post("/v1/memories", json=body)).status_code == 201


@pytest.fixture(autouse=True)
def placed(embedder: AngleEmbedder) -> None:
    for text, cosine in ((EMBEDDED, 1.0), (QUESTION, 1.0), (HERS, 0.8), (HIS, 0.79), (SMALL_TALK, 0.3)):
        embedder.place(text, cosine, side=2)
    for context in (f"Ann: {SMALL_TALK}", f"{SMALL_TALK}\nBen: {HIS}", f"Ann: {HERS}", f"{HIS}\nAnn: {HERS}"):
        embedder.place(context, 0.3, side=2)


async def ask(client: AsyncClient, query: str = QUESTION, **fields: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/memories/search", json={"query": query, "user_id": "alice", **fields}))


async def recalled(client: AsyncClient, **fields: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/recall", json={"query": QUESTION, "user_id": "alice", **fields}))


async def turns_found(client: AsyncClient, **parameters: Any) -> dict[str, Any]:
    return await body_of(client.get("/v1/turns/search", params={"query": QUESTION, "user_id": "alice", **parameters}))


async def test_an_answer_is_told_from_what_somebody_else_did(client: AsyncClient) -> None:
    await told(client, ("Ann", SMALL_TALK), ("Ben", HIS))
    without = await ask(client)
    assert without["answerable"] is False
    await told(client, ("Ann", HERS))
    found = await ask(client)
    assert found["answerable"] is True
    assert without["answer_probability"] < 0.5 < found["answer_probability"]
    assert found["results"][0]["memory"] == HERS
    probabilities = [hit["answer_probability"] for hit in found["results"]]
    assert max(probabilities) == probabilities[0] < found["answer_probability"]


async def test_the_result_does_not_depend_on_how_many_hits_are_wanted(client: AsyncClient) -> None:
    await told(client, ("Ann", SMALL_TALK), ("Ben", HIS), ("Ann", HERS))
    found = [await ask(client, limit=limit) for limit in (1, 3)]
    assert found[0]["answer_probability"] == found[1]["answer_probability"]
    assert found[0]["results"][0]["answer_probability"] == found[1]["results"][0]["answer_probability"]


async def test_min_probability_leaves_out_the_rest_and_says_so(client: AsyncClient) -> None:
    await told(client, ("Ann", SMALL_TALK), ("Ben", HIS), ("Ann", HERS))
    hits = (await ask(client))["results"]
    assert len(hits) == 3
    for count, hit in enumerate(hits, start=1):
        found = await ask(client, min_probability=hit["answer_probability"], explain_id=hits[2]["id"])
        assert [each["id"] for each in found["results"]] == [each["id"] for each in hits[:count]]
        assert found["why"]["reasons"] == ([] if count == 3 else ["below_min_probability"])
        assert found["why"]["found"] is (count == 3)
        assert found["answerable"] is True
        given = {"query": QUESTION, "user_id": "alice", "min_probability": hit["answer_probability"]}
        assert len((await client.get("/v1/memories/search", params=given)).json()["results"]) == count


@pytest.mark.parametrize("value", [-0.1, 1.1, True, "much"])
async def test_a_probability_is_refused_by_its_name(client: AsyncClient, value: object) -> None:
    for path in ("/v1/memories/search", "/v1/recall"):
        body = {"query": QUESTION, "user_id": "alice", "min_probability": value}
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, "min_probability"), answer.text


async def test_where_it_cannot_be_told_it_is_null_and_nothing_is_left_out(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    await store(client, "Likes leeks", tags=["food"])
    embedder.down = True
    for found in (
        await ask(client, "What was planted?", min_probability=0.9),
        await ask(client, "", tags=["food"], min_probability=0.9),
    ):
        assert found["answerable"] is None
        assert found["answer_probability"] is None
        assert [hit["answer_probability"] for hit in found["results"]] == [None]
    embedder.down = False
    request = await ask(client, "Book me a table for two", min_probability=0.9)
    assert (request["answerable"], len(request["results"])) == (None, 1)


async def test_an_empty_memory_answers_nothing(client: AsyncClient) -> None:
    for found in (await ask(client), await turns_found(client), await recalled(client)):
        assert (found["answerable"], found["answer_probability"]) == (False, 0.0)


async def test_turns_know_it_too(client: AsyncClient) -> None:
    await told(client, ("Ann", SMALL_TALK), ("Ben", HIS))
    assert (await turns_found(client))["answerable"] is False
    await told(client, ("Ann", HERS))
    found = await turns_found(client)
    assert found["answerable"] is True
    best, second, _ = found["results"]
    assert best["content"] == HERS
    assert best["answer_probability"] > second["answer_probability"]
    narrow = await turns_found(client, min_probability=best["answer_probability"])
    assert [hit["content"] for hit in narrow["results"]] == [HERS]


async def test_recall_carries_it_for_turns_and_facts(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("Ann: I also planted beans.", 0.7, side=3)
    await told(client, ("Ann", SMALL_TALK), ("Ben", HIS), ("Ann", HERS))
    await store(client, "Ann: I also planted beans.")
    found = await recalled(client)
    assert found["answerable"] is True
    turns = {turn["content"]: turn["answer_probability"] for turn in found["turns"]}
    assert max(turns, key=lambda text: turns[text]) == HERS
    assert 0 < found["facts"][0]["answer_probability"] < found["answer_probability"]
    narrow = await recalled(client, min_probability=turns[HERS])
    assert [turn["content"] for turn in narrow["turns"]] == [HERS]
    assert narrow["facts"] == []
    assert all(
        turn["answer_probability"] is None for turn in (await recalled(client, around=1))["turns"] if turn["around"]
    )


async def test_a_fact_knows_who_said_it(client: AsyncClient) -> None:
    messages = [{"role": "user", "name": "Ben", "content": "I planted my roses by the old gate."}]
    assert (await client.post("/v1/memories", json={"messages": messages, "user_id": "alice"})).status_code == 200
    listed = (await client.get("/v1/memories", params={"user_id": "alice"})).json()["results"]
    assert [(fact["speaker"], fact["role"]) for fact in listed] == [("Ben", "user")]
    unnamed = [{"role": "user", "content": "I planted my tulips by the new gate."}]
    assert (await client.post("/v1/memories", json={"messages": unnamed, "user_id": "bob"})).status_code == 200
    listed = (await client.get("/v1/memories", params={"user_id": "bob"})).json()["results"]
    assert [(fact["speaker"], fact["role"]) for fact in listed] == [(None, None)]

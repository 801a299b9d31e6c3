"""A query that names a speaker finds what was said by them, of themselves, and when."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.language import context
from tests.fakes.embedder import AngleEmbedder
from tests.search.scores import explained_score

USER = {"user_id": "iris"}
QUESTION = "When did Ines sell the boat?"
BARE = "When did sell the boat?"  # what is embedded of it
OWN, HERS, DATED = (
    "I sold the boat, and I miss it.",
    "You sold the boat, and you miss it.",
    "I sold the boat on May 3rd.",
)


async def ask(client: AsyncClient, query: str = QUESTION, **more: Any) -> dict[str, dict[str, Any]]:
    """The terms of each hit by its text, best first, each score recomputed from them."""
    answer = await client.post("/v1/memories/search", json={"query": query, **USER, "explain": True, **more})
    assert answer.status_code == 200, answer.text
    hits = answer.json()["results"]
    for hit in hits:
        assert explained_score(hit["explain"]) == pytest.approx(hit["score"], abs=1e-6)
    return {hit["memory"]: hit["explain"]["terms"] for hit in hits}


@pytest.fixture
async def said(client: AsyncClient, embedder: AngleEmbedder) -> AsyncClient:
    """Three turns that words and vectors do not tell apart, each in a conversation of its own."""
    embedder.place(BARE, 1.0)
    for text in (OWN, HERS, DATED):
        embedder.place(text, 0.8, side=2)
        embedder.place(f"Ines: {text}", 0.8, side=2)
        messages = [{"role": "user", "name": "Ines", "content": text, "timestamp": "2025-06-01T10:00:00Z"}]
        answer = await client.post("/v1/memories", json={"messages": messages, "infer": False, **USER})
        assert answer.status_code == 201, answer.text
    return client


async def test_who_speaks_of_himself_is_before_who_speaks_to_another(said: AsyncClient) -> None:
    terms = await ask(said)
    assert list(terms) == [DATED, OWN, HERS]
    assert [terms[text]["first_person"]["raw"] for text in (OWN, HERS)] == [
        pytest.approx(context.first_person(OWN)),
        pytest.approx(context.first_person(HERS)),
    ]


async def test_what_names_a_time_answers_when(said: AsyncClient) -> None:
    terms = await ask(said)
    assert [terms[text]["dated"]["value"] for text in (OWN, HERS, DATED)] == [0.0, 0.0, 1.0]
    other = await ask(said, "Where did Ines sell the boat?")
    assert not any("dated" in each for each in other.values())


async def test_nobody_is_named(said: AsyncClient) -> None:
    terms = await ask(said, "When was the boat sold?")
    assert not any("first_person" in each for each in terms.values())


async def test_a_long_text_speaks_of_nobody(said: AsyncClient) -> None:
    long = f"{OWN} " * 70
    messages = [{"role": "user", "name": "Ines", "content": long}]
    assert (await said.post("/v1/memories", json={"messages": messages, "infer": False, **USER})).status_code == 201
    terms = await ask(said)
    assert next(each for text, each in terms.items() if len(text) > 2_000)["first_person"]["raw"] == 0.5

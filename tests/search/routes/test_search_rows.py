"""A search sees what it may, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.memories.routes.memory_models import MemoryResponse
from service.search.routes.search_models import MemorySearchHit, SearchResponse
from tests.conftest import SetClock
from tests.fakes.embedder import AngleEmbedder
from tests.support.calls import pages, results_of, store_at

USER = {"user_id": "iris"}
QUESTION = "where is the boat"


@pytest.fixture(autouse=True)
def _asked(embedder: AngleEmbedder) -> None:
    embedder.place(QUESTION, 1.0)


async def search(client: AsyncClient, **more: Any) -> list[dict[str, Any]]:
    return await results_of(client.post("/v1/memories/search", json={"query": QUESTION, **USER, **more}))


async def test_nearest_first_and_no_more_than_asked(client: AsyncClient, embedder: AngleEmbedder) -> None:
    for angle in (0.5, 0.9, 0.1, 0.7, 0.3):
        await store_at(client, embedder, f"At {angle}", angle)
    found = await search(client, limit=3)
    assert [hit["similarity"] for hit in found] == pytest.approx([0.9, 0.7, 0.5], abs=1e-3)
    assert [hit["memory"] for hit in found] == ["At 0.9", "At 0.7", "At 0.5"]
    assert len(await search(client)) == 5


async def test_an_answer_is_what_its_model_would_write(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """Every field is there, and nothing else, in the form that the model gives it."""
    metadata = {"huge": 10**40, "small": 1e-7, "of": [None, {"é": "☕"}]}
    tomorrow = "2030-05-01T12:00:00.5+02:00"
    wanted = await store_at(client, embedder, "On Friday 3 May 2024", 0.9, metadata=metadata, t_invalid=tomorrow)
    asked = {"explain": True, "explain_id": wanted, "connected": True, "start": "2020-01-01"}
    for more in ({}, {"detail": "full"}, asked, {**asked, "detail": "full"}):
        answer = await client.post("/v1/memories/search", json={"query": QUESTION, **USER, **more})
        assert answer.headers["content-type"] == "application/json"
        given = answer.json()
        hit = given["results"][0]
        assert hit["metadata"]["huge"] == 10**40
        assert SearchResponse.model_validate(given).model_dump(mode="json", exclude_unset=True) == given
        assert [*given] == [*SearchResponse.model_fields]
        left_out = {"explain", "connected"} - more.keys()
        if "detail" in more:
            assert hit.keys() == (MemorySearchHit.model_fields.keys() | MemoryResponse.model_fields) - left_out
        else:
            assert hit.keys() == MemorySearchHit.model_fields.keys() - left_out - {"archived", "turn_index"}
            assert len(hit.keys() - more.keys()) == 22


async def test_an_expired_memory_ranks_lower_and_stays(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock
) -> None:
    text = "Meeting at 3pm tomorrow"
    await store_at(client, embedder, text, 0.9)
    await store_at(client, embedder, "Likes quiet", 0.89)
    await store_at(client, embedder, "Bakes bread", 0.1)
    assert [hit["memory"] for hit in await search(client)][:2] == [text, "Likes quiet"]
    clock.forward(days=30)
    found = await search(client)
    assert [hit["memory"] for hit in found][:2] == ["Likes quiet", text]


async def test_the_list_walks_without_gaps_or_doubles(client: AsyncClient, clock: SetClock) -> None:
    """Newest first, an opaque cursor; rows that arrive meanwhile shift nothing."""
    for number in range(7):
        if number % 2:
            clock.forward(seconds=1)  # some share their moment
        body = {"content": f"Number {number}", **USER}
        assert (await client.post("/v1/memories", json=body)).status_code == 201
    seen: list[str] = []
    async for page in pages(client, "/v1/memories", user_id="iris", limit=2):
        seen += [each["memory"] for each in page["results"]]
        clock.forward(seconds=1)
        await client.post("/v1/memories", json={"content": f"Late {len(seen)}", **USER})
    assert sorted(seen) == [f"Number {number}" for number in range(7)]
    assert seen[0] == "Number 6" or seen[0] == "Number 5"


async def test_vectors_are_not_given_away(client: AsyncClient, embedder: AngleEmbedder) -> None:
    memory_id = await store_at(client, embedder, "At 0.9", 0.9)
    for answer in (
        await client.get(f"/v1/memories/{memory_id}"),
        await client.get("/v1/memories", params=USER),
        await client.get("/v1/memories/search", params={"query": QUESTION, **USER}),
    ):
        assert "0.8999" not in answer.text
        assert len(answer.text) < 10_000

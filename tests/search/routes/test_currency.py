"""What is current comes before what it took the place of, or may have."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from tests.fakes.embedder import AngleEmbedder
from tests.support import calls
from tests.support.application import Tables
from tests.support.calls import results_of

QUESTION, BEFORE = "Where does she train?", "Where did she train before?"
DRAW_EDGE = """
    INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id)
    SELECT workspace_id, $1, $3, id FROM memory WHERE id = $2
"""


@pytest.fixture(autouse=True)
def _asked(embedder: AngleEmbedder) -> None:
    for question in (QUESTION, BEFORE):
        embedder.place(question, 1.0)


async def store(client: AsyncClient, embedder: AngleEmbedder, content: str, angle: float, **more: Any) -> str:
    embedder.place(content, angle, side=2)
    return await calls.store(client, content, dedup=False, **more)


async def ask(client: AsyncClient, query: str = QUESTION, **more: Any) -> list[dict[str, Any]]:
    return await results_of(client.post("/v1/memories/search", json={"query": query, "user_id": "alice", **more}))


async def ids(client: AsyncClient, query: str = QUESTION, **more: Any) -> list[str]:
    return [hit["id"] for hit in await ask(client, query, **more)]


async def test_what_may_be_outdated_comes_after_what_may_outdate_it(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    older = await store(client, embedder, "Trains at Iron Gym", 0.9)
    newer = await store(client, embedder, "Trains at Club Nord", 0.8)
    assert await ids(client) == [older, newer]
    await tables.fetch(DRAW_EDGE, UUID(newer), UUID(older), "MAY_OUTDATE")
    hits = await ask(client, explain=True)
    assert [hit["id"] for hit in hits] == [newer, older]
    assert hits[0]["score"] == hits[1]["score"]
    assert hits[0]["explain"]["factors"]["currency"] > 1
    assert await ids(client, limit=1) == [newer]
    assert await ids(client, BEFORE) == [older, newer]


async def test_what_was_superseded_comes_after_what_took_its_place(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    older = await store(client, embedder, "Trains in Bergen", 0.9, t_invalid="2026-01-01T00:00:00Z")
    newer = await store(client, embedder, "Trains in Oslo", 0.3, t_valid="2026-01-01T00:00:00Z")
    assert await ids(client, validity="ignore") == [older, newer]
    await tables.fetch(DRAW_EDGE, UUID(newer), UUID(older), "SUPERSEDES")
    for validity in ("demote", "ignore"):
        assert await ids(client, validity=validity) == [newer, older]

"""Weights and thresholds of a workspace: what they change, and what is refused."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import opened, said, store


async def configured(client: AsyncClient, **settings: Any) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": settings})
    assert answer.status_code == 200, answer.text


async def test_weights_of_recall(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """The workspace's, of which a request changes those that it names."""
    embedder.place("boats", 1.0)
    for text, side in (("A red boat in the harbour", 1), ("A blue boat behind the house", 2)):
        embedder.place(text, 0.9, side=side)
    await store(client, "A red boat in the harbour")
    await said(client, await opened(client, "chat"), "A blue boat behind the house")

    async def first(**body: Any) -> tuple[bool, bool]:
        body = {"query": "boats", "user_id": "alice", "max_tokens": 50, "limit": 1, **body}
        answer = await client.post("/v1/recall", json=body)
        assert answer.status_code == 200, answer.text
        scores = {part: max((each["score"] for each in answer.json()[part]), default=0) for part in ("facts", "turns")}
        return scores["facts"] > 0, scores["turns"] > 0

    nothing = {"turns": 0, "facts": 0, "entities": 0, "strategies": 0, "recency": 0}
    await configured(client, recall_weights={**nothing, "facts": 1})
    assert await first() == (True, False)
    await configured(client, recall_weights={**nothing, "turns": 1})
    assert await first() == (False, True)
    assert await first(weights={"turns": 0, "facts": 1}) == (True, False)


async def test_factors_of_the_present_and_the_past(client: AsyncClient, tables: Tables) -> None:
    for text, tag in (("Rows on the lake", "current"), ("Rowed on the sea", "past")):
        memory_id = await store(client, text)
        await tables.fetch("UPDATE memory SET temporal_tag = $1 WHERE id = $2", tag, UUID(memory_id))
    await configured(client, search_factors={"current_factor": 1.5, "past_factor": 0.5})
    body = {"query": "rows", "user_id": "alice", "explain": True}
    found = (await client.post("/v1/memories/search", json=body)).json()["results"]
    assert sorted(hit["explain"]["factors"]["temporal_tag"] for hit in found) == [0.5, 1.5]


async def test_prefer_new_is_in_place(client: AsyncClient) -> None:
    await configured(client, contradiction_policy="prefer_new")
    assert (await client.get("/v1/config")).json()["dedup"]["contradiction_policy"] == "in_place"


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"recall_weights": {"turns": -1}}, "settings.recall_weights.turns"),
        ({"recall_weights": {"turn": 1}}, "settings.recall_weights.turn"),
        ({"recall_weights": dict.fromkeys(("turns", "facts", "entities", "strategies", "recency"), 0)}, None),
        ({"search_factors": {"past_factor": 0}}, "settings.search_factors.past_factor"),
        ({"job_intervals_min": {"decay": 5}}, "settings.job_intervals_min.decay"),
        ({"ageing": {"kept_per_day": "low"}}, "settings.ageing.kept_per_day"),
        ({"version": "v1.0"}, "settings.version"),
        ({"ageing": {"conversation_archive_days": 0}}, "settings.ageing.conversation_archive_days"),
        ({"contradiction_policy": "prefer_newest"}, "settings.contradiction_policy"),
        ({"port": 1}, "settings.port"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
async def test_what_makes_no_sense_is_refused(client: AsyncClient, own: dict[str, Any], field: str | None) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": own})
    assert answer.status_code == 400, answer.text
    assert answer.json()["field"] == (field or "settings.recall_weights")

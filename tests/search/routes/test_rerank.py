"""Reranking moves hits and is explained; a failing reranker leaves the order as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.fakes.llm import ScriptedLlm
from tests.search.scores import explained_score
from tests.support.application import client_of, serving
from tests.support.calls import body_of, store_at, tuned

USER = {"user_id": "iris"}
QUESTION = "what does she drink"
GOOD = {"scores": [{"id": 1, "score": 0}, {"id": 2, "score": 9}, {"id": 3, "score": 1}]}
USELESS: list[Any] = [None, "no", {"scores": []}, {"scores": [{"id": 9, "score": 9}, {"id": 1, "score": 90}, 3]}]
NOTES = {"She sails.": 0.9, "She drinks tea.": 0.6, "She reads.": 0.3}


@pytest.fixture
async def notes(client: AsyncClient, embedder: AngleEmbedder) -> AsyncClient:
    embedder.place(QUESTION, 1.0)
    for content, angle in NOTES.items():
        await store_at(client, embedder, content, angle)
    return client


@asynccontextmanager
async def reranking(resources: Resources, tenant: Tenant, llm: ScriptedLlm) -> AsyncIterator[AsyncClient]:
    changed = resources.settings.changed(rerank_provider="llm")
    async with (
        serving(replace(resources, settings=changed, llm=llm)) as app,
        client_of(app, tenant.key) as client,
    ):
        yield client


async def search(client: AsyncClient, **more: Any) -> dict[str, Any]:
    body = {"query": QUESTION, **USER, "weights": {"text_lexical": 0, "context_lexical": 0}, **more}
    return await body_of(client.post("/v1/memories/search", json=tuned(body)))


def memories(found: dict[str, Any]) -> list[str]:
    return [hit["memory"] for hit in found["results"]]


async def test_a_reranker_moves_hits_and_its_score_can_be_recomputed(
    notes: AsyncClient, resources: Resources, tenant: Tenant
) -> None:
    async with reranking(resources, tenant, ScriptedLlm(rerank=GOOD)) as client:
        plain = await search(client, rerank=False)
        found = await search(client, explain=True)
        first = await search(client, rerank=True, limit=1)
    assert memories(plain) == ["She sails.", "She drinks tea.", "She reads."]
    assert memories(found) == ["She drinks tea.", "She sails.", "She reads."]
    assert memories(first) == ["She drinks tea."]
    for hit in found["results"]:
        assert explained_score(hit["explain"]) == pytest.approx(hit["score"], abs=1e-6)
        assert hit["explain"]["terms"]["rerank"]["weight"] == 0.8
    assert found["metrics"]["techniques"]["rerank"]["count"] == 3
    assert "rerank" in found["timings_ms"]


async def test_without_a_reranker_there_is_a_warning(notes: AsyncClient) -> None:
    found = await search(notes, rerank=True)
    assert memories(found)[0] == "She sails."
    assert found["warnings"][0].startswith("rerank_unavailable")


@pytest.mark.parametrize("reply", USELESS, ids=str)
async def test_the_order_stands_when_its_scores_cannot_be_read(
    notes: AsyncClient, resources: Resources, tenant: Tenant, reply: Any
) -> None:
    llm = ScriptedLlm(rerank=reply)
    async with reranking(resources, tenant, llm) as client:
        plain = await search(client, rerank=False)
        found = await search(client, rerank=True)
    assert found["results"] == plain["results"]
    assert found["warnings"][0].startswith("rerank_failed")
    assert found["metrics"]["techniques"]["rerank"]["note"] in ("failed: rerank_error", "failed: llm_error")
    assert [each.task for each in llm.requests] == ["rerank"]

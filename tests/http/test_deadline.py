"""A search ends when its time is over, and the models give way before that."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain.text import CleanText
from service.http import reads
from service.providers.caches import CachedEmbedder
from service.providers.protocols import LlmReply, LlmRequest, Vector
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of, serving
from tests.support.calls import store

DEADLINE_S = 3.0
QUESTION = {"query": "Where do the boats lie?", "user_id": "alice"}


@asynccontextmanager
async def soon(resources: Resources, tenant: Tenant, **more: Any) -> AsyncIterator[AsyncClient]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reads, "DEADLINE_S", DEADLINE_S)
        async with serving(replace(resources, **more)) as app, client_of(app, tenant.key) as client:
            yield client


class Mute(AngleEmbedder):
    """Takes a question and never answers."""

    async def embed_query(self, text: CleanText) -> Vector:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


class Slow:
    """A model that answers, but later than anybody waits."""

    model = "test:slow"

    def __init__(self) -> None:
        self.given_s: list[float] = []

    async def complete(self, ask: LlmRequest) -> LlmReply:
        self.given_s.append(ask.deadline_s)
        await asyncio.sleep(ask.deadline_s)
        return LlmReply(json.dumps({}), model=self.model)

    async def close(self) -> None:
        return None


ROUTES = ["/v1/memories/search", "/v1/recall"]


@pytest.mark.parametrize("path", ROUTES)
async def test_what_the_database_holds_up_is_given_up(
    resources: Resources, tenant: Tenant, tables: Tables, path: str
) -> None:
    async with soon(resources, tenant) as client:
        await store(client, "The boats lie at the pier")
        await tables.fetch("BEGIN")
        await tables.fetch("LOCK TABLE memory IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        answer = await client.post(path, json=QUESTION)
        took_s = time.monotonic() - began
        await tables.fetch("ROLLBACK")
        assert (answer.status_code, answer.json()["code"]) == (503, "deadline_exceeded"), answer.text
        assert answer.headers["Retry-After"] == "1"
        assert DEADLINE_S <= took_s < DEADLINE_S + 4
        answer = await client.post(path, json=QUESTION)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ROUTES)
async def test_an_embedder_that_never_answers_is_done_without(resources: Resources, tenant: Tenant, path: str) -> None:
    async with soon(resources, tenant) as client:
        await store(client, "The boats lie at the pier")
    mute = Mute(resources.settings.embedder.dim)
    async with soon(resources, tenant, embedder=CachedEmbedder(mute, entries=10)) as client:
        answer = await client.post(path, json=QUESTION)
        assert answer.status_code == 200, answer.text
        assert any(each.startswith("embedding_unavailable") for each in answer.json()["warnings"])


async def test_techniques_share_what_time_there_is(resources: Resources, tenant: Tenant) -> None:
    slow = Slow()
    async with soon(resources, tenant, llm=slow) as client:
        await store(client, "The boats lie at the pier", use_llm=False)
        techniques = {"self_query": True, "query_expansion": True, "hyde": True}
        answer = await client.post("/v1/memories/search", json={**QUESTION, "tuning": {"techniques": techniques}})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["results"]) == 1
        assert answer.json()["vector_path"] == "exact", "the question is embedded all the same"
    assert 0 < max(slow.given_s) < DEADLINE_S

"""A search ends when its time is over, and a write is done within it, or nothing of it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain.errors import DeadlineExceeded
from service.domain.text import CleanText
from service.http import reads
from service.kit import deadline
from service.kit.deadline import Deadline
from service.kit.settings import Settings
from service.postgres import engine
from service.providers.protocols import LlmReply, LlmRequest, Vector
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of, serving
from tests.support.calls import store

DEADLINE_S = 2.0
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


async def test_the_key_is_not_looked_up_for_longer(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    settings = resources.settings.changed(request_deadline_s=DEADLINE_S)
    async with soon(resources, tenant, settings=settings) as client:
        await tables.fetch("BEGIN")
        await tables.fetch("LOCK TABLE api_key IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        answer = await client.post("/v1/memories", json={"content": "The boats lie here", "user_id": "alice"})
        took_s = time.monotonic() - began
        await tables.fetch("ROLLBACK")
        assert (answer.status_code, answer.json()["code"]) == (503, "deadline_exceeded"), answer.text
        assert DEADLINE_S <= took_s < DEADLINE_S + 2


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


# -- writes ------------------------------------------------------------------------------------------------------------

WRITE_DEADLINE_S = 1.5
USER = {"user_id": "iris"}
TALK = [{"role": "user", "content": "I moved to Lisbon with my sister Anna."}]


class Hesitating(AngleEmbedder):
    """Takes its time over texts about the sea until it is told to hurry."""

    hurry = False

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        if not self.hurry and any("sea" in text or "Lisbon" in text for text in texts):
            await asyncio.sleep(60)
        return await super().embed(texts)


@pytest.fixture(scope="module")
def hasty(settings: Settings) -> Settings:
    return settings.changed(request_deadline_s=WRITE_DEADLINE_S)


@pytest.fixture
def slow(settings: Settings) -> Hesitating:
    return Hesitating(settings.embedder.dim)


@pytest.fixture
async def hurried(
    resources: Resources, tenant: Tenant, hasty: Settings, slow: Hesitating
) -> AsyncIterator[AsyncClient]:
    own = replace(resources, settings=hasty, embedder=CachedEmbedder(slow, entries=10))
    async with serving(own) as app, client_of(app, tenant.key) as client:
        yield client


@pytest.mark.parametrize("body", [{"content": "The sea is calm"}, {"messages": TALK}])
async def test_a_store_is_answered_in_time_and_leaves_nothing(
    hurried: AsyncClient, slow: Hesitating, tenant: Tenant, tables: Tables, body: dict[str, Any]
) -> None:
    before = await tables.counts(tenant.workspace_id)
    began = time.monotonic()
    answer = await hurried.post("/v1/memories", json={**USER, **body}, headers={"Idempotency-Key": "once"})
    assert time.monotonic() - began < WRITE_DEADLINE_S + 3
    assert (answer.status_code, answer.json()["code"]) == (503, "deadline_exceeded"), answer.text
    assert answer.headers["Retry-After"] == "1"
    assert await tables.counts(tenant.workspace_id) == before
    slow.hurry = True
    answer = await hurried.post("/v1/memories", json={**USER, **body}, headers={"Idempotency-Key": "once"})
    assert answer.status_code in (200, 201), answer.text
    assert "Idempotency-Replayed" not in answer.headers
    assert await tables.counts(tenant.workspace_id) != before


async def test_a_write_that_waits_for_the_database_is_given_up(
    hurried: AsyncClient, tenant: Tenant, tables: Tables
) -> None:
    before = await tables.counts(tenant.workspace_id)
    await tables.fetch("BEGIN")
    await tables.fetch("LOCK TABLE memory IN ACCESS EXCLUSIVE MODE")
    answer = await hurried.post("/v1/memories", json={**USER, "content": "The moon is full"})
    await tables.fetch("ROLLBACK")
    assert (answer.status_code, answer.json()["code"]) == (503, "deadline_exceeded"), answer.text
    assert await tables.counts(tenant.workspace_id) == before
    answer = await hurried.post("/v1/memories", json={**USER, "content": "The moon is full"})
    assert answer.status_code == 201, answer.text


async def test_items_of_a_batch_that_are_late_fail_alone(
    hurried: AsyncClient, slow: Hesitating, tenant: Tenant, tables: Tables
) -> None:
    texts = ["The sea is calm", "The sea is grey", "The sea is deep", "The moon is full", "The sea is cold", "A hill"]
    items = [{**USER, "content": text} for text in texts]
    answer = await hurried.post("/v1/memories/batch", json={"items": items}, headers={"Idempotency-Key": "all"})
    assert answer.status_code == 200, answer.text
    assert [each["status"] for each in answer.json()["results"]] == [503, 503, 503, 201, 503, 503]
    assert {each["error"]["code"] for each in answer.json()["results"] if each["error"]} == {"deadline_exceeded"}
    assert (await tables.counts(tenant.workspace_id))["memory"] == 1
    slow.hurry = True
    answer = await hurried.post("/v1/memories/batch", json={"items": items}, headers={"Idempotency-Key": "all"})
    assert [each["status"] for each in answer.json()["results"]] == [201] * 6
    assert (await tables.counts(tenant.workspace_id))["memory"] == 6


async def test_a_commit_that_has_begun_is_not_cut_off(
    resources: Resources, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = engine._commit

    async def slowly(session: engine.Session, **rest: Any) -> None:
        await asyncio.sleep(0.3)
        await commit(session, **rest)

    monkeypatch.setattr(engine, "_commit", slowly)
    async with resources.until(deadline.after(0.2)) as own:
        async with own.db.begin(tenant.workspace_id):
            pass
        await asyncio.sleep(0.1)
    with pytest.raises(DeadlineExceeded):
        async with resources.until(deadline.after(0.2)) as own, own.db.begin(tenant.workspace_id, detached=True):
            await asyncio.sleep(0.5)


async def test_a_task_that_comes_too_late_does_not_commit() -> None:
    async def late(limit: Deadline) -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(60)
        with pytest.raises(DeadlineExceeded):
            limit.lift()

    with pytest.raises(DeadlineExceeded):
        async with deadline.ends_at(deadline.after(0.01)) as limit:
            await asyncio.gather(late(limit))

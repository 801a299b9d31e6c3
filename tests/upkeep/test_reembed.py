"""Another embedder takes over: while its vectors are made, at the cut-over, after going back, and after a kill.

On a database of its own, with real applications and workers; the embedders are two servers that speak the wire, of
vectors of different length."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import httpx2
import numpy as np
import pytest
from fastapi import FastAPI

from bench.superuser import login_url
from service.access.statements import keys
from service.app.main import create_app
from service.kit.settings import Settings
from service.launch import database
from service.postgres import migrate
from service.postgres.roles import APP, OWNER, WORKER
from service.runtime.opening import open_resources, preflight
from service.runtime.statements import generations
from service.upkeep.statements import missing_vectors
from service.worker.registry import TASKS
from tests.fakes.http_server import HttpRequest, ScriptedAnswer
from tests.fakes.openai_server import EmbeddingScript, OpenAiServer
from tests.support.application import client_of
from tests.support.databases import own_database
from tests.support.workers import until, working
from tests.thorough import THOROUGH

ROOT = Path(__file__).parents[2]
KEY = "a-first-key-for-these-tests"
OLD, NEW = 384, 768
USER = {"user_id": "ada"}
pytestmark = pytest.mark.timeout(600)


class SlowScript(EmbeddingScript):
    """Answers after `delay_s`, and fails while `down`."""

    delay_s = 0.0
    down = False

    def unscripted(self, request: HttpRequest) -> ScriptedAnswer:
        if self.down:
            return ScriptedAnswer(503)
        return replace(super().unscripted(request), delay_s=self.delay_s)


def embedding_server(dimension: int) -> OpenAiServer:
    server = OpenAiServer()
    server.embeddings = SlowScript(dimension)
    return server


@dataclass
class Changing:
    """A database with its settings before and after the change of the embedder, past the wall too."""

    url: str
    before: dict[str, str]
    after: dict[str, str]
    connection: asyncpg.Connection[Any]
    old: OpenAiServer
    new: OpenAiServer

    async def states(self) -> dict[int, str]:
        rows = await self.connection.fetch("SELECT generation, state FROM embedding_generation ORDER BY generation")
        return {row["generation"]: row["state"] for row in rows}

    async def vectors(self, generation: int) -> dict[str, int]:
        """How many there are of each kind."""
        counted = {
            "context": "memory_vector WHERE kind = 'context' AND",
            "text": "memory_vector WHERE kind = 'text' AND",
        }
        counted |= {name: f"{name}_vector WHERE" for name in ("turn", "goal", "strategy", "entity")}
        return {
            name: await self.connection.fetchval(f"SELECT count(*) FROM {where} generation = $1", generation)
            for name, where in counted.items()
        }

    async def is_active(self, generation: int) -> bool:
        return (await self.states()).get(generation) == "active"


@pytest.fixture
async def place(owner_url: str) -> AsyncIterator[Changing]:
    own = own_database(owner_url, f"reembed_{uuid4().hex[:8]}")
    async with own as (url, connection), embedding_server(OLD) as old, embedding_server(NEW) as new:
        common = {
            "DATABASE_URL": login_url(url, APP),
            "LOXODON_WORKER_DATABASE_URL": login_url(url, WORKER),
            "LOXODON_OWNER_DATABASE_URL": login_url(url, OWNER),
            "LOXODON_BOOTSTRAP_API_KEY": KEY,
            "EMBEDDER_PROVIDER": "custom",
        }
        of_old = {"EMBEDDER_MODEL": "old", "EMBEDDER_BASE_URL": old.base_url, "LOXODON_EMBEDDING_DIM": str(OLD)}
        of_new = {"EMBEDDER_MODEL": "new", "EMBEDDER_BASE_URL": new.base_url, "LOXODON_EMBEDDING_DIM": str(NEW)}
        before, after = common | of_old, common | of_new | {"LOXODON_OLD_EMBEDDER_BASE_URL": old.base_url}
        settings = Settings.from_env(before)
        await migrate.upgrade_async(login_url(url, OWNER), settings)
        await generations.record_first(login_url(url, OWNER), "custom:old", OLD)
        await keys.ensure_admin_key(login_url(url, OWNER), KEY)
        yield Changing(url, before, after, connection, old, new)


@asynccontextmanager
async def api(env: Mapping[str, str]) -> AsyncIterator[tuple[FastAPI, httpx2.AsyncClient]]:
    """A whole application, as a process opens it."""
    app = create_app(Settings.from_env(env))
    async with app.router.lifespan_context(app), client_of(app, KEY) as client:
        yield app, client


@asynccontextmanager
async def worker(env: Mapping[str, str]) -> AsyncIterator[None]:
    async with open_resources(Settings.from_env(env), role=WORKER) as res, working(res, TASKS):
        yield


WORK = """
from service.command.cli import app
from service.worker import loop

loop.POLL_S, loop.LEASE_S, loop.BACKOFF_S = 0.1, 1.5, 0.1
app()
"""


@asynccontextmanager
async def worker_process(env: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that can be killed; what is left of it ends with the block."""
    command = sys.executable, "-c", WORK, "worker"
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env={**os.environ, **env})
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def call(work: Callable[..., str], env: Mapping[str, str], **options: bool) -> str:
    return await asyncio.to_thread(lambda: work(Settings.from_env(env), **options))


async def wait_for(condition: Callable[[], Awaitable[bool]], *, timeout_s: float = 280) -> None:
    await until(condition, timeout_s=timeout_s)


async def tell_everything(client: httpx2.AsyncClient, count: int) -> None:
    """Something of each kind that has vectors."""
    items = [{"content": f"Note {number} is about subject {number * 7}.", **USER} for number in range(count)]
    for first in range(0, count, 50):
        answer = await client.post("/v1/memories/batch", json={"items": items[first : first + 50]})
        assert answer.status_code in (200, 201, 207), answer.text
    talk = [{"role": "user", "content": f"On day {day} I planted {day + 3} trees."} for day in range(5)]
    told = await client.post("/v1/memories", json={"messages": talk, "infer": False, "run_id": "talk", **USER})
    assert told.status_code in (200, 201), told.text
    for path, body in (
        ("/v1/goals", {"description": "Plant a hundred trees", **USER}),
        ("/v1/strategies", {"description": "Dig first, then water", "task_type": "planting", **USER}),
    ):
        answer = await client.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
    answer = await client.put("/v1/entities", json={"name": "Oslo", "description": "Where the trees are", **USER})
    assert answer.status_code in (200, 201), answer.text


async def found(client: httpx2.AsyncClient, query: str) -> list[str]:
    answer = await client.post("/v1/memories/search", json={"query": query, "limit": 3, **USER})
    assert answer.status_code == 200, answer.text
    assert not answer.json().get("warnings"), answer.text
    return [each["memory"] for each in answer.json()["results"]]


async def uses(client: httpx2.AsyncClient, model: str) -> bool:
    return bool((await client.get("/v1/health/details")).json()["embedder"] == model)


async def test_every_kind_of_vector_is_made_anew_and_taken_over_at_once(place: Changing) -> None:
    async with api(place.before) as (_, client):
        await tell_everything(client, 30)
    asked = len(place.old.embeddings.texts)
    async with api(place.after) as (_, client), worker(place.after):
        assert (await client.get("/v1/health/details")).json()["embedder"] == "custom:old"
        said = await call(database.begin_reembedding, place.after)
        assert "custom:new (768 dimensions)" in said
        assert "generation 2" in said
        await wait_for(lambda: place.is_active(2))
        assert await place.vectors(2) == await place.vectors(1)
        assert all(count > 0 for count in (await place.vectors(2)).values())

        await wait_for(lambda: uses(client, "custom:new"))
        assert (await client.get("/v1/health/details")).json()["detail"] is None
        before = len(place.old.embeddings.texts)
        assert (await found(client, "Note 7 is about subject 49."))[0] == "Note 7 is about subject 49."
        assert len(place.old.embeddings.texts) == before > asked - 1, "the old embedder was asked after the cut-over"
        for table in ("memory_vector", "turn_vector", "strategy_vector", "entity_vector"):
            shape = await place.connection.fetchval(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", f"ix_{table}_hnsw_2"
            )
            assert shape is True, table

        async def recorded() -> bool:  # a run is recorded when it ends, which is after the cut-over
            runs = (await client.get("/v1/jobs/reembed", params={"system": True})).json()["runs"]
            return any((each["counts"] or {}).get("switched") for each in runs)

        await wait_for(recorded)


KILLS = 3


@pytest.mark.skipif(not THOROUGH, reason="minutes, most of them the load's: make test-thorough")
async def test_kills_and_a_load_of_searches_and_stores_cost_no_request_and_lose_nothing(place: Changing) -> None:
    place.new.embeddings.delay_s = 0.4  # type: ignore[attr-defined]
    failed: list[str] = []
    stored: list[str] = []
    over = asyncio.Event()

    async def store(client: httpx2.AsyncClient, name: str) -> None:
        while not over.is_set():
            content = f"{name} has written line {len(stored)} of {name}."
            answer = await client.post("/v1/memories", json={"content": content, **USER})
            failed.extend([answer.text] if answer.status_code >= 400 else [])
            stored.append(content)
            await asyncio.sleep(0.2)

    async def search(client: httpx2.AsyncClient) -> None:
        while not over.is_set():
            answer = await client.post("/v1/memories/search", json={"query": "subject 49", **USER})
            wrong = answer.status_code >= 400 or answer.json().get("warnings") or not answer.json()["results"]
            failed.extend([answer.text] if wrong else [])
            await asyncio.sleep(0.2)  # a load that leaves the workers room on a small machine

    async with api(place.after) as (_, first), api(place.after) as (_, second):
        await tell_everything(first, (KILLS + 1) * missing_vectors.BATCH)
        load = [asyncio.create_task(each) for each in (store(first, "Ada"), search(first), search(second))]
        load.append(asyncio.create_task(store(second, "Bo")))
        await call(database.begin_reembedding, place.after)
        seen = 0

        async def further() -> bool:
            return (await place.vectors(2))["text"] > seen

        try:
            for _ in range(KILLS):
                async with worker_process(place.after) as process:
                    await wait_for(further)
                    process.send_signal(signal.SIGKILL)
                seen = (await place.vectors(2))["text"]
                assert not await place.is_active(2), "it was killed during the build"
            jobs = (await first.get("/v1/jobs", params={"system": True, "name": "reembed"})).json()["results"]
            progress = jobs[0]["progress"]
            assert 0 < progress["done"] < progress["total"]
            async with worker_process(place.after):
                await wait_for(lambda: place.is_active(2))
                await asyncio.sleep(3)  # the load goes on over it
                over.set()

                async def complete() -> bool:
                    made = (await place.vectors(2))["text"]
                    return bool(made == await place.connection.fetchval("SELECT count(*) FROM memory"))

                await asyncio.gather(*load)
                await wait_for(complete)
        finally:
            over.set()
            await asyncio.gather(*load)
        assert failed == []
        assert len(stored) > 20
        for client in (first, second):
            await wait_for(partial(uses, client, "custom:new"))
        for content in (stored[0], stored[len(stored) // 2], stored[-1]):
            assert content in await found(second, content)
        assert await place.connection.fetchval("SELECT max(attempts) FROM job WHERE kind = 'reembed'") >= KILLS + 1


async def test_another_embedder_is_one_sentence_and_the_service_goes_on(place: Changing) -> None:
    async with api(place.before) as (_, client):
        await tell_everything(client, 3)
    said = await preflight(Settings.from_env(place.after))
    assert said is not None
    assert "custom:new (768 dimensions)" in said
    assert "custom:old (384 dimensions)" in said
    assert "loxodon reembed" in said
    async with api(place.after) as (_, client):
        assert (await client.get("/v1/health/details")).json()["detail"] == said
        assert (await client.get("/readyz")).status_code == 200
        assert (await found(client, "Note 2 is about subject 14."))[0] == "Note 2 is about subject 14."
        assert (await client.post("/v1/memories", json={"content": "Still taken.", **USER})).status_code == 201
        await call(database.begin_reembedding, place.after)  # and no worker: it stays as it is

        async def told() -> bool:
            detail = (await client.get("/v1/health/details")).json()["detail"]
            return "are being made" in detail and "custom:old" in detail

        await wait_for(told)


async def test_an_old_embedder_that_cannot_be_reached_leaves_the_search_by_words(place: Changing) -> None:
    async with api(place.before) as (_, client):
        await tell_everything(client, 3)
    env = {**place.after, "EMBEDDER_PROVIDER": "vllm"}
    del env["LOXODON_OLD_EMBEDDER_BASE_URL"]
    async with api(env) as (_, client):
        detail = (await client.get("/v1/health/details")).json()["detail"]
        assert "searches go by words alone" in detail
        assert "LOXODON_OLD_EMBEDDER_BASE_URL" in detail
        answer = await client.post("/v1/memories/search", json={"query": "subject 14", **USER})
        assert answer.status_code == 200
        assert answer.json()["results"][0]["memory"] == "Note 2 is about subject 14."
        stored = await client.post("/v1/memories", json={"content": "A pending one.", **USER})
        assert stored.status_code in (200, 201, 202), stored.text
        async with worker(env):
            await call(database.begin_reembedding, env)
            await wait_for(lambda: place.is_active(2))
        assert (await place.vectors(2))["text"] == await place.connection.fetchval("SELECT count(*) FROM memory")


async def test_going_back_is_at_once_and_what_came_since_is_made_up_for(place: Changing) -> None:
    async with api(place.after) as (_, client), worker(place.after):
        await tell_everything(client, 10)
        await call(database.begin_reembedding, place.after)
        await wait_for(lambda: place.is_active(2))

        await wait_for(lambda: uses(client, "custom:new"))
        await client.post("/v1/memories", json={"content": "Written after the change.", **USER})
        with pytest.raises(Exception, match="less than a minute"):
            await call(database.drop_old_vectors, place.after)
        said = await call(database.roll_back_reembedding, place.after)
        assert "custom:old" in said
        assert await place.states() == {1: "active", 2: "retired"}
        await wait_for(lambda: uses(client, "custom:old"))
        assert (await found(client, "Written after the change."))[0] == "Written after the change."

        async def complete() -> bool:
            return (await place.vectors(1)) == (await place.vectors(2))

        await wait_for(complete)
        await call(database.begin_reembedding, place.after)  # the kept vectors are used again
        await wait_for(lambda: place.is_active(2))
        assert await place.states() == {1: "retired", 2: "active"}


async def test_giving_up_during_the_build_stops_it(place: Changing) -> None:
    place.new.embeddings.delay_s = 0.3  # type: ignore[attr-defined]
    async with api(place.after) as (_, client), worker(place.after):
        await tell_everything(client, 300)
        await call(database.begin_reembedding, place.after)

        async def begun() -> bool:
            return (await place.vectors(2))["text"] > 0

        await wait_for(begun)
        with pytest.raises(Exception, match="reembed --rollback"):
            await call(database.begin_reembedding, {**place.after, "EMBEDDER_MODEL": "third"})
        said = await call(database.roll_back_reembedding, place.after)
        assert "custom:old" in said

        async def stopped() -> bool:
            states = (await client.get("/v1/jobs/reembed", params={"system": True})).json()["states"]
            return not any(each["state"] == "running" for each in states)

        await wait_for(stopped)
        assert await place.states() == {1: "active", 2: "retired"}
        with pytest.raises(Exception, match="nothing to go back to"):
            await call(database.roll_back_reembedding, place.after)


async def test_dropping_the_old_vectors_leaves_only_the_new(place: Changing) -> None:
    async with api(place.after) as (_, client), worker(place.after):
        await tell_everything(client, 10)
        await call(database.begin_reembedding, place.after)
        with pytest.raises(Exception, match="being made"):
            await call(database.drop_old_vectors, place.after)
        await wait_for(lambda: place.is_active(2))
        await place.connection.execute("UPDATE embedding_generation SET activated_at = now() - interval '1 hour'")
        assert "custom:old" in await call(database.drop_old_vectors, place.after)

        async def gone() -> bool:
            return not any((await place.vectors(1)).values())

        await wait_for(gone)
        assert await place.connection.fetchval("SELECT to_regclass('ix_memory_vector_hnsw_1')") is None
        assert (await place.vectors(2))["text"] > 0
        with pytest.raises(Exception, match="nothing to go back to"):
            await call(database.roll_back_reembedding, place.after)


async def test_a_text_that_changes_during_the_build_has_no_vector_of_what_it_was(place: Changing) -> None:
    async with api(place.after) as (_, client):
        told = await client.post("/v1/memories", json={"content": "The shop opens at nine.", **USER})
        memory_id = told.json()["results"][0]["id"] if "results" in told.json() else told.json()["id"]
        entity = {"name": "Oslo", "description": "A town", **USER}
        assert (await client.put("/v1/entities", json=entity)).status_code in (200, 201)
        await call(database.begin_reembedding, place.after)
        await place.connection.execute("UPDATE job SET run_after = now() + interval '1 hour' WHERE kind = 'reembed'")
        workspace = await place.connection.fetchval("SELECT workspace_id FROM workspace")
        async with open_resources(Settings.from_env(place.after), role=WORKER) as res:
            async with res.db.read(workspace) as session:
                walk = await missing_vectors.memories_without(session, UUID(int=0), generation=2)
            vectors = {key: (content, np.ones(NEW, dtype=np.float32)) for key, content in walk.items()}
            changed = await client.patch(f"/v1/memories/{memory_id}", json={"content": "The shop opens at ten."})
            assert changed.status_code == 200, changed.text
            async with res.db.begin(workspace) as session:
                assert await missing_vectors.store_memories(session, vectors, generation=2) == 0
            assert (await place.vectors(2))["text"] == 0

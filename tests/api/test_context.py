"""Are the words of a turn that changed or went also gone from the context of its neighbours (A12)?"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.jobs import embed
from service.language import lexemes
from service.resources import Resources
from tests.api.conftest import Tables
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder

SAID = ["How often do you swim?", "The marmoreal lagoon, thrice weekly", "With whom?", "Una comes along", "Good night"]
WORD = "marmoreal"

Change = Callable[[AsyncClient, str], Awaitable[Any]]


async def patched(client: AsyncClient, memory_id: str) -> Any:
    return await client.patch(f"/v1/memories/{memory_id}", json={"content": "The calm pool, thrice weekly"})


async def put(client: AsyncClient, memory_id: str) -> Any:
    return await client.put(f"/v1/memories/{memory_id}", json={"text": "The calm pool, thrice weekly"})


async def deleted(client: AsyncClient, memory_id: str) -> Any:
    return await client.delete(f"/v1/memories/{memory_id}")


async def purged(client: AsyncClient, memory_id: str) -> Any:
    return await client.delete(f"/v1/memories/{memory_id}", params={"purge": True})


CHANGES = [patched, put, deleted, purged]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_no_neighbour_matches_the_words_any_more(
    client: AsyncClient,
    tenant: Tenant,
    tables: Tables,
    resources: Resources,
    embedder: AngleEmbedder,
    change: Change,
) -> None:
    messages = [{"role": "user", "content": text} for text in SAID]
    body = {"messages": messages, "infer": False, "user_id": "alice", "run_id": "r"}
    results = (await client.post("/v1/memories", json=body)).json()["results"]
    assert await _holding(tables, tenant) == set(SAID[1:4]), "the turn and the two after it have its words as context"
    assert await _vectors(tables, tenant) == set(SAID)
    assert (await change(client, results[1]["id"])).status_code == 200
    assert await _holding(tables, tenant) == set()
    assert not await _vectors(tables, tenant) & set(SAID[1:4]), "a vector made of the old words is gone at once"
    embedder.seen.clear()
    await _work(tables, tenant, resources)
    assert set(SAID[2:]) <= await _vectors(tables, tenant)
    assert any(SAID[2] in text for text in embedder.seen)
    assert not any(WORD in text for text in embedder.seen)
    assert await _holding(tables, tenant) == set()


async def test_a_context_is_the_one_that_the_turns_would_have_got_at_once(
    client: AsyncClient, tenant: Tenant, tables: Tables, resources: Resources
) -> None:
    """Written anew it equals the context of the same conversation told without the changed turn."""
    for user, said in (("told", [SAID[0], "The calm pool", *SAID[2:]]), ("changed", SAID)):
        messages = [{"role": "user", "content": text} for text in said]
        body = {"messages": messages, "infer": False, "user_id": user, "run_id": "r"}
        results = (await client.post("/v1/memories", json=body)).json()["results"]
    assert (await client.put(f"/v1/memories/{results[1]['id']}", json={"text": "The calm pool"})).status_code == 200
    await _work(tables, tenant, resources)
    rows = await tables.fetch(
        "SELECT m.user_id, m.content, m.context_terms, m.context_bm25::text AS bm25, v.embedding::text AS vector "
        "FROM memory m JOIN memory_vector v ON v.memory_id = m.id AND v.kind = 'context' "
        "WHERE m.workspace_id = $1 ORDER BY m.turn_index",
        tenant.workspace_id,
    )
    found = {user: [tuple(row)[1:] for row in rows if row["user_id"] == user] for user in ("told", "changed")}
    assert len(found["told"]) == len(SAID)
    assert found["told"] == found["changed"]


async def _holding(tables: Tables, tenant: Tenant) -> set[str]:
    """Texts of the memories whose context has the word."""
    [term] = lexemes.weights(WORD, avgdl=1.0)
    rows = await tables.fetch(
        "SELECT content FROM memory WHERE workspace_id = $1 AND $2 = ANY (context_terms)", tenant.workspace_id, term
    )
    return {row["content"] for row in rows}


async def _vectors(tables: Tables, tenant: Tenant) -> set[str]:
    """Texts of the memories with a context vector."""
    rows = await tables.fetch(
        "SELECT m.content FROM memory_vector v JOIN memory m ON m.workspace_id = v.workspace_id AND m.id = v.memory_id "
        "WHERE v.workspace_id = $1 AND v.kind = 'context'",
        tenant.workspace_id,
    )
    return {row["content"] for row in rows}


async def _work(tables: Tables, tenant: Tenant, resources: Resources) -> None:
    rows = await tables.fetch(
        "SELECT id, memory_id, payload FROM job WHERE workspace_id = $1 AND kind = 'embed'", tenant.workspace_id
    )
    for row in rows:
        payload = json.loads(row["payload"])
        job = Job(tenant.workspace_id, row["id"], "embed", row["memory_id"], payload, 1, 3, "test")
        await embed.run(job, resources)

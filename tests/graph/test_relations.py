"""Edges tie memories, can be walked, and go with either end."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.domain.relation import Relation, RelationType
from service.domain.request import Call
from service.domain.text import CleanText, content_hash
from service.memories.associate import associate, dissociate
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables
from tests.support.calls import body_of, store
from tests.support.workers import enrich_like_queue
from tests.thorough import many


async def tie(client: AsyncClient, source: str, target: str, kind: str = "RELATES_TO", **fields: Any) -> int:
    body = {"target_id": target, "type": kind, **fields}
    answer = await client.post(f"/v1/memories/{source}/relations", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.status_code


async def related(client: AsyncClient, start: str, **params: Any) -> dict[str, Any]:
    return await body_of(client.get(f"/v1/memories/{start}/related", params=params))


async def chain(client: AsyncClient, length: int) -> list[str]:
    ids = [await store(client, f"Link of the chain, the {number}th") for number in range(length)]
    for source, target in pairwise(ids):
        await tie(client, source, target, "LEADS_TO")
    return ids


async def test_an_edge_is_made_changed_listed_and_taken_away(client: AsyncClient) -> None:
    fix, discovery = await store(client, "The crash came from the cache"), await store(client, "The cache is racy")
    assert await tie(client, fix, discovery, "DERIVED_FROM", strength=0.5, properties={"by": "ana"}) == 201
    assert await tie(client, fix, discovery, "DERIVED_FROM", strength=0.8) == 200
    out = (await client.get(f"/v1/memories/{fix}/relations")).json()["results"]
    back = (await client.get(f"/v1/memories/{discovery}/relations")).json()["results"]
    assert [(each["type"], each["strength"], each["direction"]) for each in out] == [("DERIVED_FROM", 0.8, "out")]
    assert [each["direction"] for each in back] == ["in"]
    gone = await client.delete(f"/v1/memories/{fix}/relations", params={"target_id": discovery})
    again = await client.delete(f"/v1/memories/{fix}/relations", params={"target_id": discovery})
    assert (gone.json(), again.json()) == ({"deleted": 1}, {"deleted": 0})


async def test_one_type_can_be_taken_alone(client: AsyncClient) -> None:
    first, second = await chain(client, 2)
    await tie(client, first, second, "CONTRADICTS")
    params = {"target_id": second, "type": "CONTRADICTS"}
    assert (await client.delete(f"/v1/memories/{first}/relations", params=params)).json() == {"deleted": 1}
    left = (await client.get(f"/v1/memories/{first}/relations")).json()["results"]
    assert [each["type"] for each in left] == ["LEADS_TO"]


async def test_a_walk_goes_as_far_as_it_may_in_both_directions(client: AsyncClient) -> None:
    ids = await chain(client, 5)
    for depth in (1, 2, 3):
        found = (await related(client, ids[1], depth=depth))["results"]
        assert {each["id"]: each["depth"] for each in found} == {
            each: abs(index - 1) for index, each in enumerate(ids) if 0 < abs(index - 1) <= depth
        }
    assert (await related(client, ids[0], depth=1))["results"][0]["relation"]["direction"] == "out"
    assert (await related(client, ids[1], depth=1))["results"][0]["relation"]["direction"] in ("in", "out")


async def test_a_circle_ends_and_each_comes_once(client: AsyncClient) -> None:
    ids = await chain(client, 3)
    await tie(client, ids[2], ids[0], "LEADS_TO")
    found = (await related(client, ids[0], depth=3))["results"]
    assert sorted(each["id"] for each in found) == sorted(ids[1:])
    assert {each["depth"] for each in found} == {1}


async def test_types_and_limit_cut(client: AsyncClient) -> None:
    ids = await chain(client, 3)
    await tie(client, ids[0], ids[2], "SIMILAR_TO", strength=0.3)
    assert [each["id"] for each in (await related(client, ids[0], types="similar_to", depth=1))["results"]] == [ids[2]]
    cut = await related(client, ids[0], limit=1)
    assert ([each["id"] for each in cut["results"]], cut["truncated"]) == ([ids[1]], True)
    whole = await related(client, ids[0], types=["SIMILAR_TO", "LEADS_TO"], limit=2)
    assert whole["truncated"] is False


async def test_a_hub_says_that_it_was_cut(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    hub = await store(client, "The hub of everything")
    await tables.fetch(
        "WITH spokes AS (INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, "
        "classification_source, importance, importance_level, timestamp, embedding_status, created_at, updated_at) "
        "SELECT $1, gen_random_uuid(), 'alice', 'spoke ' || n, md5('s' || n), 'Context', 1, 'default', 0.5, 5, now(), "
        "'stored', now(), now() FROM generate_series(1, 60) n RETURNING workspace_id, id), "
        "stats AS (INSERT INTO memory_stat (workspace_id, memory_id, last_accessed) "
        "SELECT workspace_id, id, now() FROM spokes) "
        "INSERT INTO memory_edge (workspace_id, source_id, target_id, rel_type) "
        "SELECT workspace_id, $2, id, 'RELATES_TO' FROM spokes",
        tenant.workspace_id,
        UUID(hub),
    )
    found = await related(client, hub, depth=1, limit=100)
    assert (len(found["results"]), found["truncated"]) == (50, True)


async def test_edges_count_only_while_they_are_valid(client: AsyncClient, clock: SetClock) -> None:
    first, second = await store(client, "The first one"), await store(client, "The second one")
    await tie(client, first, second, t_invalid="2026-03-02T10:00:00Z")
    assert len((await related(client, first))["results"]) == 1
    clock.forward(hours=1)
    assert (await related(client, first))["results"] == []


async def test_edges_go_with_either_end(client: AsyncClient) -> None:
    ids = await chain(client, 3)
    await client.delete(f"/v1/memories/{ids[1]}")
    for end in (ids[0], ids[2]):
        assert (await client.get(f"/v1/memories/{end}/relations")).json()["results"] == []
    assert (await client.get(f"/v1/memories/{ids[1]}/related")).status_code == 404


async def test_no_edge_leads_through_a_wall(client: AsyncClient, other_client: AsyncClient) -> None:
    mine, theirs = await store(client, "Mine alone"), await store(other_client, "Theirs alone")
    bobs = await store(client, "Of bob alone", user_id="bob")

    async def tried(target: str, by: AsyncClient = client) -> tuple[int, str | None]:
        answer = await by.post(f"/v1/memories/{mine}/relations", json={"target_id": target, "type": "RELATES_TO"})
        return answer.status_code, answer.json().get("field")

    assert await tried(theirs) == (404, "target_id")
    assert await tried(str(uuid4())) == (404, "target_id")
    assert await tried(bobs) == (400, "target_id")
    assert await tried(mine) == (400, "target_id")
    assert await tried(theirs, other_client) == (404, "id")
    assert (await other_client.get(f"/v1/memories/{mine}/related")).status_code == 404
    assert (await other_client.get(f"/v1/memories/{mine}/relations")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"type": "LIKES"}, "type"),
        ({"strength": 1.1}, "strength"),
        ({"strength": -0.1}, "strength"),
        ({"target_id": "x"}, "target_id"),
        ({"t_valid": "2026-02-01", "t_invalid": "2026-01-01"}, None),
    ],
)
async def test_what_is_no_edge_is_400(client: AsyncClient, body: dict[str, Any], field: str | None) -> None:
    first, second = await chain(client, 2)
    whole = {"target_id": second, "type": "RELATES_TO", **body}
    answer = await client.post(f"/v1/memories/{first}/relations", json=whole)
    assert answer.status_code == 400
    assert field is None or answer.json()["field"] == field


@pytest.mark.parametrize("params", [{"depth": 0}, {"depth": 4}, {"limit": 0}, {"types": "LIKES"}, {"types": ","}])
async def test_what_is_no_walk_is_400(client: AsyncClient, params: dict[str, Any]) -> None:
    memory_id = await store(client, "Drinks tea")
    assert (await client.get(f"/v1/memories/{memory_id}/related", params=params)).status_code == 400


async def test_ties_and_deletes_at_once_end_whole(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    ids = [await store(client, f"Knot with number {number}") for number in range(8)]

    async def tried(source: str, target: str) -> int:
        body = {"target_id": target, "type": "RELATES_TO"}
        return (await client.post(f"/v1/memories/{source}/relations", json=body)).status_code

    pairs = [(one, other) for one in ids for other in ids if one < other]
    ties = [tried(one, other) for one, other in pairs] + [tried(other, one) for one, other in pairs]
    deletes = [client.delete(f"/v1/memories/{each}") for each in ids[:4]]
    done = await asyncio.gather(*ties, *deletes)
    assert {status for status in done if isinstance(status, int)} <= {201, 404}
    edges = await tables.value("SELECT count(*) FROM memory_edge WHERE workspace_id = $1", tenant.workspace_id)
    assert edges <= 12


async def test_many_edges_over_the_same_memories_end(client: AsyncClient, resources: Resources, tenant: Tenant) -> None:
    """By caller and by enrichment, made and taken away in any order, from both ends: no deadlock."""
    texts = [f"Rope with number {number}" for number in range(6)]
    hashes = {UUID(await store(client, each)): content_hash(CleanText(each)) for each in texts}
    ids = list(hashes)
    chance = random.Random(11)
    turn = asyncio.Semaphore(16)
    asked = Call()

    async def one() -> bool:
        source, target, third = chance.sample(ids, 3)
        what, kind = chance.random(), chance.choice((RelationType.RELATES_TO, RelationType.SIMILAR_TO))
        async with turn:
            if what < 0.5:
                await associate(tenant.workspace_id, Relation(source, kind, target), resources, asked)
            elif what < 0.8:
                await dissociate(tenant.workspace_id, source, target, None, resources, asked)
            else:
                near = {"neighbours": [[str(target), 0.9], [str(third), 0.95]], "hash": hashes[source]}
                job = Job(tenant.workspace_id, uuid4(), "enrich", source, near, 1, 3, "test")
                await enrich_like_queue([job], resources)
        return True

    assert all(await asyncio.gather(*(one() for _ in range(many(300, 1_000)))))

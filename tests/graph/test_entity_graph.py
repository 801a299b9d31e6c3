"""Relations of entities: stored with label and type, followed within limits and by their validity."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.graph.test_entities import learn, put, relate
from tests.support.application import Tables
from tests.support.calls import body_of, pages, results_of
from tests.thorough import many


async def chain(client: AsyncClient, *names: str) -> dict[str, str]:
    """Entities, each related to the next; ids by name."""
    ids = {name: (await put(client, name, "person"))["id"] for name in names}
    for one, other in pairwise(names):
        await relate(client, ids[one], ids[other])
    return ids


async def graph(client: AsyncClient, *starts: str, **params: Any) -> dict[str, Any]:
    return await body_of(client.get("/v1/entities/graph", params={"ids": ",".join(starts), **params}))


async def path(client: AsyncClient, source: str, target: str, **params: Any) -> dict[str, Any]:
    return await body_of(client.get("/v1/entities/path", params={"source_id": source, "target_id": target, **params}))


async def related(client: AsyncClient, name: str, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get(f"/v1/entities/{name}/relations", params={"user_id": "alice", **params}))


async def hub(tables: Tables, tenant: Tenant, hub_id: str, spokes: int) -> None:
    await tables.fetch(
        "WITH spokes AS (INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by) "
        "SELECT $1, gen_random_uuid(), 'alice', 'Spoke ' || n, 'spoke ' || n, 'concept', 'caller' "
        "FROM generate_series(1, $3::int) n RETURNING id) "
        "INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by) "
        "SELECT $1, gen_random_uuid(), $2, 'KNOWS', 'knows', id, 0.5, 'caller' FROM spokes",
        tenant.workspace_id,
        UUID(hub_id),
        spokes,
    )


async def test_one_relation_per_pair_and_type(client: AsyncClient) -> None:
    ana, acme = (await put(client, "Ana"))["id"], (await put(client, "Acme"))["id"]
    first = await relate(client, ana, acme, "works_at", properties={"since": 2020})
    again = await relate(client, ana, acme, "WorksFor", strength=0.4)
    assert first["id"] == again["id"]
    assert (first["type"], first["label"]) == ("WORKS_FOR", "works_at")
    assert (again["type"], again["label"], again["strength"], again["properties"]) == ("WORKS_FOR", "WorksFor", 0.4, {})
    assert len(await related(client, "ana")) == 1
    other = await relate(client, ana, acme, "advises")
    assert other["type"] == "ADVISES"
    assert [each["type"] for each in await related(client, "ana", types="works at")] == ["WORKS_FOR"]


async def test_a_secret_in_a_type_reaches_neither_type_nor_label(client: AsyncClient) -> None:
    ana, acme = (await put(client, "Ana"))["id"], (await put(client, "Acme"))["id"]
    made = await relate(client, ana, acme, "pays with 4111 1111 1111 1111")
    assert "1111" not in made["type"] + made["label"]
    where = {"source_id": ana, "target_id": acme, "type": "pays with 4111 1111 1111 1111"}
    removed = await client.delete("/v1/entities/relations", params=where)
    assert removed.status_code == 200, removed.text
    assert await related(client, "ana") == []


async def test_relations_need_both_ends(client: AsyncClient, other_client: AsyncClient) -> None:
    mine, bobs = (await put(client, "Ana"))["id"], (await put(client, "Bo", user_id="bob"))["id"]

    async def tried(source: str, target: str, by: AsyncClient = client, **body: Any) -> tuple[int, str | None]:
        whole = {"source_id": source, "target_id": target, "type": "knows", **body}
        answer = await by.post("/v1/entities/relations", json=whole)
        return answer.status_code, answer.json().get("field")

    assert await tried(mine, str(uuid4())) == (404, "target_id")
    assert await tried(str(uuid4()), mine) == (404, "source_id")
    assert await tried(mine, mine) == (400, "target_id")
    assert await tried(mine, bobs) == (400, "target_id")
    assert await tried(mine, bobs, other_client) == (404, "source_id")
    assert await tried(mine, bobs, type="--") == (400, "type")
    assert await tried(mine, bobs, strength=2) == (400, "strength")
    assert await tried(mine, bobs, kind="x") == (400, "kind")
    assert (await tried(mine, bobs, t_valid="2026-02-01", t_invalid="2026-01-01"))[0] == 400


async def test_relations_are_listed_by_name_alias_and_id_in_pages(
    client: AsyncClient, other_client: AsyncClient
) -> None:
    ana = (await put(client, "Ana", aliases=["AM"]))["id"]
    for number in range(5):
        other = (await put(client, f"Friend {number}"))["id"]
        await relate(client, *((ana, other) if number % 2 else (other, ana)), strength=number / 10)
    for name in ("ana", "am", ana):
        assert [each["strength"] for each in await related(client, name)] == [0.4, 0.3, 0.2, 0.1, 0.0]
    found = [page["results"] async for page in pages(client, "/v1/entities/ana/relations", limit=2)]
    assert [[each["strength"] for each in page] for page in found] == [[0.4, 0.3], [0.2, 0.1], [0.0]]
    assert (await client.get("/v1/entities/nobody/relations")).status_code == 404
    assert (await client.get("/v1/entities/ana/relations", params={"user_id": "bob"})).status_code == 404
    assert (await other_client.get("/v1/entities/ana/relations")).status_code == 404
    assert (await client.get("/v1/entities/ana/relations", params={"cursor": "x"})).json()["field"] == "cursor"
    assert (await client.get("/v1/entities/ana/relations", params={"types": "--"})).json()["field"] == "types"


async def test_a_relation_holds_from_when_to_when(client: AsyncClient, clock: SetClock) -> None:
    ana, acme, globe = [(await put(client, name))["id"] for name in ("Ana", "Acme", "Globe")]
    await relate(client, ana, acme, "works_at", t_invalid="2026-03-02T10:00:00Z")
    await relate(client, ana, globe, "works_at", t_valid="2026-03-02T10:00:00Z")
    assert [each["target"] for each in await related(client, "ana")] == ["Acme"]
    clock.forward(hours=1)
    assert [each["target"] for each in await related(client, "ana")] == ["Globe"]
    assert [each["target"] for each in await related(client, "ana", valid_at="2026-03-01T00:00:00Z")] == ["Acme"]
    assert len(await related(client, "ana", include_invalid=True)) == 2
    assert [each["name"] for each in (await graph(client, ana))["nodes"]] == ["Ana", "Globe"]
    assert len((await graph(client, ana, include_invalid=True))["nodes"]) == 3
    assert not (await path(client, ana, acme))["found"]
    assert (await path(client, ana, acme, valid_at="2026-03-01T00:00:00Z"))["length"] == 1


async def test_relations_are_untied(client: AsyncClient, other_client: AsyncClient) -> None:
    ids = await chain(client, "Ana", "Bo")
    await relate(client, ids["Ana"], ids["Bo"], "manages")
    params = {"source_id": ids["Ana"], "target_id": ids["Bo"]}
    assert (await other_client.delete("/v1/entities/relations", params=params)).status_code == 404
    one = await client.delete("/v1/entities/relations", params={**params, "type": "Manages"})
    rest, none = [await client.delete("/v1/entities/relations", params=params) for _ in range(2)]
    assert [each.json()["deleted"] for each in (one, rest, none)] == [1, 1, 0]


async def test_a_neighbourhood_goes_as_far_as_it_may(client: AsyncClient) -> None:
    ids = await chain(client, "A", "B", "C", "D", "E")
    for depth in (1, 2, 3):
        found = await graph(client, ids["B"], depth=depth)
        assert {each["name"]: each["depth"] for each in found["nodes"]} == {
            name: abs(index - 1) for index, name in enumerate("ABCDE") if abs(index - 1) <= depth
        }
        assert len(found["relations"]) == len(found["nodes"]) - 1
        assert not found["truncated"]
    assert len((await graph(client, ids["B"]))["nodes"]) == 4, "two edges are the default"
    two = await graph(client, ids["A"], ids["E"], depth=1)
    assert [each["name"] for each in two["nodes"]] == ["A", "E", *sorted("BD", key=lambda name: ids[name])]
    await relate(client, ids["C"], ids["A"])
    circle = await graph(client, ids["A"], depth=3)
    assert {each["name"]: each["depth"] for each in circle["nodes"]} == {"A": 0, "B": 1, "C": 1, "D": 2, "E": 3}
    assert len(circle["relations"]) == 5


async def test_limits_cut_and_say_so(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    ids = await chain(client, "A", "B", "C")
    await hub(tables, tenant, ids["B"], 60)
    found = await graph(client, ids["B"], depth=1)
    assert (len(found["nodes"]), found["truncated"]) == (51, True)
    assert {"A", "C"} < {each["name"] for each in found["nodes"]}, "the strongest edges are followed"
    few = await graph(client, ids["A"], depth=3, limit=2)
    assert ([each["name"] for each in few["nodes"]], few["truncated"]) == (["A", "B"], True)
    assert not (await graph(client, ids["A"], depth=1))["truncated"]
    typed = await graph(client, ids["B"], depth=1, types="manages")
    assert ([each["name"] for each in typed["nodes"]], typed["truncated"]) == (["B"], False)


@pytest.mark.parametrize(
    "params", [{"depth": 0}, {"depth": 4}, {"limit": 0}, {"valid_at": "soon"}, {"types": "--"}, {"types": " ,"}]
)
async def test_what_is_no_walk_is_400(client: AsyncClient, params: dict[str, Any]) -> None:
    one = (await put(client, "A"))["id"]
    assert (await client.get("/v1/entities/graph", params={"ids": one, **params})).status_code == 400


async def test_a_walk_starts_where_one_may_look(client: AsyncClient, other_client: AsyncClient) -> None:
    one = (await put(client, "A"))["id"]
    assert (await client.get("/v1/entities/graph")).status_code == 400
    assert (await client.get("/v1/entities/graph", params={"ids": " ,"})).json()["field"] == "ids"
    assert (await client.get("/v1/entities/graph", params={"ids": ",".join([one] * 51)})).json()["field"] == "ids"
    assert (await client.get("/v1/entities/graph", params={"ids": "x"})).status_code == 404
    assert (await client.get("/v1/entities/graph", params={"ids": f"{one},{uuid4()}"})).status_code == 404
    assert (await client.get("/v1/entities/graph", params={"ids": one, "user_id": "bob"})).status_code == 404
    assert (await other_client.get("/v1/entities/graph", params={"ids": one})).status_code == 404


async def test_a_shortest_way_is_found_and_its_steps_join(client: AsyncClient, other_client: AsyncClient) -> None:
    ids = await chain(client, "A", "B", "C", "D", "E")
    for length, end in enumerate("ABCDE"):
        found = await path(client, ids["A"], ids[end], max_depth=6)
        assert (found["found"], found["length"]) == (True, length)
        assert [each["name"] for each in found["nodes"]] == list("ABCDE"[: length + 1])
        steps = [{each["source"], each["target"]} for each in found["relations"]]
        assert steps == [set(pair) for pair in pairwise("ABCDE"[: length + 1])]
    assert [each["name"] for each in (await path(client, ids["E"], ids["A"]))["nodes"]] == list("EDCBA")
    assert not (await path(client, ids["A"], ids["E"], max_depth=3))["found"]
    await relate(client, ids["E"], ids["B"], "manages")
    assert (await path(client, ids["A"], ids["E"]))["length"] == 2
    assert (await path(client, ids["A"], ids["E"], types="knows"))["length"] == 4
    alone = (await put(client, "Alone"))["id"]
    assert await path(client, ids["A"], alone) == {
        "found": False,
        "length": None,
        "nodes": [],
        "relations": [],
        "truncated": False,
    }
    for params in ({"max_depth": 0}, {"max_depth": 7}):
        answer = await client.get("/v1/entities/path", params={"source_id": ids["A"], "target_id": alone, **params})
        assert answer.status_code == 400
    missing = await client.get("/v1/entities/path", params={"source_id": ids["A"], "target_id": str(uuid4())})
    assert (missing.status_code, missing.json()["field"]) == (404, "target_id")
    theirs = await other_client.get("/v1/entities/path", params={"source_id": ids["A"], "target_id": alone})
    assert (theirs.status_code, theirs.json()["field"]) == (404, "source_id")


async def test_a_weak_edge_of_a_hub_still_closes_a_way(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    ids = {name: (await put(client, name))["id"] for name in ("A", "Hub", "Z")}
    await relate(client, ids["A"], ids["Hub"], strength=0.1)
    await relate(client, ids["Hub"], ids["Z"], strength=0.1)
    await hub(tables, tenant, ids["Hub"], 60)
    found = await path(client, ids["A"], ids["Z"])
    assert [each["name"] for each in found["nodes"]] == ["A", "Hub", "Z"]


async def test_many_writes_over_the_same_nodes_end(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    """Concurrent relations, deletions and merges over many entities: no deadlock, no dangling edge."""
    ids = [(await put(client, f"Knot {number}"))["id"] for number in range(8)]
    chance = random.Random(7)
    turn = asyncio.Semaphore(16)

    async def one() -> int:
        source, target = chance.sample(ids, 2)
        what = chance.random()
        async with turn:
            if what < 0.7:
                body = {"source_id": source, "target_id": target, "type": chance.choice(("knows", "uses"))}
                return (await client.post("/v1/entities/relations", json=body)).status_code
            if what < 0.9:
                params = {"source_id": source, "target_id": target}
                return (await client.delete("/v1/entities/relations", params=params)).status_code
            own = await put(client, f"Knot {chance.random()}")
            await relate(client, own["id"], source)
            answer = await client.post("/v1/entities/merge", json={"source_id": own["id"], "target_id": target})
            return answer.status_code

    done = await asyncio.gather(*(one() for _ in range(many(300, 1_000))))
    assert set(done) <= {200, 201, 404}, sorted(set(done))
    assert done.count(201) > 20
    bare = await tables.value(
        "SELECT count(*) FROM entity_edge e WHERE workspace_id = $1 AND 2 <> (SELECT count(*) FROM entity n "
        "WHERE n.workspace_id = $1 AND n.id IN (e.source_id, e.target_id))",
        tenant.workspace_id,
    )
    assert bare == 0


async def test_the_types_of_relations_can_be_read(client: AsyncClient, anonymous: AsyncClient) -> None:
    found = (await client.get("/v1/reference/relation-types")).json()
    wanted = {"RELATED_TO", "PART_OF", "LOCATED_IN", "WORKS_FOR", "KNOWS", "CREATED_BY", "REFERENCES"}
    assert found["entities"].keys() >= wanted
    assert "works_at" in found["entities"]["WORKS_FOR"]
    assert {"OCCURRED_BEFORE", "SIMILAR_TO", "EXEMPLIFIES", "PROMOTED_FROM"} <= set(found["memories"])
    assert (await anonymous.get("/v1/reference/relation-types")).status_code == 401


async def test_a_workspace_can_do_without_a_graph(client: AsyncClient, resources: Resources, tenant: Tenant) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": {"graph_enabled": False}})
    assert answer.status_code == 200, answer.text
    assert (await client.get("/v1/config")).json()["graph_store"]["graph_enabled"] is False
    memory_id = await learn(client, resources, tenant, "Priya Raman works at Brightwave Labs.")
    assert (await client.get(f"/v1/memories/{memory_id}")).json()["entities"]["people"] == ["Priya Raman"]
    assert await related(client, "priya raman") == []

"""Entities over HTTP: created, extended, listed, found, merged and deleted."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.memories.jobs import enrich
from service.memories.statements import updates
from service.providers.protocols import LlmReply, LlmRequest
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, with_llm
from tests.support.calls import pages, results_of, store


async def put(client: AsyncClient, name: str, kind: str | None = None, **fields: Any) -> dict[str, Any]:
    body = {"name": name, "user_id": "alice", **({"type": kind} if kind else {}), **fields}
    answer = await client.put("/v1/entities", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def relate(client: AsyncClient, source: str, target: str, kind: str = "knows", **fields: Any) -> dict[str, Any]:
    body = {"source_id": source, "target_id": target, "type": kind, **fields}
    answer = await client.post("/v1/entities/relations", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def names(client: AsyncClient, **body: Any) -> list[str]:
    return [each["name"] for each in await results_of(client.post("/v1/entities", json={"user_id": "alice", **body}))]


async def learn(client: AsyncClient, resources: Resources, tenant: Tenant, text: str, **fields: Any) -> str:
    """A stored memory whose enrichment has run."""
    memory_id = await store(client, text, **fields)
    job = Job(tenant.workspace_id, uuid4(), "enrich", UUID(memory_id), {}, 1, 3, "test")
    await enrich.run(job, resources)
    return memory_id


async def test_an_upsert_makes_one_and_then_adds_to_it(client: AsyncClient) -> None:
    first = await client.put("/v1/entities", json={"name": "Acme", "type": "Companies", "user_id": "alice"})
    assert first.status_code == 201
    assert (first.json()["type"], first.json()["version"]) == ("organization", 1)
    again = await client.put(
        "/v1/entities", json={"name": "ACME", "description": "A customer", "aliases": ["Acme Corp"], "user_id": "alice"}
    )
    assert again.status_code == 200
    found = again.json()
    assert (found["id"], found["name"], found["type"], found["version"]) == (
        first.json()["id"],
        "Acme",
        "organization",
        2,
    )
    assert (found["description"], found["aliases"]) == ("A customer", ["Acme Corp"])
    by_alias = await put(client, "acme corp", properties={"tier": "gold"})
    assert (by_alias["id"], by_alias["properties"], by_alias["description"]) == (
        found["id"],
        {"tier": "gold"},
        "A customer",
    )


async def test_an_entity_has_all_its_fields(client: AsyncClient) -> None:
    made = await put(client, "Zephyr", "project", salience=0.9, properties={"lang": "go"}, channel="atlas")
    read = (await client.get(f"/v1/entities/{made['id']}")).json()
    assert read == made
    assert read.keys() >= {"aliases", "description", "salience", "first_seen", "last_accessed", "access_count"}
    assert (read["channel"], read["user_id"], read["extracted_by"]) == ("atlas", "alice", "caller")


async def test_the_vector_is_made_when_it_is_missing(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    made = await put(client, "Zephyr", description="The build server")
    assert "Zephyr: The build server" in embedder.seen
    given = await put(client, "Breeze", embedding=[1.0] + [0.0] * (embedder.dimension - 1))
    for each in (made, given):
        rows = await tables.value("SELECT count(*) FROM entity_vector WHERE entity_id = $1", UUID(each["id"]))
        assert rows == 1
    embedder.down = True
    assert await put(client, "Gale")


async def test_if_match_guards_an_entity(client: AsyncClient) -> None:
    made = await client.put("/v1/entities", json={"name": "Acme", "user_id": "alice"})
    etag = made.headers["etag"]
    body = {"name": "Acme", "description": "first", "user_id": "alice"}
    assert (await client.put("/v1/entities", json=body, headers={"If-Match": etag})).status_code == 200
    assert (await client.put("/v1/entities", json=body, headers={"If-Match": etag})).status_code == 412
    late = {**body, "name": "Nobody yet"}
    assert (await client.put("/v1/entities", json=late, headers={"If-Match": "*"})).status_code == 412
    path = f"/v1/entities/{made.json()['id']}"
    assert (await client.delete(path, headers={"If-Match": etag})).status_code == 412


async def test_an_alias_is_one_entitys_only(client: AsyncClient) -> None:
    await put(client, "Acme", aliases=["The Customer"])
    for alias in ("the customer", "ACME"):
        body = {"name": "Brightwave", "aliases": [alias], "user_id": "alice"}
        answer = await client.put("/v1/entities", json=body)
        assert (answer.status_code, answer.json()["field"]) == (409, "aliases")
    assert await names(client) == ["Acme"], "a refused upsert leaves nothing"


async def test_lists_are_paged_by_name_and_cut_by_type(client: AsyncClient) -> None:
    for name, kind in (("Cleo", "person"), ("ana", "person"), ("Acme", "organization"), ("Bo", "person")):
        await put(client, name, kind)
    assert await names(client) == ["Acme", "ana", "Bo", "Cleo"]
    assert await names(client, type="people") == ["ana", "Bo", "Cleo"]
    found = [page["results"] async for page in pages(client, "/v1/entities", post=True, user_id="alice", limit=2)]
    assert [[each["name"] for each in page] for page in found if page] == [["Acme", "ana"], ["Bo", "Cleo"]]


async def test_a_scope_sees_its_own(
    client: AsyncClient, other_client: AsyncClient, resources: Resources, tenant: Tenant
) -> None:
    mine = await put(client, "Acme")
    project = await put(client, "Atlas", channel="work")
    await put(client, "Acme", user_id="bob")
    assert await names(client) == ["Acme", "Atlas"]
    assert await names(client, channel="_global") == ["Acme"]
    assert await names(client, channel="work") == ["Acme", "Atlas"]
    assert (await other_client.post("/v1/entities", json={"user_id": "alice"})).json()["results"] == []
    assert (await other_client.get(f"/v1/entities/{mine['id']}")).status_code == 404
    assert (await other_client.delete(f"/v1/entities/{mine['id']}")).status_code == 404
    for scope, status in (({"user_id": "bob"}, 404), ({"user_id": "alice"}, 200), ({"agent_id": "x"}, 404)):
        assert (await client.get(f"/v1/entities/{project['id']}", params=scope)).status_code == status
        assert (await client.delete(f"/v1/entities/{uuid4()}", params=scope)).status_code == 404
    await learn(client, resources, tenant, "Priya Raman lives in Lisbon.", agent_id="helper")
    of_agent = await client.post("/v1/entities", json={"agent_id": "helper"})
    assert [each["name"] for each in of_agent.json()["results"]] == ["Lisbon", "Priya Raman"]


async def test_search_finds_names_parts_aliases_and_meaning(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("PostgreSQL: the database we keep everything in", 1.0)
    embedder.place("where is our data", 0.8)
    await put(client, "PostgreSQL", "technology", description="the database we keep everything in")
    await put(client, "Acme Corporation", "organization", aliases=["The Customer"])
    await put(client, "Postgrex", "tool")

    async def search(q: str, **params: Any) -> list[tuple[str, float]]:
        answer = await client.get("/v1/entities/search", params={"query": q, "user_id": "alice", **params})
        assert answer.status_code == 200, answer.text
        return [(each["name"], round(each["score"], 3)) for each in answer.json()["results"]]

    assert await search("POSTGRESQL") == [("PostgreSQL", 1.0)]
    assert await search("postgre") == [("PostgreSQL", 0.9), ("Postgrex", 0.9)]
    assert await search("postgre", type="tool") == [("Postgrex", 0.9)]
    assert await search("corp") == [("Acme Corporation", 0.8)]
    assert await search("the customer") == [("Acme Corporation", 1.0)]
    assert await search("where is our data") == [("PostgreSQL", 0.8)]
    assert await search("nobody at all") == []
    assert (await client.get("/v1/entities/search", params={"query": "acme", "user_id": "bob"})).json()["results"] == []


async def test_delete_takes_aliases_relations_and_mentions_and_leaves_memories(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    memory_id = await learn(client, resources, tenant, "Priya Raman lives in Lisbon.")
    priya = (await client.get("/v1/entities/priya raman/relations", params={"user_id": "alice"})).json()["entities"][0]
    assert (await client.delete(f"/v1/entities/{priya['id']}")).json() == {"id": priya["id"], "deleted": True}
    assert (await client.delete(f"/v1/entities/{priya['id']}")).status_code == 404
    assert (await client.get(f"/v1/memories/{memory_id}")).json()["entities"]["people"] == []
    assert await tables.value("SELECT count(*) FROM entity_edge WHERE workspace_id = $1", tenant.workspace_id) == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x", "typ": "person"}, "typ"),
        ({"name": "x", "salience": 1.5}, "salience"),
        ({"name": "x", "aliases": ["a"] * 51}, "aliases"),
        ({"name": "x", "aliases": "a"}, "aliases"),
        ({"name": "a\x00b"}, "name"),
        ({"name": "x", "embedding": [1.0]}, "embedding"),
        ({"name": "x", "properties": [1]}, "properties"),
    ],
)
async def test_what_is_no_entity_is_400(client: AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.put("/v1/entities", json={"user_id": "alice", **body})
    assert answer.status_code == 400, answer.text
    assert answer.json()["field"].startswith(field)


async def test_bad_questions_are_400(client: AsyncClient) -> None:
    assert (await client.put("/v1/entities", json={"name": "x"})).json()["code"] == "scope_error"
    assert (await client.post("/v1/entities", json={})).json()["code"] == "scope_error"
    assert (await client.post("/v1/entities", json={"user_id": "a", "cursor": "x"})).json()["field"] == "cursor"
    for asked in ("query=%20", "query=", "query=x&limit=0", "query=x&limit=101"):
        assert (await client.get(f"/v1/entities/search?user_id=alice&{asked}")).status_code == 400, asked
    assert (await client.get("/v1/entities/search", params={"query": "x"})).json()["code"] == "scope_error"
    assert (await client.get("/v1/entities/no-uuid")).status_code == 404


# -- merging ------------------------------------------------------------------------------------------------------


async def relations_of(client: AsyncClient, name: str) -> list[tuple[str, str, str]]:
    answer = await client.get(f"/v1/entities/{name}/relations", params={"user_id": "alice"})
    assert answer.status_code == 200, answer.text
    return sorted((each["source"], each["type"], each["target"]) for each in answer.json()["results"])


PICTURE = """
    SELECT 'entity ' || id AS what,
           (to_jsonb(e) - '{version,updated_at,access_count,last_accessed}'::text[])::text AS how FROM entity e
    WHERE workspace_id = $1
    UNION ALL SELECT 'alias ' || entity_id || alias_key, alias FROM entity_alias WHERE workspace_id = $1
    UNION ALL SELECT 'edge ' || id, to_jsonb(e)::text FROM entity_edge e WHERE workspace_id = $1
    UNION ALL SELECT 'evidence ' || edge_id || memory_id, extracted_by FROM entity_edge_source WHERE workspace_id = $1
    UNION ALL SELECT 'link ' || memory_id || entity_id, extracted_by FROM memory_entity WHERE workspace_id = $1
    UNION ALL SELECT 'vector ' || entity_id || generation, embedding::text FROM entity_vector WHERE workspace_id = $1
"""


async def picture(tables: Tables, tenant: Tenant) -> dict[str, str]:
    return {row["what"]: row["how"] for row in await tables.fetch(PICTURE, tenant.workspace_id)}


async def test_two_become_one(client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables) -> None:
    await learn(client, resources, tenant, "Priya Raman works at Brightwave Labs.")
    await learn(client, resources, tenant, "Priya Raman lives in Lisbon.")
    both = await learn(client, resources, tenant, "Priya Rahman works at Brightwave Labs. Priya Raman lives in Lisbon.")
    found = {
        each["name"]: each["id"]
        for each in (await client.post("/v1/entities", json={"user_id": "alice"})).json()["results"]
    }
    await put(client, "Priya Rahman", aliases=["PR"])
    await relate(client, found["Priya Rahman"], found["Priya Raman"])
    body = {"source_id": found["Priya Rahman"], "target_id": found["Priya Raman"]}
    done = await client.post("/v1/entities/merge", json=body)
    assert done.status_code == 200, done.text
    assert (done.json()["id"], done.json()["aliases"]) == (found["Priya Raman"], ["PR", "Priya Rahman"])
    assert await relations_of(client, "priya rahman") == [
        ("Priya Raman", "LIVES_IN", "Lisbon"),
        ("Priya Raman", "WORKS_FOR", "Brightwave Labs"),
    ]
    assert (await client.get(f"/v1/entities/{found['Priya Rahman']}")).status_code == 404
    assert (await client.get(f"/v1/memories/{both}")).json()["entities"]["people"] == ["Priya Raman"]
    [works] = [
        each
        for each in (await client.get("/v1/entities/priya raman/relations")).json()["results"]
        if each["type"] == "WORKS_FOR"
    ]
    assert len(works["memory_ids"]) == 2, "the evidence of both"


async def test_a_later_text_with_the_old_name_names_the_merged_one(
    client: AsyncClient, resources: Resources, tenant: Tenant
) -> None:
    kept, gone = await put(client, "Brightwave Labs", "organization"), await put(client, "Bright Wave Labs")
    body = {"source_id": gone["id"], "target_id": kept["id"]}
    assert (await client.post("/v1/entities/merge", json=body)).status_code == 200
    memory_id = await learn(client, resources, tenant, "Ana works at Bright Wave Labs.")
    read = (await client.get(f"/v1/memories/{memory_id}")).json()
    assert read["entities"]["organizations"] == ["Brightwave Labs"]
    assert await relations_of(client, "brightwave labs") == [("Ana", "WORKS_FOR", "Brightwave Labs")]


async def test_a_merge_of_a_merge_has_all_names(client: AsyncClient) -> None:
    first, second, third = [await put(client, name) for name in ("Aa", "Bb", "Cc")]
    for source, target in ((first, second), (second, third)):
        done = await client.post("/v1/entities/merge", json={"source_id": source["id"], "target_id": target["id"]})
        assert done.status_code == 200, done.text
    assert (await client.get(f"/v1/entities/{third['id']}")).json()["aliases"] == ["Aa", "Bb"]
    named = (await client.get("/v1/entities/aa/relations", params={"user_id": "alice"})).json()["entities"]
    assert [each["id"] for each in named] == [third["id"]]


async def test_what_cannot_be_merged(client: AsyncClient, other_client: AsyncClient) -> None:
    mine, bobs = await put(client, "Acme"), await put(client, "Acme", user_id="bob")

    async def tried(source: str, target: str, by: AsyncClient = client) -> tuple[int, str | None]:
        answer = await by.post("/v1/entities/merge", json={"source_id": source, "target_id": target})
        return answer.status_code, answer.json().get("field")

    assert await tried(mine["id"], mine["id"]) == (400, "target_id")
    assert await tried(mine["id"], bobs["id"]) == (400, "target_id")
    assert await tried(mine["id"], str(uuid4())) == (404, "target_id")
    assert await tried(str(uuid4()), mine["id"]) == (404, "source_id")
    assert await tried(mine["id"], bobs["id"], other_client) == (404, "source_id")


# -- forgetting ---------------------------------------------------------------------------------------------------


async def rows_of(tables: Tables, tenant: Tenant) -> dict[str, int]:
    counts = await tables.counts(tenant.workspace_id)
    return {name: count for name, count in counts.items() if name.startswith("entity") and count}


async def seed(client: AsyncClient, resources: Resources, tenant: Tenant, user_id: str) -> str:
    """A memory with a relation, and two entities made over HTTP, one of them merged into the other."""
    memory_id = await learn(client, resources, tenant, "Priya Raman works at Brightwave Labs.", user_id=user_id)
    one, other = [await put(client, name, user_id=user_id, aliases=[f"{name}s"]) for name in ("Kite", "Kestrel")]
    await relate(client, one["id"], other["id"])
    await client.post("/v1/entities/merge", json={"source_id": other["id"], "target_id": one["id"]})
    return memory_id


async def test_deleting_a_user_takes_the_users_graph_along(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    await seed(client, resources, tenant, "alice")
    of_one = await rows_of(tables, tenant)
    assert of_one.keys() == {"entity", "entity_alias", "entity_edge", "entity_edge_source", "entity_vector"}
    await seed(client, resources, tenant, "bob")
    await client.delete("/v1/memories", params={"user_id": "alice"})
    assert await names(client) == []
    assert await rows_of(tables, tenant) == of_one
    assert (await client.delete("/v1/memories", params={"user_id": "bob", "purge": True})).status_code == 200
    assert await rows_of(tables, tenant) == {}


async def test_deleting_the_last_memory_takes_what_only_it_named(
    client: AsyncClient, resources: Resources, tenant: Tenant
) -> None:
    first = await learn(client, resources, tenant, "Priya Raman works at Brightwave Labs.")
    second = await learn(client, resources, tenant, "Priya Raman lives in Lisbon.")
    await client.delete(f"/v1/memories/{first}")
    assert await names(client) == ["Lisbon", "Priya Raman"]
    await put(client, "Lisbon", "location")
    await client.delete(f"/v1/memories/{second}")
    assert await names(client) == ["Lisbon"], "what a caller speaks of stays"


async def test_an_erased_memory_takes_the_alias_that_only_it_gave(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    await learn(client, resources, tenant, "Priya Raman lives in Lisbon.")
    gone = await learn(client, resources, tenant, "Quillora Raman lives in Porto.")
    found = (await client.post("/v1/entities", json={"user_id": "alice", "type": "person"})).json()["results"]
    ids = {each["name"]: each["id"] for each in found}
    body = {"source_id": ids["Quillora Raman"], "target_id": ids["Priya Raman"]}
    assert (await client.post("/v1/entities/merge", json=body)).status_code == 200
    assert await tables.holding("Quillora")
    assert (await client.delete(f"/v1/memories/{gone}", params={"purge": True})).status_code == 200
    assert await tables.holding("Quillora") == []
    assert await names(client) == ["Lisbon", "Priya Raman"]


# -- from a model -------------------------------------------------------------------------------------------------


class Reader:
    """A model with scripted extractions and decisions."""

    model = "test:reader"

    def __init__(self, *facts: dict[str, Any]) -> None:
        self.facts, self.operations = list(facts), [dict[str, Any]()]

    async def complete(self, ask: LlmRequest) -> LlmReply:
        if ask.task == "extract":
            return LlmReply(json.dumps({"facts": self.facts}), model=self.model)
        return LlmReply(json.dumps({"memory": self.operations}), model=self.model)

    async def close(self) -> None:
        return None


async def work_off(resources: Resources, tenant: Tenant, tables: Tables, memory_id: str) -> None:
    """Runs the latest enrich job of a memory, with the jobs in its batch."""
    payload = await tables.value(
        "SELECT payload FROM job WHERE memory_id = $1 AND kind = 'enrich' ORDER BY id DESC LIMIT 1", UUID(memory_id)
    )
    job = Job(tenant.workspace_id, uuid4(), "enrich", UUID(memory_id), json.loads(payload), 1, 3, "test")
    await enrich.run(job, resources)


async def test_entities_and_relations_of_a_conversation(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    """Entities that the extraction names exist after its job; an undo restores what a later text replaced."""
    reader = Reader(
        {
            "text": "Alice has a desk with the search people",
            "certainty": "explicit",
            "entities": [{"name": "Alice", "type": "person"}, {"name": "Google", "type": "organization"}],
            "relations": [{"source": "Alice", "relation": "works_at", "target": "Google"}],
        }
    )
    async with with_llm(resources, tenant, reader) as client:

        async def tell(text: str) -> str:
            body = {"messages": [{"role": "user", "content": text}], "user_id": "alice"}
            answer = await client.post("/v1/memories", json=body)
            assert answer.status_code in (200, 201), answer.text
            memory_id: str = answer.json()["results"][0]["id"]
            await work_off(resources, tenant, tables, memory_id)
            return memory_id

        memory_id = await tell("Alice has a desk with the search people at Google")
        listed = (await client.post("/v1/entities", json={"user_id": "alice"})).json()["results"]
        assert [(each["name"], each["type"], each["extracted_by"]) for each in listed] == [
            ("Alice", "person", "llm"),
            ("Google", "organization", "llm"),
        ]
        assert await relations_of(client, "alice") == [("Alice", "WORKS_FOR", "Google")]
        [relation] = (await client.get("/v1/entities/google/relations")).json()["results"]
        assert (relation["label"], relation["memory_ids"]) == ("works_at", [memory_id])

        moved = "Alice has a desk with the search people in Porto"
        reader.facts = [{"text": moved, "entities": [], "relations": [], "known": [1]}]
        reader.operations = [{"event": "UPDATE", "id": 1, "text": reader.facts[0]["text"]}]
        assert await tell("Alice has a desk with the search people in Porto") == memory_id
        assert await relations_of(client, "alice") == []
        decided = (await client.get(f"/v1/memories/{memory_id}/decisions")).json()["results"]
        assert (await client.post(f"/v1/decisions/{decided[-1]['id']}/undo")).status_code == 200
        assert await relations_of(client, "alice") == [("Alice", "WORKS_FOR", "Google")]


async def test_a_model_says_what_an_entity_is(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    """Names in title case; the description is optional, short and redacted."""
    about = [
        {"name": "dana reyes", "type": "person", "description": "A colleague,  dana@acme.example"},
        {"name": "BrightWave", "type": "organization", "description": None},
    ]
    said = "Dana Reyes met BrightWave on the roof"
    async with with_llm(resources, tenant, Reader({"text": said, "entities": about})) as client:
        body = {"messages": [{"role": "user", "content": said}], "user_id": "alice"}
        memory_id = (await client.post("/v1/memories", json=body)).json()["results"][0]["id"]
        await work_off(resources, tenant, tables, memory_id)
        listed = (await client.post("/v1/entities", json={"user_id": "alice"})).json()["results"]
    assert [(each["name"], each["description"]) for each in listed] == [
        ("BrightWave", None),
        ("Dana Reyes", "A colleague, [REDACTED:EMAIL]"),
    ]


async def test_a_conversation_mentions_entities(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """Read from both ends, also where a fact was known before; what another conversation names is not among them."""
    for name, said in (("one", "My sister Dana Reyes works at Brightwave Labs."), ("two", "I live in Porto.")):
        body = {"messages": [{"role": "user", "content": said}], "user_id": "alice", "session_id": name}
        for result in (await client.post("/v1/memories", json=body)).json()["results"]:
            await work_off(resources, tenant, tables, result["id"])
    ids = {
        each["name"]: each["id"]
        for each in (await client.post("/v1/entities", json={"user_id": "alice"})).json()["results"]
    }
    assert {"Dana Reyes", "Brightwave Labs", "Porto"} <= ids.keys()
    one = await client.post("/v1/entities", json={"user_id": "alice", "conversation_id": "one"})
    assert {each["name"] for each in one.json()["results"]} == {"Dana Reyes", "Brightwave Labs"}
    params = {"user_id": "alice", "entity_id": ids["Porto"]}
    talks = (await client.get("/v1/conversations", params=params)).json()["results"]
    assert [each["external_id"] for each in talks] == ["two"]
    unknown = await client.post("/v1/entities", json={"user_id": "alice", "conversation_id": "three"})
    assert unknown.status_code == 404
    bobs = await client.post("/v1/entities", json={"user_id": "bob", "conversation_id": "one"})
    assert bobs.status_code == 404


async def test_undo_brings_back_what_a_text_told(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    reader = Reader({"text": "Priya Raman works at Brightwave Labs"})
    async with with_llm(resources, tenant, reader) as client:
        body = {"messages": [{"role": "user", "content": "Priya Raman works at Brightwave Labs"}], "user_id": "alice"}
        memory_id = (await client.post("/v1/memories", json=body)).json()["results"][0]["id"]
        await work_off(resources, tenant, tables, memory_id)
        before = await picture(tables, tenant)
        assert any(what.startswith("evidence") for what in before)
        reader.facts = [{"text": "Priya Raman no longer works at Brightwave Labs"}]
        reader.operations = [{"event": "UPDATE", "id": 1, "text": reader.facts[0]["text"]}]
        body["messages"] = [{"role": "user", "content": "Priya Raman no longer works at Brightwave Labs"}]
        [result] = (await client.post("/v1/memories", json=body)).json()["results"]
        assert (result["id"], result["event"]) == (memory_id, "UPDATE")
        await work_off(resources, tenant, tables, memory_id)
        assert not any(what.startswith("evidence") for what in await picture(tables, tenant))
        decided = (await client.get(f"/v1/memories/{memory_id}/decisions")).json()["results"]
        assert (await client.post(f"/v1/decisions/{decided[-1]['id']}/undo")).status_code == 200
        assert await picture(tables, tenant) == before


async def test_a_relation_holds_as_long_as_a_memory_that_tells_it(
    client: AsyncClient, resources: Resources, tenant: Tenant, clock: SetClock
) -> None:
    told = [("Priya Raman", "WORKS_FOR", "Brightwave Labs")]
    first = await learn(client, resources, tenant, "Priya Raman works at Brightwave Labs.")
    second = await learn(
        client, resources, tenant, "In the Monday round Otto Lindqvist said that Priya Raman works at Brightwave Labs."
    )
    now = clock().isoformat()
    assert (await client.patch(f"/v1/memories/{first}", json={"t_invalid": now})).status_code == 200
    assert await relations_of(client, "priya raman") == told, "the other one says so still"
    clock.forward(hours=1)
    async with resources.db.begin(tenant.workspace_id) as session:
        await updates.set_columns(session, [UUID(second)], {"archived": True}, now=clock())
    assert await relations_of(client, "priya raman") == []
    past = await client.get("/v1/entities/priya raman/relations", params={"valid_at": now})
    assert len(past.json()["results"]) == 1
    assert (await client.post(f"/v1/memories/{second}/restore")).status_code == 200
    assert await relations_of(client, "priya raman") == told
    later = (clock() + timedelta(hours=2)).isoformat()
    await client.patch(f"/v1/memories/{second}", json={"t_invalid": later})
    assert await relations_of(client, "priya raman") == told
    clock.forward(hours=3)
    assert await relations_of(client, "priya raman") == []
    await client.patch(f"/v1/memories/{first}", json={"t_invalid": None})
    assert await relations_of(client, "priya raman") == told

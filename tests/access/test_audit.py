"""The audit log: who did what, at the configured level, without texts."""

from __future__ import annotations

import random
import string
from typing import Any, get_args
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.request import Operation, Subject
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of, opened, pages, results_of, said, store


async def level(client: AsyncClient, name: str) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": {"audit_level": name}})
    assert answer.status_code == 200, answer.text


async def log(client: AsyncClient, app: FastAPI, **params: Any) -> list[dict[str, Any]]:
    await app.state.reads.flush()
    return await results_of(client.get("/v1/audit", params=params))


async def one_of_each(client: AsyncClient) -> str:
    memory_id = await store(client, "Drinks green tea")
    await client.patch(f"/v1/memories/{memory_id}", json={"importance": 0.9})
    await client.get(f"/v1/memories/{memory_id}")
    await client.get("/v1/memories", params={"user_id": "alice"})
    await client.post("/v1/memories/search", json={"query": "green tea", "user_id": "alice", "limit": 3})
    await client.delete(f"/v1/memories/{memory_id}")
    return memory_id


READS = ["retrieve"] * 3
WRITES = ["store", "update", "delete"]


@pytest.mark.parametrize(
    ("name", "operations"),
    [("off", []), ("writes", WRITES), ("reads", [*WRITES, *READS]), ("verbose", [*WRITES, *READS])],
)
async def test_levels(client: AsyncClient, app: FastAPI, name: str, operations: list[str]) -> None:
    await level(client, name)
    await one_of_each(client)
    assert sorted(entry["operation"] for entry in await log(client, app)) == sorted(operations)


async def test_writes_tell_ids_and_no_texts(client: AsyncClient, app: FastAPI) -> None:
    memory_id = await one_of_each(client)
    found = await log(client, app)
    assert [entry["operation"] for entry in found] == ["delete", "update", "store"]
    assert [entry["affected_ids"] for entry in found] == [[memory_id]] * 3
    assert found[1]["metadata"] == {"fields": ["importance", "importance_level"]}
    assert found[2]["metadata"]["event"] == "ADD"
    assert "tea" not in str(found)
    assert {entry["user_id"] for entry in found} == {"alice"}
    assert all(entry["request_id"] and entry["api_key_id"] for entry in found)


async def test_each_write_has_an_operation_of_its_own(client: AsyncClient, app: FastAPI) -> None:
    """Also those of what is no memory."""
    source, target = await store(client, "Drinks green tea"), await store(client, "Bought a tea pot")
    relations = f"/v1/memories/{source}/relations"
    await body_of(client.post(relations, json={"target_id": target, "type": "LEADS_TO"}), 201)
    await body_of(client.delete(relations, params={"target_id": target}))
    await said(client, await opened(client, "chat"), "Hello")
    await body_of(client.put("/v1/entities", json={"name": "Acme", "type": "organization", "user_id": "alice"}), 201)
    goal = await body_of(client.post("/v1/goals", json={"description": "Move", "user_id": "alice"}), 201)
    await body_of(client.post(f"/v1/goals/{goal['id']}/complete", json={}))
    for status in (201, 200):
        await body_of(client.post("/v1/strategies", json={"description": "Ask first", "user_id": "alice"}), status)
    await body_of(client.delete(f"/v1/memories/{target}", params={"purge": True}))
    found = [entry["operation"] for entry in await log(client, app)]
    assert found[::-1] == [
        *("store", "store", "associate", "dissociate", "open", "store_turn", "upsert_entity", "goal_add"),
        *("goal_complete", "strategy_add", "strategy_reinforce", "purge"),
    ]


async def test_every_entry_names_its_session_and_what_was_in_force(client: AsyncClient, app: FastAPI) -> None:
    changed = {"audit_level": "reads", "contradiction_policy": "supersede", "dedup_near": 0.75}
    await client.patch("/v1/workspaces/current", json={"settings": changed})
    session = {"X-Session-Id": " s2 "}
    body = {"content": "Drinks green tea", "user_id": "alice"}
    memory_id = (await client.post("/v1/memories", json=body, headers=session)).json()["results"][0]["id"]
    path = f"/v1/memories/{memory_id}"
    await client.patch(path, json={"importance": 0.2}, headers=session)
    await client.get(path, headers=session)
    await client.delete(path, headers=session)
    found = await log(client, app, session_id="s2")
    assert sorted(entry["operation"] for entry in found) == ["delete", "retrieve", "store", "update"]
    assert all(entry["config_snapshot"] == {**changed, "dedup_exact": 0.98} for entry in found)


async def test_a_session_longer_than_an_index_takes_is_cut(client: AsyncClient, app: FastAPI) -> None:
    await level(client, "reads")
    long = "".join(random.Random(7).choices(string.ascii_letters, k=6_000))
    body = {"content": "Drinks green tea", "user_id": "alice"}
    answer = await client.post("/v1/memories", json=body, headers={"X-Session-Id": long})
    assert answer.status_code == 201, answer.text
    await client.get(f"/v1/memories/{answer.json()['results'][0]['id']}", headers={"X-Session-Id": long})
    assert [entry["session_id"] for entry in await log(client, app)] == [long[:255]] * 2


async def test_reads_tell_the_question_and_what_it_found(client: AsyncClient, app: FastAPI) -> None:
    await level(client, "reads")
    memory_id = await store(client, "Drinks green tea")
    body = {"query": "tea for kim.weber@example.org", "user_id": "alice"}
    await client.post("/v1/memories/search", json=body, headers={"X-Session-Id": "s1"})
    (entry,) = await log(client, app, operation="retrieve")
    assert entry["query_text"].startswith("tea for ")
    assert "kim.weber" not in entry["query_text"]
    assert (entry["affected_ids"], entry["result_count"], entry["session_id"]) == ([memory_id], 1, "s1")
    assert entry["latency_ms"] > 0
    assert entry["metadata"]["route"] == "search"
    assert [each["id"] for each in await log(client, app, session_id="s1")] == [entry["id"]]


async def test_verbose_tells_all_that_was_asked(client: AsyncClient, app: FastAPI) -> None:
    await level(client, "verbose")
    await client.post("/v1/memories/search", json={"query": "tea", "user_id": "alice", "limit": 3})
    await client.post("/v1/recall", json={"query": "tea", "user_id": "alice"})
    recalled, searched = [entry["metadata"]["asked"] for entry in await log(client, app, operation="retrieve")]
    for asked in (recalled, searched):
        techniques = asked.pop("techniques")
        assert techniques.keys() == {"hybrid", "entity_centric"}
        assert all(each.keys() == {"ms", "count"} for each in techniques.values())
    assert searched == {"limit": 3, "validity": "exclude"}


async def test_verbose_tells_of_notes_and_tools_without_their_words(
    client: AsyncClient, app: FastAPI, tables: Tables
) -> None:
    async def use() -> None:
        here, alice = {"X-Session-Id": "s3"}, {"user_id": "alice"}
        sent = [
            await client.put("/v1/working/w/items/wombat88", params=alice, json={"value": "wombat88"}, headers=here),
            await client.post("/v1/working/w/turns", params=alice, json={"role": "user", "content": "wombat88"}),
            await client.get("/v1/working/w/items/wombat88", params=alice),
            await client.delete("/v1/working/w", params=alice),
            await client.post(
                "/v1/tool-invocations", json={"tool_name": "look", "tool_input": {}, "success": True, **alice}
            ),
        ]
        assert all(each.is_success for each in sent), [each.text for each in sent]
        assert (await client.get("/v1/working/w/items/nothing", params=alice)).status_code == 404

    await use()
    assert await log(client, app) == []
    await level(client, "verbose")
    await use()
    found = await log(client, app, memory_type="working")
    assert [entry["operation"] for entry in found] == ["delete_working", "retrieve", "set_working", "set_working"]
    assert found[-1]["metadata"]["route"] == "/v1/working/{conversation_id}/items/{key:path}"
    assert (found[-1]["session_id"], found[-1]["user_id"]) == ("s3", "alice")
    [tool] = await log(client, app, memory_type="procedural")
    assert (tool["operation"], tool["user_id"]) == ("record_tool", "alice")
    assert "audit_log" not in await tables.holding("wombat88")


async def test_a_search_tells_how_it_ranked(client: AsyncClient, app: FastAPI) -> None:
    own = {"audit_level": "reads", "search_techniques": {"hybrid": False}}
    await client.patch("/v1/workspaces/current", json={"settings": own})
    await client.post("/v1/memories/search", json={"query": "tea", "user_id": "alice"})
    (entry,) = await log(client, app, operation="retrieve")
    assert entry["config_snapshot"]["search_techniques"]["hybrid"] is False


async def test_it_tells_what_narrowed_a_read_but_no_words_of_it(
    client: AsyncClient, app: FastAPI, tables: Tables
) -> None:
    await level(client, "verbose")
    tree = {"field": "memory", "operator": "contains", "value": "wombat77"}
    narrowed = {"user_id": "alice", "channels": ["red", "blue"], "tags": ["wombat77"], "time_query": "wombat77"}
    assert (await client.post("/v1/memories/search", json={**narrowed, "filters": tree})).status_code == 200
    assert (await client.get("/v1/memories", params=narrowed)).status_code == 200
    listed, searched = await log(client, app, operation="retrieve")
    assert searched["metadata"]["asked"]["narrowed_by"] == ["channels", "filters", "tags", "time_query"]
    assert listed["metadata"]["asked"]["narrowed_by"] == ["channels", "tags", "time_query"]
    assert searched["target_channels"] == listed["target_channels"] == ["red", "blue", "_global"]
    assert "audit_log" not in await tables.holding("wombat77")


async def test_matches_from_another_channel_are_recorded(
    client: AsyncClient, app: FastAPI, embedder: AngleEmbedder
) -> None:
    await level(client, "reads")
    for text, cosine in (("Known everywhere", 0.9), ("Known in atlas", 0.8), ("what is known", 1.0)):
        embedder.place(text, cosine)
    everywhere = await store(client, "Known everywhere")
    atlas = await store(client, "Known in atlas", channel="atlas", dedup=False)
    await client.get("/v1/memories/search", params={"query": "what is known", "user_id": "alice", "channel": "atlas"})
    (entry,) = await log(client, app, operation="retrieve")
    assert set(entry["affected_ids"]) == {everywhere, atlas}
    assert entry["metadata"]["cross_channel_ids"] == [everywhere]
    assert (entry["source_channel"], entry["target_channels"]) == ("atlas", ["atlas", "_global"])


async def test_filters_and_pages(client: AsyncClient, app: FastAPI) -> None:
    ids = [await store(client, f"Fact with number {number}", user_id=f"u{number % 2}") for number in range(5)]
    assert len(await log(client, app, user_id="u0")) == 3
    assert [each["affected_ids"] for each in await log(client, app, memory_id=ids[2])] == [[ids[2]]]
    assert await log(client, app, operation="delete") == []
    assert await log(client, app, channel="atlas") == []
    assert await log(client, app, conversation_id=str(uuid4())) == []
    whole = await log(client, app)
    assert [each["affected_ids"] for each in whole] == [[each] for each in reversed(ids)]
    assert [each["id"] for each in await log(client, app, **{"from": whole[1]["recorded_at"]})] == [
        each["id"] for each in whole[:2]
    ]
    assert len(await log(client, app, to=whole[1]["recorded_at"])) == 3
    paged = [each["id"] async for page in pages(client, "/v1/audit", limit=2) for each in page["results"]]
    assert paged == [each["id"] for each in whole]


async def test_a_stranger_sees_nothing(client: AsyncClient, other_client: AsyncClient, app: FastAPI) -> None:
    await store(client, "Drinks tea")
    assert await log(other_client, app) == []


@pytest.mark.parametrize(("field", "words"), [("operation", get_args(Operation)), ("memory_type", get_args(Subject))])
async def test_a_word_that_nobody_writes_is_refused(client: AsyncClient, field: str, words: tuple[str, ...]) -> None:
    """An empty answer would look as if nothing had happened."""
    for word in words:
        assert (await client.get("/v1/audit", params={field: word, "limit": 1})).status_code == 200, word
    for wrong in ("Store", "deleted", "", "store,update"):
        answer = await client.get("/v1/audit", params={field: wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, field)
        assert all(f"'{word}'" in answer.json()["detail"] for word in words)


@pytest.mark.parametrize("params", [{"memory_id": "x"}, {"from": "soon"}, {"cursor": "nonsense"}, {"limit": 0}])
async def test_what_is_no_question_is_400(client: AsyncClient, params: dict[str, Any]) -> None:
    assert (await client.get("/v1/audit", params=params)).status_code == 400

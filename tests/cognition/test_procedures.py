"""Tool invocations recorded and counted; strategies learned once and found by how well they work."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of, results_of

ALICE = {"user_id": "alice"}
USE: dict[str, Any] = {"tool_name": "search", "tool_input": {"query": "trains"}, "success": True, **ALICE}


async def use(client: AsyncClient, **fields: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/tool-invocations", json={**USE, **fields}), 201)


async def learn(client: AsyncClient, description: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/strategies", json={"description": description, **ALICE, **fields})
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def find(client: AsyncClient, task: str, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/strategies/search", params={"task": task, **ALICE, **params}))


async def talk(client: AsyncClient, name: str, **ids: str) -> str:
    body = {"messages": [{"role": "user", "content": f"Hello {name}"}], "infer": False, "run_id": name}
    answer = await client.post("/v1/memories", json={**body, **(ids or ALICE)})
    found: str = answer.json()["results"][0]["conversation_id"]
    return found


# -- invocations --------------------------------------------------------------------------------------------------


async def test_a_use_is_noted_with_all_its_parts(
    client: AsyncClient, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    conversation = await talk(client, "trip", **ALICE)
    turn = str(await tables.value("SELECT id FROM turn WHERE workspace_id = $1", tenant.workspace_id))
    body = {
        "conversation_id": conversation,
        "turn_id": turn,
        "tool_name": "search",
        "task_type": "travel",
        "tool_input": {"to": "Bergen"},
        "tool_output": [1, None],
        "success": False,
        "latency_ms": 12.5,
        "error_message": "no seats",
        "channel": "work",
    }
    noted = await body_of(client.post("/v1/tool-invocations", json=body), 201)
    assert (noted["user_id"], noted["run_id"], noted["channel"]) == ("alice", "trip", "work")
    assert (noted["turn_index"], noted["timestamp"]) == (0, clock.now.isoformat())
    [listed] = (await client.get("/v1/tool-invocations", params=ALICE)).json()["results"]
    assert {name: listed[name] for name in body} == body
    assert listed["id"] == noted["id"]


async def test_uses_are_read_page_by_page(client: AsyncClient) -> None:
    for name in ("a", "b", "c"):
        await use(client, tool_name=name)
    uses = (await client.get("/v1/tool-invocations", params={**ALICE, "limit": 2})).json()
    rest = (await client.get("/v1/tool-invocations", params={**ALICE, "cursor": uses["next_cursor"]})).json()
    assert [each["tool_name"] for each in uses["results"] + rest["results"]] == ["c", "b", "a"]
    assert rest["next_cursor"] is None
    assert (await client.get("/v1/tool-invocations?user_id=alice&cursor=x")).status_code == 400


async def test_stats_by_task_type_and_channel_with_percentiles(client: AsyncClient, clock: SetClock) -> None:
    for number in range(1, 21):
        await use(client, task_type="travel", latency_ms=number, success=number > 5)
    await use(client, task_type="mail", channel="work", latency_ms=500)
    await use(client, tool_name="book", task_type="travel", user_id="bob")

    async def stats(**params: Any) -> dict[str, Any]:
        return {each["name"]: each for each in await results_of(client.get("/v1/tools/stats", params=params))}

    travel = (await stats(task_type="travel"))["search"]
    assert (travel["usage_count"], travel["success_count"], travel["success_rate"]) == (20, 15, 0.75)
    assert (travel["avg_latency_ms"], travel["p50_latency_ms"]) == (10.5, 10.5)
    assert travel["p95_latency_ms"] == pytest.approx(19.05)
    assert set(await stats(task_type="travel")) == {"search", "book"}
    assert set(await stats(task_type="travel", user_id="bob")) == {"book"}
    assert (await stats(channel="work"))["search"]["usage_count"] == 1
    assert (await stats())["search"]["usage_count"] == 21
    assert await stats(since=(clock.now + timedelta(hours=1)).isoformat()) == {}


async def test_uses_of_others_are_unknown(client: AsyncClient, other_client: AsyncClient) -> None:
    await use(client)
    bobs = await talk(client, "bobs", user_id="bob")
    theirs = await talk(other_client, "theirs", **ALICE)
    for conversation in (bobs, theirs):
        answer = await client.post("/v1/tool-invocations", json={**USE, "conversation_id": conversation})
        assert (answer.status_code, answer.json()["field"]) == (404, "conversation_id")
    mine = await talk(client, "mine", **ALICE)
    wrong = await client.post("/v1/tool-invocations", json={**USE, "conversation_id": mine, "turn_id": str(uuid4())})
    assert (wrong.status_code, wrong.json()["field"]) == (404, "turn_id")
    assert (await client.get("/v1/tool-invocations", params={"user_id": "bob"})).json()["results"] == []
    assert (await client.get("/v1/tool-invocations")).status_code == 400
    for path in ("/v1/tools/stats", "/v1/tool-invocations?user_id=alice"):
        assert (await other_client.get(path)).json()["results"] == [], path


# -- strategies ---------------------------------------------------------------------------------------------------


async def test_a_strategy_has_all_its_parts(client: AsyncClient, clock: SetClock) -> None:
    conversation = await talk(client, "trip", **ALICE)
    made = await learn(
        client,
        "Look for night trains first",
        context_pattern="A trip within the country",
        task_type="travel",
        tool_sequence=["search", "book", "search"],
        from_conversation_id=conversation,
        channel="work",
    )
    assert (made["event"], made["channel"], made["success_count"], made["failure_count"]) == ("ADD", "work", 1, 0)
    assert made["tool_sequence"] == ["search", "book", "search"]
    assert made["conversations"] == [{"conversation_id": conversation, "success": True}]
    assert made["last_used_at"] == clock.now.isoformat()
    read = await client.get(f"/v1/strategies/{made['id']}")
    assert {**read.json(), "event": "ADD"} == made
    assert read.headers["ETag"] == '"1"'
    listed = await client.get("/v1/strategies", params={**ALICE, "channel": "work", "tool_name": "book"})
    assert [each["id"] for each in listed.json()["results"]] == [made["id"]]
    for params in ({"task_type": "mail"}, {"tool_name": "mail"}, {"channel": "home"}):
        found = await client.get("/v1/strategies", params={**ALICE, "channel": "work", **params})
        assert found.json()["results"] == [], params


async def test_what_is_as_good_as_known_is_reinforced(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("Look for night trains first", 1.0)
    embedder.place("Look for the night trains first", 0.99)
    embedder.place("Look for day trains first", 0.985)
    first = await learn(client, "Look for night trains first", tool_sequence=["search"])
    for number, words in enumerate(("look for NIGHT trains first", "Look for the night trains first"), start=2):
        again = await learn(client, words, tool_sequence=["search"])
        assert (again["event"], again["id"], again["success_count"]) == ("REINFORCE", first["id"], number), words
    failed = await learn(client, "Look for night trains first", tool_sequence=["search"], success=False)
    assert (failed["success_count"], failed["failure_count"], failed["success_rate"]) == (3, 1, 0.75)
    for words, change in (
        ("Look for day trains first", {"tool_sequence": ["search"]}),
        ("Look for night trains first", {"tool_sequence": ["book"]}),
        ("Look for night trains first", {"tool_sequence": ["search"], "task_type": "travel"}),
        ("Look for night trains first", {"tool_sequence": ["search"], "channel": "work"}),
        ("Look for night trains first", {"tool_sequence": ["search"], "user_id": "bob"}),
    ):
        assert (await learn(client, words, **change))["event"] == "ADD", change


async def test_learned_by_many_at_once_it_is_one(client: AsyncClient) -> None:
    found = await asyncio.gather(*(learn(client, "Look for night trains first") for _ in range(8)))
    assert len({each["id"] for each in found}) == 1
    assert sorted(each["event"] for each in found) == ["ADD"] + ["REINFORCE"] * 7
    assert (await client.get(f"/v1/strategies/{found[0]['id']}")).json()["success_count"] == 8


async def test_found_by_similarity_times_what_works(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place("Plan a trip", 1.0)
    embedder.place("near and bad", 0.9, side=1)
    embedder.place("further and good", 0.7, side=2)
    embedder.place("far and good", 0.2, side=3)
    bad = await learn(client, "near and bad", success=False)
    good = await learn(client, "further and good")
    far = await learn(client, "far and good")
    for _ in range(7):
        await client.post(f"/v1/strategies/{bad['id']}/reinforce", json={"success": False})
        await client.post(f"/v1/strategies/{good['id']}/reinforce", json={"success": True})
    hits = await find(client, "Plan a trip")
    assert [hit["id"] for hit in hits] == [good["id"], far["id"], bad["id"]]
    assert hits[0]["smoothed_rate"] == pytest.approx(9 / 10)
    assert hits[0]["similarity"] == pytest.approx(0.7, abs=0.001)
    assert all(hit["score"] == pytest.approx(hit["similarity"] * hit["smoothed_rate"]) for hit in hits)
    assert [hit["id"] for hit in await find(client, "Plan a trip", limit=1)] == [good["id"]]
    embedder.down = True
    assert next(hit["id"] for hit in await find(client, "Another task")) == good["id"]


async def test_channels_and_task_types(client: AsyncClient) -> None:
    everywhere = await learn(client, "everywhere")
    work = await learn(client, "at work", channel="work", task_type="mail")
    home = await learn(client, "at home", channel="home")
    await learn(client, "bob's", user_id="bob")

    async def ids(**params: Any) -> set[str]:
        return {hit["id"] for hit in await find(client, "Do it", **params)}

    assert await ids() == {everywhere["id"]}
    assert await ids(channel="work") == {everywhere["id"], work["id"]}
    assert await ids(channels=["work", "home"]) == {everywhere["id"], work["id"], home["id"]}
    assert await ids(channel="work", task_type="mail") == {work["id"]}


async def test_reinforcing_counts_each_use(client: AsyncClient, clock: SetClock) -> None:
    made = await learn(client, "Look for night trains first", success=None)
    assert (made["success_rate"], made["last_used_at"]) == (None, None)
    clock.forward(minutes=5)
    conversation = await talk(client, "trip", **ALICE)
    path = f"/v1/strategies/{made['id']}/reinforce"
    answers = await asyncio.gather(*(client.post(path, json={"success": n % 4 > 0}) for n in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    last = await client.post(path, json={"success": True, "conversation_id": conversation})
    found = last.json()
    assert (found["success_count"], found["failure_count"]) == (7, 2)
    assert found["success_rate"] == pytest.approx(7 / 9)
    assert found["last_used_at"] == clock.now.isoformat()
    assert found["conversations"] == [{"conversation_id": conversation, "success": True}]
    assert (await client.get(f"/v1/strategies/{made['id']}")).json() == found
    key = {"Idempotency-Key": "once"}
    for _ in range(2):
        assert (await client.post(path, json={"success": True}, headers=key)).json()["success_count"] == 8


async def test_strategies_of_others_are_unknown(client: AsyncClient, other_client: AsyncClient) -> None:
    made = await learn(client, "Look for night trains first")
    bobs = await talk(client, "bobs", user_id="bob")
    path = f"/v1/strategies/{made['id']}"
    for who, params in ((other_client, {}), (client, {"user_id": "bob"})):
        assert (await who.get(path, params=params)).status_code == 404
        assert (await who.post(f"{path}/reinforce", json={"success": True}, params=params)).status_code == 404
        assert (await who.delete(path, params=params)).status_code == 404
    assert await find(other_client, "trains") == []
    for body, field in (
        ({"success": True, "conversation_id": bobs}, "conversation_id"),
        ({"success": True, "conversation_id": str(uuid4())}, "conversation_id"),
    ):
        answer = await client.post(f"{path}/reinforce", json=body)
        assert (answer.status_code, answer.json()["field"]) == (404, field)
    told = await client.post("/v1/strategies", json={"description": "x", **ALICE, "from_conversation_id": bobs})
    assert (told.status_code, told.json()["field"]) == (404, "from_conversation_id")
    for unknown in (str(uuid4()), "no-uuid"):
        assert (await client.get(f"/v1/strategies/{unknown}")).status_code == 404
        answer = await client.post(f"/v1/strategies/{unknown}/reinforce", json={"success": True})
        assert answer.status_code == 404
    assert (await client.get(path)).json()["success_count"] == 1


async def test_bad_questions_are_refused(client: AsyncClient) -> None:
    for params in ({"task": ""}, {}, {"task": "x", "limit": "0"}, {"task": "x", "limit": "101"}):
        answer = await client.get("/v1/strategies/search", params={**ALICE, **params})
        assert answer.status_code == 400, params
    assert (await client.get("/v1/strategies/search", params={"task": "x"})).json()["code"] == "scope_error"
    made = await learn(client, "Look for night trains first")
    answer = await client.post(f"/v1/strategies/{made['id']}/reinforce", json={"success": 1})
    assert (answer.status_code, answer.json()["field"]) == (400, "success")


async def test_if_match(client: AsyncClient) -> None:
    made = await learn(client, "Look for night trains first")
    path = f"/v1/strategies/{made['id']}"
    await client.post(f"{path}/reinforce", json={"success": True})
    assert (await client.delete(path, headers={"If-Match": '"1"'})).status_code == 412
    assert (await client.delete(path, headers={"If-Match": '"2"'})).json() == {"deleted": 1}
    assert (await client.get(path)).status_code == 404


# -- the end ------------------------------------------------------------------------------------------------------


async def test_what_a_tool_got_from_an_erased_turn_goes_with_it(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    conversation = await talk(client, "trip", **ALICE)
    turn = await tables.value("SELECT id FROM turn WHERE workspace_id = $1", tenant.workspace_id)
    await use(client, conversation_id=conversation, turn_id=str(turn), tool_input={"query": "Whatchamacallit"})
    kept = await use(client, conversation_id=conversation)
    memory = await tables.value("SELECT id FROM memory WHERE workspace_id = $1", tenant.workspace_id)
    assert (await client.delete(f"/v1/memories/{memory}", params={"purge": True})).status_code == 200
    assert await tables.holding("Whatchamacallit") == []
    left = (await client.get("/v1/tool-invocations", params=ALICE)).json()["results"]
    assert [each["id"] for each in left] == [kept["id"]]

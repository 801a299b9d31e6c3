"""Goals over HTTP: set, listed, changed, closed, linked without cycles, and their effect on a search."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.search.scores import explained_score
from tests.support.application import Tables
from tests.support.calls import body_of, results_of, store

ALICE = {"user_id": "alice"}


async def goal(client: AsyncClient, description: str, **fields: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/goals", json={"description": description, **ALICE, **fields}), 201)


async def get(client: AsyncClient, goal_id: str) -> dict[str, Any]:
    return await body_of(client.get(f"/v1/goals/{goal_id}"))


async def test_a_goal_has_all_its_parts(client: AsyncClient, clock: SetClock) -> None:
    due = (clock.now + timedelta(days=3)).isoformat()
    made = await goal(client, "Move to Oslo", priority=5, deadline=due, channel="family")
    assert {name: made[name] for name in ("description", "status", "priority", "deadline", "channel", "user_id")} == {
        "description": "Move to Oslo",
        "status": "active",
        "priority": 5,
        "deadline": due,
        "channel": "family",
        "user_id": "alice",
    }
    assert (made["result"], made["completed_at"], made["overdue"], made["version"]) == (None, None, False, 1)
    assert await get(client, made["id"]) == made
    clock.forward(days=3)
    assert (await get(client, made["id"]))["overdue"] is True


async def test_a_goal_has_its_parent_and_its_subgoals(client: AsyncClient) -> None:
    whole = await goal(client, "Move to Oslo")
    visa = await goal(client, "Get a visa")
    part = await goal(client, "Find a flat", parent_id=whole["id"], blocked_by=[visa["id"]])
    assert part["parent"]["description"] == "Move to Oslo"
    assert part["blocked_by"] == [visa["id"]]
    assert [each["id"] for each in (await get(client, whole["id"]))["subgoals"]] == [part["id"]]
    assert (await client.delete(f"/v1/goals/{whole['id']}")).json() == {"deleted": 1}
    assert (await get(client, part["id"]))["parent_id"] is None
    assert (await client.delete(f"/v1/goals/{whole['id']}")).status_code == 404


async def test_closing_a_goal(client: AsyncClient, clock: SetClock) -> None:
    made = await goal(client, "Find a flat")
    done = await client.post(f"/v1/goals/{made['id']}/complete", json={"result": "Signed"})
    assert done.status_code == 200, done.text
    assert (done.json()["status"], done.json()["result"]) == ("completed", "Signed")
    assert done.json()["completed_at"] == clock.now.isoformat()
    again = await client.post(f"/v1/goals/{made['id']}/complete", json={"result": "Something else"})
    assert again.json() == done.json()
    other = await client.post(f"/v1/goals/{made['id']}/complete", json={"status": "abandoned"})
    assert other.status_code == 409
    for status in ("active", "blocked"):
        assert (await client.patch(f"/v1/goals/{made['id']}", json={"status": status})).status_code == 409
    assert (await client.post(f"/v1/goals/{uuid4()}/complete", json={})).status_code == 404
    given_up = await goal(client, "Buy a boat")
    answer = await client.post(f"/v1/goals/{given_up['id']}/complete", json={"status": "abandoned"})
    assert answer.json()["status"] == "abandoned"


async def test_a_blocked_goal_can_become_active_again(client: AsyncClient) -> None:
    visa, flat = await goal(client, "Get a visa"), await goal(client, "Find a flat")
    body = {"status": "blocked", "blocked_by": [visa["id"]]}
    blocked = (await client.patch(f"/v1/goals/{flat['id']}", json=body)).json()
    assert (blocked["status"], blocked["blocked_by"]) == ("blocked", [visa["id"]])
    assert blocked["completed_at"] is None
    active = (await client.patch(f"/v1/goals/{flat['id']}", json={"status": "active", "blocked_by": []})).json()
    assert (active["status"], active["blocked_by"]) == ("active", [])


async def test_a_deadline_is_set_and_taken_away(client: AsyncClient) -> None:
    made = await goal(client, "Move to Oslo")
    for deadline in ("2027-08-01T00:00:00+00:00", None):
        changed = await client.patch(f"/v1/goals/{made['id']}", json={"deadline": deadline})
        assert (changed.status_code, changed.json()["deadline"]) == (200, deadline), changed.text


async def test_every_change_is_in_the_audit(client: AsyncClient) -> None:
    made = await goal(client, "Find a flat")
    await client.patch(f"/v1/goals/{made['id']}", json={"priority": 3, "description": "Find a house"})
    await client.patch(f"/v1/goals/{made['id']}", json={"priority": 3})
    done = await client.post(f"/v1/goals/{made['id']}/complete", json={"status": "abandoned", "result": "Too dear"})
    assert (done.json()["version"], done.json()["result"]) == (3, "Too dear")
    audit = (await client.get("/v1/audit", params={"memory_type": "goal"})).json()["results"]
    assert [each["operation"] for each in reversed(audit)] == ["goal_add", "goal_update", "goal_complete"]
    assert audit[1]["metadata"]["fields"] == ["description", "priority"]
    assert audit[0]["metadata"]["status"] == "abandoned"
    assert "flat" not in str(audit)
    assert "dear" not in str(audit)


async def test_circles_are_refused(client: AsyncClient) -> None:
    first = await goal(client, "a")
    second = await goal(client, "b", parent_id=first["id"])
    third = await goal(client, "c", parent_id=second["id"], blocked_by=[first["id"]])
    closing = await client.patch(f"/v1/goals/{first['id']}", json={"parent_id": third["id"]})
    assert (closing.status_code, closing.json()["field"]) == (409, "parent_id")
    waiting = await client.patch(f"/v1/goals/{first['id']}", json={"blocked_by": [third["id"]]})
    assert (waiting.status_code, waiting.json()["field"]) == (409, "blocked_by")
    own = await client.patch(f"/v1/goals/{first['id']}", json={"parent_id": first["id"]})
    assert (own.status_code, own.json()["field"]) == (400, "parent_id")
    assert (await get(client, first["id"]))["parent_id"] is None
    # a whole may wait for its part: the two kinds of edges are apart
    part = await client.patch(f"/v1/goals/{first['id']}", json={"blocked_by": [second["id"]]})
    assert part.status_code == 200


async def test_two_edges_at_once_make_no_circle(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    ids = [(await goal(client, f"goal {number}"))["id"] for number in range(6)]
    tries = [
        client.patch(f"/v1/goals/{here}", json={"parent_id": there}) for here in ids for there in ids if here != there
    ]
    answers = await asyncio.gather(*tries)
    assert {answer.status_code for answer in answers} <= {200, 409}
    rows = await tables.fetch("SELECT source_id, target_id FROM goal_edge WHERE workspace_id = $1", tenant.workspace_id)
    parents = {row["source_id"]: row["target_id"] for row in rows}
    assert len(parents) == len(rows) == 5, "a tree over six goals"
    for start in parents:
        seen, at = set(), start
        while at in parents:
            assert at not in seen, "a circle"
            seen.add(at)
            at = parents[at]


async def test_goals_are_listed_by_status_user_and_channel(client: AsyncClient) -> None:
    made = {name: await goal(client, name) for name in ("one", "two", "three")}
    await goal(client, "at work", channel="work")
    await goal(client, "bob's", user_id="bob")
    await client.post(f"/v1/goals/{made['two']['id']}/complete", json={})

    async def listed(**params: Any) -> list[str]:
        return [each["description"] for each in await results_of(client.get("/v1/goals", params={**ALICE, **params}))]

    assert await listed() == ["at work", "three", "two", "one"]
    assert await listed(channel="_global") == ["three", "two", "one"]
    assert await listed(channel="_global", status="active") == ["three", "one"]
    assert await listed(channel="work", status="active") == ["at work", "three", "one"]
    assert await listed(user_id="bob") == ["bob's"]
    first = (await client.get("/v1/goals", params={**ALICE, "limit": 3})).json()
    second = (await client.get("/v1/goals", params={**ALICE, "cursor": first["next_cursor"]})).json()
    assert [each["description"] for each in first["results"] + second["results"]] == ["at work", "three", "two", "one"]
    assert second["next_cursor"] is None


async def test_goals_of_others_are_unknown(client: AsyncClient, other_client: AsyncClient) -> None:
    mine, bobs = await goal(client, "mine"), await goal(client, "bob's", user_id="bob")
    theirs = (await other_client.post("/v1/goals", json={"description": "theirs", **ALICE})).json()
    memory = await store(client, "Bob's memory", user_id="bob")
    for path, body in (("", None), ("/complete", {})):
        for stranger, params in ((other_client, {}), (client, {"user_id": "carol"})):
            address = f"/v1/goals/{mine['id']}{path}"
            answer = await (
                stranger.get(address, params=params)
                if body is None
                else stranger.post(address, json=body, params=params)
            )
            assert answer.status_code == 404, (path, answer.text)
    assert (await other_client.patch(f"/v1/goals/{mine['id']}", json={"priority": 1})).status_code == 404
    assert (await other_client.delete(f"/v1/goals/{mine['id']}")).status_code == 404
    for other in (bobs["id"], theirs["id"], str(uuid4())):
        for field, value in (("parent_id", other), ("blocked_by", [other])):
            answer = await client.patch(f"/v1/goals/{mine['id']}", json={field: value})
            assert (answer.status_code, answer.json()["field"]) == (404, field)
            answer = await client.post("/v1/goals", json={"description": "x", **ALICE, field: value})
            assert (answer.status_code, answer.json()["field"]) == (404, field)
    tied = await client.patch(f"/v1/goals/{mine['id']}", json={"memory_ids": [memory]})
    assert (tied.status_code, tied.json()["field"]) == (404, "memory_ids")
    assert (await get(client, mine["id"])) == mine
    assert (await client.get("/v1/goals/no-uuid")).status_code == 404


async def test_bad_changes_are_refused(client: AsyncClient) -> None:
    made = await goal(client, "Find a flat")
    for body, field in (
        ({"priority": None}, "priority"),
        ({"status": "completed"}, "status"),
        ({"colour": 1}, "colour"),
        ({"description": ""}, "description"),
    ):
        answer = await client.patch(f"/v1/goals/{made['id']}", json=body)
        assert answer.status_code == 400, body
        assert field in answer.json()["detail"]
    wrong = await client.post(f"/v1/goals/{made['id']}/complete", json={"status": "blocked"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "status")
    wrong_lists: list[dict[str, str]] = [{}, *({**ALICE, name: "0"} for name in ("status", "limit", "cursor"))]
    for params in wrong_lists:
        assert (await client.get("/v1/goals", params=params)).status_code == 400, params


async def test_if_match(client: AsyncClient) -> None:
    first = await client.post("/v1/goals", json={"description": "Find a flat", **ALICE})
    path = f"/v1/goals/{first.json()['id']}"
    assert first.headers["ETag"] == (await client.get(path)).headers["ETag"] == '"1"'
    await client.patch(path, json={"priority": 1})
    for answer in (
        await client.patch(path, json={"priority": 2}, headers={"If-Match": '"1"'}),
        await client.post(f"{path}/complete", json={}, headers={"If-Match": '"1"'}),
        await client.delete(path, headers={"If-Match": '"1"'}),
    ):
        assert answer.status_code == 412
    assert (await client.patch(path, json={"priority": 2}, headers={"If-Match": '"2"'})).json()["version"] == 3


async def test_without_an_embedder_the_goal_is_kept(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    count = "SELECT count(*) FROM goal_vector WHERE workspace_id = $1"
    made = await goal(client, "Find a flat")
    assert await tables.value(count, tenant.workspace_id) == 1
    embedder.down = True
    await client.patch(f"/v1/goals/{made['id']}", json={"description": "Find a house"})
    assert await tables.value(count, tenant.workspace_id) == 0
    await goal(client, "Learn to ski")


async def test_the_session_works_on_a_goal_it_may_see(client: AsyncClient) -> None:
    made, bobs = await goal(client, "Find a flat"), await goal(client, "bob's", user_id="bob")
    home = "/v1/working/trip/goal"
    kept = await client.put(home, json={"goal_id": made["id"]}, params=ALICE)
    assert (kept.status_code, kept.json()["description"]) == (201, "Find a flat")
    for other in (bobs["id"], str(uuid4())):
        answer = await client.put(home, json={"goal_id": other, "description": "x"}, params=ALICE)
        assert (answer.status_code, answer.json()["field"]) == (404, "goal_id")


# -- retrieval ----------------------------------------------------------------------------------------------------


async def search(client: AsyncClient, question: str) -> list[dict[str, Any]]:
    body = {"query": question, "explain": True, **ALICE}
    found: list[dict[str, Any]] = (await client.post("/v1/memories/search", json=body)).json()["results"]
    return found


async def test_memories_of_an_active_goal_rank_higher_and_explain_says_so(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    question = "Which streets are quiet?"
    embedder.place(question, 1.0)
    for text, side in (("Quiet street by the park", 1), ("Quiet street by the river", 2)):
        embedder.place(text, 0.8, side=side)
    texts = {text: await store(client, text) for text in ("Quiet street by the park", "Quiet street by the river")}
    before = await search(client, question)
    assert all("goal" not in hit["explain"]["terms"] for hit in before)
    last = before[-1]["id"]
    made = await goal(client, "Find a flat", memory_ids=[last])
    assert made["memory_ids"] == [last]
    after = await search(client, question)
    assert after[0]["id"] == last
    assert after[0]["explain"]["terms"]["goal"]["value"] == 1.0
    assert after[1]["explain"]["terms"]["goal"]["value"] == 0.0
    assert all(abs(explained_score(hit["explain"]) - hit["score"]) < 1e-6 for hit in after)
    await client.post(f"/v1/goals/{made['id']}/complete", json={})
    assert [(hit["id"], hit["score"]) for hit in await search(client, question)] == [
        (hit["id"], hit["score"]) for hit in before
    ]
    assert len(texts) == 2


async def test_what_is_near_to_an_active_goal_ranks_higher_too(client: AsyncClient, embedder: AngleEmbedder) -> None:
    question = "What is on the list?"
    embedder.place(question, 1.0, axis=2, side=3)
    embedder.place("Find a flat", 1.0, axis=0, side=1)
    embedder.place("Rent for a small place", 0.94, axis=0, side=2)
    embedder.place("Shoes for the winter", 0.0, axis=0, side=2)
    near = await store(client, "Rent for a small place")
    far = await store(client, "Shoes for the winter")
    await goal(client, "Find a flat")
    hits = {hit["id"]: hit["explain"]["terms"]["goal"]["value"] for hit in await search(client, question)}
    assert hits[near] == pytest.approx((0.94 - 0.70) / 0.30, abs=0.01)
    assert hits[far] == 0.0


async def test_goals_of_another_user_or_channel_pull_at_nothing(client: AsyncClient) -> None:
    await store(client, "Quiet street by the park")
    await goal(client, "bob's", user_id="bob")
    await goal(client, "at work", channel="work")
    assert all("goal" not in hit["explain"]["terms"] for hit in await search(client, "street"))


async def test_memories_are_tied_and_untied(client: AsyncClient) -> None:
    made, memory = await goal(client, "Find a flat"), await store(client, "Quiet street")
    path = f"/v1/goals/{made['id']}"
    for ids, version in (([memory], 2), ([memory], 2), ([], 3), ([memory, memory], 4)):
        answer = await client.patch(path, json={"memory_ids": ids})
        assert (answer.json()["memory_ids"], answer.json()["version"]) == (ids[:1], version), answer.text
    assert (await client.patch(path, json={"memory_ids": [str(uuid4())]})).status_code == 404
    await client.delete(f"/v1/memories/{memory}")
    assert (await get(client, made["id"]))["memory_ids"] == []

"""mem0's API beside its clients (make compat): keys, walls, the form of errors, retries, events, and whose memories."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.llm import ScriptedLlm
from tests.support.application import client_of, with_llm
from tests.support.calls import body_of, listed, store
from tests.support.judging import Judge

MEM0 = "/v1/compat/mem0"


async def added(client: AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": text}], "infer": False, **fields}
    return await body_of(client.post(f"{MEM0}/v3/memories/add/", json=body))


async def texts(client: AsyncClient, **filters: Any) -> list[str]:
    answer = await client.post(f"{MEM0}/v3/memories/", json={"filters": filters})
    assert answer.status_code == 200, answer.text
    return [each["memory"] for each in answer.json()["results"]]


def refusal(answer: Response, status: int, words: str) -> None:
    """One sentence in `detail`, as application/json: clients read it from nothing else."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert words in answer.json()["detail"], answer.text


async def test_the_key_comes_as_a_token(app: FastAPI, tenant: Tenant, anonymous: AsyncClient) -> None:
    headers = {"Authorization": f"Token {tenant.key}"}
    found = (await anonymous.get(f"{MEM0}/v1/ping/", headers=headers)).json()
    assert found["status"] == "ok"
    assert found["org_id"] == found["project_id"] == str(tenant.workspace_id)
    refusal(await anonymous.get(f"{MEM0}/v1/ping/", headers={"Authorization": "Token wrong"}), 401, "unknown")
    refusal(await anonymous.get(f"{MEM0}/v1/ping/"), 401, "API key")
    refusal(await anonymous.get(f"{MEM0}/v1/nothing/", headers=headers), 404, "no such route")


async def test_what_is_added_is_the_workspaces_own(client: AsyncClient, other_client: AsyncClient) -> None:
    """The same memories as through /v1, and nobody else's."""
    made = (await added(client, "Keeps bees", user_id="alice", app_id="garden"))["results"][0]
    assert (await client.get(f"/v1/memories/{made['id']}")).json()["memory"] == "Keeps bees"
    assert made["id"] in await listed(client, user_id="alice")
    there = await store(client, "Keeps goats")
    assert (await client.get(f"{MEM0}/v1/memories/{there}/")).json()["memory"] == "Keeps goats"
    shown = (await client.get(f"{MEM0}/v1/memories/{made['id']}/")).json()
    assert (shown["app_id"], shown["metadata"]) == ("garden", {})
    assert await texts(client, user_id="alice", app_id="garden") == ["Keeps bees"]
    assert await texts(other_client, user_id="alice") == []
    refusal(await other_client.get(f"{MEM0}/v1/memories/{there}/"), 404, "no memory")
    refusal(await other_client.delete(f"{MEM0}/v1/memories/{there}/"), 404, "no memory")
    assert (await other_client.get(f"{MEM0}/v1/entities/")).json()["count"] == 0


async def test_a_key_for_one_user_stays_there(app: FastAPI, client: AsyncClient) -> None:
    await added(client, "Bob's own", user_id="bob")
    made = await client.post(
        "/v1/api-keys", json={"name": "alice", "rights": ["memory:read", "memory:write"], "user_id": "alice"}
    )
    assert made.status_code == 201, made.text
    async with client_of(app, made.json()["api_key"]) as hers:
        await added(hers, "Alice's own")
        assert await texts(hers) == ["Alice's own"]
        refusal(await hers.post(f"{MEM0}/v3/memories/", json={"filters": {"user_id": "bob"}}), 403, "another")
        refusal(await hers.delete(f"{MEM0}/v1/memories/", params={"user_id": "alice"}), 403, "memory:delete")
        names = [each["name"] for each in (await hers.get(f"{MEM0}/v1/entities/")).json()["results"]]
        assert names == ["alice"]


async def test_nothing_is_deleted_that_was_not_named(client: AsyncClient) -> None:
    for user in ("alice", "bob"):
        await added(client, f"Of {user}", user_id=user, run_id="r1")
    for query, words in (
        ({}, "At least one of user_id"),
        ({"user_id": "*"}, "everyone"),
        ({"usr_id": "alice"}, "usr_id: is not a parameter"),
        ({"user_id": "alice", "app_id": "x"}, "a deletion is limited"),
        ({"filters": "{'user_id': 'alice', 'created_at': '2020'}"}, "a deletion is limited"),
        ({"filters": "{'user_id': __import__('os')}"}, "must be an object of ids"),
        ({"filters": "alice"}, "must be an object of ids"),
    ):
        refusal(await client.delete(f"{MEM0}/v1/memories/", params=query), 400, words)
    assert len(await texts(client, run_id="r1")) == 2
    gone = await client.delete(f"{MEM0}/v1/memories/", params={"filters": "{'user_id': 'alice'}"})
    assert gone.json()["message"]
    assert await texts(client, run_id="r1") == ["Of bob"]
    left = await client.delete(f"{MEM0}/v2/entities/app/garden/")
    refusal(left, 400, "apps are not distinguished")


FILTERS: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"user_id": "alice"}, ["tea", "rye"]),
    ({"AND": [{"user_id": "alice"}, {"categories": {"contains": "nothing"}}]}, []),
    ({"user_id": {"in": ["alice", "bob"]}}, ["tea", "rye", "ale"]),
    ({"OR": [{"user_id": "alice"}, {"user_id": "bob"}]}, ["tea", "rye", "ale"]),
    ({"OR": [{"user_id": "bob"}, {"agent_id": "guide"}]}, ["rye", "ale"]),
    ({"AND": [{"user_id": "alice"}, {"NOT": {"metadata": {"kind": "drink"}}}]}, ["rye"]),
    ({"AND": [{"user_id": "alice"}, {"agent_id": "*"}]}, ["rye"]),
    ({"AND": [{"user_id": "alice"}, {"OR": [{"keywords": {"icontains": "TEA"}}, {"kind": "ale"}]}]}, ["tea"]),
    ({"user_id": "alice", "created_at": {"gte": "2020-01-01", "lt": "2999-01-01"}}, ["tea", "rye"]),
    ({"AND": [{"user_id": "alice"}, {"user_id": "bob"}]}, []),
    ({"user_id": "alice", "kind": "*"}, ["tea"]),
    ({"user_id": "alice", "kind": {"in": ["*"]}}, ["tea"]),
    ({"user_id": "alice", "kind": {"ne": "*"}}, ["rye"]),
    ({"user_id": "alice", "kind": {"contains": "*"}}, []),
)


async def test_a_batch_leaves_out_what_is_no_id(client: AsyncClient) -> None:
    ids = [
        (await added(client, text, user_id="alice"))["results"][0]["id"]
        for text in ("One boat", "Two geese", "Three kilns")
    ]
    unknown = "01a206a3-5e2c-70f6-83f7-413baf8bea2e"
    for named, count in (([*ids[:2], "x", unknown, "x"], 2), (["x", unknown], 0), (["x"], 0)):
        gone = await client.request("DELETE", f"{MEM0}/v1/batch/", json={"memory_ids": named})
        assert gone.json()["message"] == f"Successfully deleted {count} memories", gone.text
        assert gone.json()["not_found"] == [each for each in (unknown, "x") if each in named]
    assert await texts(client, user_id="alice") == ["Three kilns"]


async def test_a_list_has_as_many_as_its_limit(client: AsyncClient) -> None:
    for text in ("One boat", "Two geese", "Three kilns"):
        await added(client, text, user_id="alice")
    listed = await client.get(f"{MEM0}/v1/memories/", params={"user_id": "alice", "limit": 2})
    assert (len(listed.json()["results"]), listed.json()["count"]) == (2, 3)


async def test_filters_choose_whose_memories_and_which(client: AsyncClient) -> None:
    await added(client, "tea", user_id="alice", metadata={"kind": "drink"})
    await added(client, "rye", user_id="alice", agent_id="guide")
    await added(client, "ale", user_id="bob", metadata={"kind": "drink"})
    for filters, expected in FILTERS:
        assert sorted(await texts(client, **filters)) == sorted(expected), filters
        body = {"query": "tea rye ale", "filters": filters}
        hits = (await client.post(f"{MEM0}/v2/memories/search/", json=body)).json()["results"]
        assert sorted(each["memory"] for each in hits) == sorted(expected), filters
    for wrong, words in (
        ({"OR": [{"user_id": "alice"}, {"created_at": {"gte": "2020-01-01"}}]}, "At least one of user_id"),
        ({"OR": [{"user_id": "alice"}, {"AND": [{"user_id": "bob"}, {"agent_id": "x"}]}]}, "too many combinations"),
        ({"user_id": "alice", "kind": {"like": "x"}}, "filters.kind.like: must be one of eq, ne, "),
        ({"user_id": "alice", "OR": []}, "filters.OR: must be a list"),
        ({"user_id": "alice", "OR": [{}]}, "empty condition"),
        ({"user_id": 5}, "filters.user_id: must be a string"),
        ({"user_id": "alice", "metadata": "drink"}, "filters.metadata: must be an object"),
        ({"AND": [{"user_id": "alice"}, {"kind": {"gte": [1]}}]}, "filters.AND[1].kind.gte: gte takes a single"),
        ({"user_id": "alice", "or": [{"kind": "ale"}]}, "filters.or: must be a string"),
        ({"user_id": "alice", "memory_ids": ["x"]}, "filters.memory_ids: must be a UUID"),
        (
            {"user_id": "alice", "created_at": {"icontains": "2020"}},
            "filters.created_at.icontains: icontains cannot be used",
        ),
    ):
        refused = await client.post(f"{MEM0}/v3/memories/", json={"filters": wrong})
        refusal(refused, 400, words)
        assert refused.json()["detail"].startswith(refused.json()["field"]) or "At least one" in words
    refusal(await client.post(f"{MEM0}/v3/memories/", json={"filters": "alice"}), 400, "filters: must be an object")


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("v2/memories/", {"page": 0}, "page: must be at least 1."),
    ("v2/memories/", {"page_size": -1}, "page_size: must be at least 1."),
    ("v2/memories/", {"limit": 0}, "page_size: must be at least 1."),
    ("v2/memories/", {"page": 1.5}, "page: must be a whole number."),
    ("v2/memories/", {"page": 20_000, "page_size": 1}, "page: paging ends after 10,000 memories"),
    ("v2/memories/", {"fields": 5}, "fields: must be a list."),
    ("v2/memories/", {"filters": {"OR": [{"user_id": "alice"}] * 6_000}}, "filters: contains more than 10,000 values."),
    ("v2/memories/", {"metadata": "x"}, "metadata: must be an object"),
    ("v2/memories/", {"user_id": 5}, "user_id: must be a string."),
    ("v2/memories/", {"show_expired": "maybe"}, "show_expired: must be true or false."),
    ("v2/memories/search/", {"query": "tea", "threshold": "high"}, "threshold: must be a valid number"),
    ("v2/memories/search/", {"query": "tea", "rerank": "yes"}, "rerank: must be true or false."),
    ("v3/memories/add/", {"messages": "Rows.", "async_mode": "no"}, "async_mode: must be true or false."),
    ("v3/memories/add/", {"messages": "Rows.", "filters": ["alice"]}, "filters: must be an object."),
    ("v3/memories/add/", {"messages": "Rows.", "expiration_date": "2020-01-01"}, "expiration_date: must not be in"),
    ("v1/feedback/", {"feedback": "POSITIVE"}, "memory_id: is missing."),
)


@pytest.mark.parametrize(("path", "fields", "words"), WRONG)
async def test_a_wrong_field_is_named(client: AsyncClient, path: str, fields: dict[str, Any], words: str) -> None:
    await added(client, "tea", user_id="alice")
    refused = await client.post(f"{MEM0}/{path}", json={"user_id": "alice", "filters": {"user_id": "alice"}, **fields})
    refusal(refused, 400, words)
    assert refused.json()["field"] == words.partition(":")[0]


async def test_numbers_of_a_url_are_read_too(client: AsyncClient) -> None:
    for text in ("tea", "rye", "ale"):
        await added(client, text, user_id="alice", metadata={"kind": text})
    for path in ("memories/", "entities/", "events/"):
        refusal(await client.get(f"{MEM0}/v1/{path}?user_id=alice&page=0"), 400, "page: must be at least 1")
    seen = [await body_of(client.get(f"{MEM0}/v1/events/?page_size=2&page={page}")) for page in (1, 2, 3)]
    assert [len(each["results"]) for each in seen] == [2, 1, 0]
    assert len({each["id"] for page in seen for each in page["results"]}) == 3
    assert [bool(each["next"]) for each in seen] == [True, False, False]
    for query in ("keywords=TEA", "keywords=tea&show_expired=false&fields=metadata,hash"):
        [one] = (await body_of(client.get(f"{MEM0}/v1/memories/?user_id=alice&{query}")))["results"]
        assert one["metadata"] == {"kind": "tea"}
    assert (await body_of(client.get(f"{MEM0}/v1/memories/?user_id=alice&categories=none,no")))["results"] == []
    kinds = {"filters": {"user_id": "alice"}, "metadata": {"kind": {"in": ["tea", "ale"]}}}
    listed = (await body_of(client.post(f"{MEM0}/v2/memories/", json=kinds)))["results"]
    assert sorted(each["memory"] for each in listed) == ["ale", "tea"]


async def test_pages_of_several_users_do_not_overlap(client: AsyncClient) -> None:
    for user in ("alice", "bob"):
        for number in range(3):
            await added(client, f"{user} {number}", user_id=user)
    filters = {"user_id": {"in": ["alice", "bob"]}}
    seen: list[str] = []
    for page in (1, 2, 3):
        answer = await client.post(
            f"{MEM0}/v3/memories/", params={"page": page, "page_size": 2}, json={"filters": filters}
        )
        found = answer.json()
        assert found["count"] == 6
        seen += [each["id"] for each in found["results"]]
    assert len(set(seen)) == 6
    assert found["next"] is None
    far = await client.post(f"{MEM0}/v3/memories/", params={"page": 900}, json={"filters": filters})
    refusal(far, 400, "page: paging ends after 10,000 memories")


async def test_with_a_model_an_add_is_pending_until_its_event_is_done(resources: Resources, tenant: Tenant) -> None:
    talk = {"messages": "I moved to Lisbon last month.", "user_id": "alice"}
    async with with_llm(resources, tenant, Judge()) as client:
        found = (await client.post(f"{MEM0}/v3/memories/add/", json=talk)).json()
        assert found["status"] == "PENDING"
        event = (await client.get(f"{MEM0}/v1/event/{found['event_id']}/")).json()
        assert (event["status"], event["event_type"], event["results"]) == ("PENDING", "ADD", [])
        assert (await client.get(f"{MEM0}/v1/events/")).json()["results"][0]["id"] == found["event_id"]
        refusal(await client.get(f"{MEM0}/v1/event/{uuid4()}/"), 404, "no event")


async def test_the_list_of_events_has_what_came_of_each(client: AsyncClient) -> None:
    for text in ("Keeps bees", "Keeps goats"):
        await added(client, text, user_id="alice")
    events = (await client.get(f"{MEM0}/v1/events/")).json()["results"]
    assert [each["data"]["memory"] for event in events for each in event["results"]] == ["Keeps goats", "Keeps bees"]
    for event in events:
        assert (await client.get(f"{MEM0}/v1/event/{event['id']}/")).json() == event


async def test_these_routes_are_not_in_the_document(client: AsyncClient) -> None:
    assert "compat" not in (await client.get("/openapi.json")).text


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("v1/exports", "GET /v1/memories"),
        ("v1/summary", "POST /v1/recall"),
        ("v2/profiles/settings", "GET /v1/users/{user_id}/profile"),
        ("api/v1/webhooks/projects/1", "POST /v1/webhooks"),
    ],
)
async def test_what_is_not_offered_says_what_to_use_instead(client: AsyncClient, path: str, instead: str) -> None:
    refusal(await client.post(f"{MEM0}/{path}/", json={}), 501, instead)


OWN_NAMES = (
    *("role", "channel", "speaker", "hash", "summary", "type", "importance", "timestamp", "version", "id"),
    *("embedding", "archived", "session_id", "tags", "category", "priority", "a.b"),
)


@pytest.mark.parametrize("infer", [True, False])
async def test_metadata_may_have_any_names(client: AsyncClient, infer: bool) -> None:
    own = {name: f"own {name}" for name in OWN_NAMES}
    add = {"messages": "I like tea.", "user_id": "alice", "metadata": own, "infer": infer}
    made = (await client.post(f"{MEM0}/v3/memories/add/", json=add)).json()["results"]
    await client.post(f"{MEM0}/v3/memories/add/", json={**add, "messages": "I like rye.", "metadata": {}})
    [found] = [each for each in made if each["event"] == "ADD"]
    assert (await client.get(f"{MEM0}/v1/memories/{found['id']}/")).json()["metadata"] == own
    for name, value in own.items():
        for wanted in (value, {"eq": value}, {"in": [value]}, {"ne": None}, {"icontains": "OWN"}):
            filters = {"AND": [{"user_id": "alice"}, {name: wanted}]}
            hits = (await client.post(f"{MEM0}/v2/memories/search/", json={"query": "tea", "filters": filters})).json()
            assert [each["id"] for each in hits["results"]] == [found["id"]], (name, wanted)
    changed = await client.put(f"{MEM0}/v1/memories/{found['id']}/", json={"metadata": {"type": "note", "id": 7}})
    assert changed.json()["metadata"] == {**own, "type": "note", "id": 7}


async def test_the_time_of_an_add_is_when_it_was_created(client: AsyncClient) -> None:
    talk = [{"role": "user", "content": "I went to the dentist today.", "created_at": "2015-03-01T10:00:00Z"}]
    for sent in ({"messages": "I like tea.", "timestamp": 1437716648}, {"messages": talk}, {"messages": "I like ale."}):
        answer = await client.post(f"{MEM0}/v1/memories/", json={"user_id": "alice", **sent})
        assert answer.status_code == 200, answer.text
    listed = (await client.post(f"{MEM0}/v3/memories/", json={"filters": {"user_id": "alice"}})).json()["results"]
    assert [each["created_at"][:10] for each in listed][1:] == ["2015-07-24", "2015-03-01"]
    assert listed[1]["created_at"] == "2015-07-24T05:44:08+00:00"
    assert "(1 March 2015)" in listed[2]["memory"]
    assert await texts(client, user_id="alice", created_at={"lte": "2020-07-23"}) == [
        each["memory"] for each in listed[1:]
    ]
    assert await texts(client, user_id="alice", timestamp={"lt": "2015-07-01"}) == [listed[2]["memory"]]
    late = await client.post(f"{MEM0}/v2/memories/", json={"filters": {"user_id": "alice"}, "start_date": "2015-06-01"})
    assert [each["memory"] for each in late.json()["results"]] == [each["memory"] for each in listed[:2]]


async def test_the_offset_of_a_time_says_what_yesterday_is(client: AsyncClient) -> None:
    at, said = "2026-03-01T22:30:00-05:00", {"role": "user", "content": "I went to the dentist yesterday."}
    adds: list[dict[str, Any]] = [{"messages": [said], "timestamp": at}, {"messages": [{**said, "created_at": at}]}]
    for number, sent in enumerate(adds):
        answer = await client.post(f"{MEM0}/v1/memories/", json={"user_id": f"u{number}", **sent})
        assert answer.json()["results"][0]["memory"] == "User: I went to the dentist yesterday (28 February 2026)."


@pytest.mark.parametrize("top_k", [0, -1])
async def test_no_results_cannot_be_asked_for(client: AsyncClient, top_k: int) -> None:
    answer = await client.post(
        f"{MEM0}/v2/memories/search/", json={"query": "tea", "filters": {"user_id": "alice"}, "top_k": top_k}
    )
    refusal(answer, 400, "top_k: must be at least 1")
    assert answer.json()["field"] == "top_k"


async def test_the_project_has_the_name_of_the_workspace(client: AsyncClient) -> None:
    assert (await client.patch("/v1/workspaces/current", json={"name": "Acme Ltd"})).status_code == 200
    workspace = (await client.get(f"{MEM0}/v1/ping/")).json()["org_id"]
    found = await client.get(f"{MEM0}/api/v1/orgs/organizations/{workspace}/projects/{workspace}/")
    assert found.json()["name"] == "Acme Ltd"


async def test_an_event_tells_that_the_model_failed(resources: Resources, tenant: Tenant) -> None:
    async with with_llm(resources, tenant, ScriptedLlm(extract=None)) as client:
        add = {"messages": "I like tea.", "user_id": "alice", "async_mode": False}
        made = (await client.post(f"{MEM0}/v1/memories/", json=add)).json()
        event = (await client.get(f"{MEM0}/v1/event/{made['event_id']}/")).json()
        assert made["warnings"]
        assert event["warnings"] == made["warnings"]
        assert event["error"].startswith("llm_")

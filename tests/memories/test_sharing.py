"""What a workspace shares: who may write it, who sees it, and that nothing private goes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from sqlalchemy import text

from service.postgres.engine import Database
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import events, listed, opened, results_of, said, store

LACKS = "This key lacks the right memory:share."
RULE = "The office closes at six"


async def share(client: AsyncClient, content: str = RULE, **fields: Any) -> str:
    """The id of a new shared memory."""
    answer = await client.post("/v1/memories", json={"content": content, "shared": True, **fields})
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["results"][0]["id"]
    return found


async def found(client: AsyncClient, query: str = "office", **asked: Any) -> dict[str, bool]:
    """By id, whether the hit is nobody's own."""
    answer = await client.post("/v1/memories/search", json={"query": query, **asked})
    assert answer.status_code == 200, answer.text
    return {each["id"]: is_shared(each) for each in answer.json()["results"]}


def is_shared(found: dict[str, Any]) -> bool:
    return all(found[name] is None for name in ("user_id", "agent_id", "run_id"))


@asynccontextmanager
async def with_rights(app: FastAPI, client: AsyncClient, *rights: str) -> AsyncIterator[AsyncClient]:
    answer = await client.post("/v1/api-keys", json={"name": "made", "rights": list(rights)})
    async with client_of(app, answer.json()["api_key"]) as made:
        yield made


@pytest.fixture
async def agent(app: FastAPI, client: AsyncClient) -> AsyncIterator[AsyncClient]:
    """A key that may do everything with memories but share them."""
    rights = ("memory:read", "memory:write", "memory:delete", "memory:purge", "memory:admin")
    async with with_rights(app, client, *rights) as made:
        yield made


async def test_every_user_finds_it_who_asks_for_it_and_only_his_own_beside_it(client: AsyncClient) -> None:
    rule = await share(client)
    mine, hers = await store(client, "My office is on floor 3"), await store(client, "My office is red", user_id="bea")
    assert await found(client, user_id="alice", include_shared=True) == {rule: True, mine: False}
    assert await found(client, user_id="bea", include_shared=True) == {rule: True, hers: False}
    assert await found(client, agent_id="guide", include_shared=True) == {rule: True}
    assert await found(client, user_id="alice") == {mine: False}
    assert await found(client, shared=True) == {rule: True}


async def test_another_workspace_sees_nothing_of_it(client: AsyncClient, other_client: AsyncClient) -> None:
    rule = await share(client)
    assert await found(other_client, user_id="alice", include_shared=True) == {}
    assert await found(other_client, shared=True) == {}
    assert (await other_client.get(f"/v1/memories/{rule}")).status_code == 404


async def test_the_workspace_says_whether_reads_see_it(client: AsyncClient) -> None:
    rule, mine = await share(client), await store(client, "My office is on floor 3")
    await client.patch("/v1/workspaces/current", json={"settings": {"include_shared": True}})
    assert set(await found(client, user_id="alice")) == {rule, mine}
    assert set(await found(client, user_id="alice", include_shared=False)) == {mine}
    assert await listed(client, user_id="alice") == {rule, mine}
    assert await listed(client, user_id="alice", include_shared=False) == {mine}


async def test_every_read_of_a_scope_may_have_it(client: AsyncClient) -> None:
    rule = await share(client, tags=["house"])
    mine = await store(client, "My office is on floor 3", tags=["house"])
    asked: dict[str, Any] = {"user_id": "alice", "include_shared": True}
    routes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", {}),
        ("/by-tag", {"tags": "house"}),
        ("/search", {"query": "office"}),
        ("/../timeline", {}),
    )
    for path, more in routes:
        answer = await client.get(f"/v1/memories{path}", params={**asked, **more})
        assert {each["id"] for each in answer.json()["results"]} == {rule, mine}, path
        answer = await client.get(f"/v1/memories{path}", params={"user_id": "alice", **more})
        assert {each["id"] for each in answer.json()["results"]} == {mine}, path
    recalled = (await client.post("/v1/recall", json={"query": "office", **asked})).json()
    assert {each["id"]: is_shared(each) for each in recalled["facts"]} == {rule: True, mine: False}
    nothing_else = (await client.post("/v1/recall", json={"query": "office", "shared": True})).json()
    assert {each["id"] for each in nothing_else["facts"]} == {rule}


async def test_a_conversation_has_it_in_its_context(client: AsyncClient) -> None:
    rule = await share(client)
    talk = await opened(client, "talk")
    await said(client, talk, "When does the office close?")
    for include, expected in ((True, [rule]), (False, [])):
        answer = await client.get(f"/v1/conversations/{talk}/context", params={"include_shared": include})
        assert [each["id"] for each in answer.json()["memories"]] == expected


async def test_recall_of_what_is_shared_tells_no_turns(client: AsyncClient) -> None:
    talk = await opened(client, "talk")
    await said(client, talk, "My office is on floor 3")
    recalled = (await client.post("/v1/recall", json={"query": "office", "shared": True})).json()
    assert recalled["turns"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": RULE, "shared": True, "user_id": "alice"}, "user_id"),
        ({"content": RULE, "shared": True, "agent_id": "guide"}, "agent_id"),
        ({"content": RULE, "shared": True, "run_id": "r1"}, "run_id"),
        ({"messages": RULE, "shared": True}, "shared"),
        ({"messages": RULE, "shared": True, "infer": False}, "shared"),
    ],
)
async def test_it_belongs_to_nobody_else(client: AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/memories", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"shared": True, "user_id": "alice"}, "user_id"),
        ({"shared": True, "include_shared": False}, "include_shared"),
        ({"include_shared": True}, None),
        ({"user_id": "alice", "scope_match": "some"}, "scope_match"),
        ({"user_id": "alice", "agent_id": "guide", "scope_match": "any", "scope_mode": "exact"}, "scope_mode"),
    ],
)
async def test_what_cannot_be_asked_together(client: AsyncClient, asked: dict[str, Any], field: str | None) -> None:
    answer = await client.post("/v1/memories/search", json={"query": "office", **asked})
    assert answer.status_code == 400, answer.text
    assert answer.json().get("field") == field or field is None


async def test_without_the_right_nothing_shared_is_written_changed_or_deleted(
    client: AsyncClient, agent: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    rule, other = await share(client), await share(client, "Lunch is at noon")
    await client.post(f"/v1/memories/{rule}/relations", json={"target_id": other, "type": "RELATES_TO"})
    before = await tables.contents(tenant.workspace_id)
    relation = {"target_id": other, "type": "PART_OF"}
    refused: list[tuple[str, str, dict[str, Any] | None]] = [
        ("POST", "/v1/memories", {"content": "Everybody pays me", "shared": True}),
        ("PATCH", f"/v1/memories/{rule}", {"content": "It closes at nine"}),
        ("PUT", f"/v1/memories/{rule}", {"content": "It closes at nine"}),
        ("DELETE", f"/v1/memories/{rule}", None),
        ("DELETE", f"/v1/memories/{rule}?purge=true", None),
        ("DELETE", "/v1/memories?shared=true", None),
        ("POST", "/v1/memories/batch/delete", {"ids": [rule]}),
        ("POST", f"/v1/memories/{rule}/archive", None),
        ("POST", f"/v1/memories/{rule}/restore", None),
        ("POST", f"/v1/memories/{rule}/relations", relation),
        ("DELETE", f"/v1/memories/{rule}/relations?target_id={other}&type=RELATES_TO", None),
    ]
    for method, path, body in refused:
        answer = await agent.request(method, path, json=body)
        assert (answer.status_code, answer.json()["detail"]) == (403, LACKS), (path, answer.text)
    batch = (await agent.post("/v1/memories/batch", json={"items": [{"content": "x y", "shared": True}]})).json()
    assert batch["results"][0]["error"]["detail"] == LACKS
    after = await tables.contents(tenant.workspace_id)
    assert {name for name in after if after[name] != before[name]} <= {"api_key"}
    assert set(await found(agent, shared=True)) >= {rule}, "reading needs no more than memory:read"


async def test_with_the_right_all_of_it_works(app: FastAPI, client: AsyncClient) -> None:
    rights = ("memory:read", "memory:write", "memory:delete", "memory:share")
    async with with_rights(app, client, *rights) as keeper:
        rule, other = await share(keeper), await share(keeper, "Lunch is at noon")
        again = (await keeper.post("/v1/memories", json={"content": RULE, "shared": True})).json()["results"][0]
        assert (again["event"], again["id"]) == ("NONE", rule)
        assert (await keeper.patch(f"/v1/memories/{rule}", json={"content": "It closes at nine"})).status_code == 200
        assert (await keeper.put(f"/v1/memories/{rule}", json={"content": "It closes at ten"})).status_code == 200
        assert await events(keeper, rule) == ["ADD", "UPDATE", "UPDATE"]
        tie = {"target_id": other, "type": "RELATES_TO"}
        assert (await keeper.post(f"/v1/memories/{rule}/relations", json=tie)).status_code == 201
        assert (await keeper.get(f"/v1/memories/{rule}?user_id=alice")).json()["shared"] is True
        assert (await keeper.delete(f"/v1/memories/{rule}")).status_code == 200
        assert set(await found(keeper, "lunch", shared=True)) == {other}


async def test_the_database_refuses_it_too(client: AsyncClient, database: Database, tenant: Tenant) -> None:
    """Should a route forget to ask: a transaction that does not say so writes nothing shared."""
    rule = await share(client)
    for change in ("UPDATE memory SET content = 'mine' WHERE id = :id", "DELETE FROM memory WHERE id = :id"):
        async with database.begin(tenant.workspace_id) as session:
            assert (await session.execute(text(change), {"id": rule})).rowcount == 0
    takes_it = text("UPDATE memory SET user_id = NULL WHERE user_id = 'alice'")
    mine = await store(client, "I sit here")
    with pytest.raises(Exception, match="row-level security"):
        async with database.begin(tenant.workspace_id) as session:
            await session.execute(takes_it)
    assert await listed(client, user_id="alice") == {mine}
    async with database.begin(tenant.workspace_id, writes_shared=True) as session:
        allowed = text("UPDATE memory SET summary = 'x' WHERE id = :id")
        assert (await session.execute(allowed, {"id": rule})).rowcount == 1


async def test_deleting_or_purging_a_user_leaves_it(client: AsyncClient) -> None:
    rule = await share(client)
    for purge in (False, True):
        await store(client, "My office is on floor 3")
        gone = await client.delete("/v1/memories", params={"user_id": "alice", "purge": purge})
        assert gone.status_code == 200, gone.text
        assert await found(client, user_id="alice", include_shared=True) == {rule: True}


async def test_deleting_all_that_is_shared_takes_nothing_else(client: AsyncClient) -> None:
    await share(client)
    await share(client, "Lunch is at noon", channel="red")
    mine, talk = await store(client, "My office is on floor 3"), await opened(client, "talk")
    assert (await client.delete("/v1/memories?shared=true&user_id=alice")).json()["field"] == "user_id"
    assert (await client.delete("/v1/memories?shared=true&purge=true")).json()["field"] == "purge"
    assert (await client.delete("/v1/memories?shared=true&channel=red")).json()["deleted"] == 1
    assert (await client.delete("/v1/memories?shared=true")).json()["deleted"] == 1
    assert await listed(client, user_id="alice", include_shared=True) == {mine}
    assert (await client.get(f"/v1/conversations/{talk}")).status_code == 200


async def test_no_edge_leads_from_what_is_shared_to_what_is_not(client: AsyncClient) -> None:
    rule, mine = await share(client), await store(client, "My office is on floor 3")
    for source, target in ((rule, mine), (mine, rule)):
        tie = {"target_id": target, "type": "RELATES_TO"}
        answer = await client.post(f"/v1/memories/{source}/relations", json=tie)
        assert (answer.status_code, answer.json()["field"]) == (400, "target_id"), answer.text


async def test_of_two_ids_one_is_enough_where_any_is_asked_for(client: AsyncClient) -> None:
    alice = await store(client, "My office is on floor 3")
    both = await store(client, "Our office has a door", agent_id="guide")
    guide = await store(client, "The office has a guide", user_id="bea", agent_id="guide")
    rule = await share(client)
    ids = {"user_id": "alice", "agent_id": "guide"}
    assert set(await found(client, **ids)) == {both}
    assert set(await found(client, **ids, scope_match="any")) == {alice, both, guide}
    assert set(await found(client, **ids, scope_match="any", include_shared=True)) == {alice, both, guide, rule}
    assert await listed(client, **ids, scope_match="any") == {alice, both, guide}


async def moved(client: AsyncClient) -> tuple[str, dict[str, Any]]:
    """The id of a shared memory, and what became of one that replaces it."""
    home = await share(client, "Our office is in Lisbon.")
    answer = await client.post("/v1/memories", json={"content": "Our office moved to Porto.", "shared": True})
    result: dict[str, Any] = answer.json()["results"][0]
    return home, result


async def test_a_decision_about_it_is_undone_with_the_right_alone(client: AsyncClient, agent: AsyncClient) -> None:
    home, result = await moved(client)
    decided = (await client.get(f"/v1/memories/{result['id']}/decisions")).json()["results"]
    decision = next(each["id"] for each in decided if each["event"] == result["event"])
    refused = await agent.post(f"/v1/decisions/{decision}/undo")
    assert (refused.status_code, refused.json()["detail"]) == (403, LACKS)
    assert (await client.post(f"/v1/decisions/{decision}/undo")).status_code == 200
    texts = {each["memory"] for each in (await client.get("/v1/memories?shared=true")).json()["results"]}
    assert texts == {"Our office is in Lisbon."}
    assert home in await listed(client, shared=True)


async def test_what_a_user_says_changes_nothing_shared(client: AsyncClient) -> None:
    home = await share(client, "The office is in Lisbon.")
    for content in ("The office is in Lisbon.", "The office moved to Porto."):
        answer = await client.post("/v1/memories", json={"content": content, "user_id": "alice"})
        assert answer.json()["results"][0]["event"] != "NONE"
    told = {"messages": "The office moved to Porto last week.", "user_id": "alice"}
    assert (await client.post("/v1/memories", json=told)).status_code == 200
    assert await listed(client, shared=True) == {home}
    assert await events(client, home) == ["ADD"]


async def test_forgetting_reaches_it_only_where_it_is_asked_for(client: AsyncClient, agent: AsyncClient) -> None:
    rule = await share(client, "Locker 4711 is broken")
    for asked in ({"query": "4711", "user_id": "alice"}, {"ids": [rule], "user_id": "alice"}):
        answer = (await client.post("/v1/forget", json=asked)).json()
        assert (answer["removed"], answer["memories"]) == (False, [])
    refused = await agent.post("/v1/forget", json={"query": "4711", "shared": True})
    assert (refused.status_code, refused.json()["detail"]) == (403, LACKS)
    both = await client.post("/v1/forget", json={"query": "4711", "shared": True, "user_id": "alice"})
    assert (both.status_code, both.json()["field"]) == (400, "user_id")
    gone = (await client.post("/v1/forget", json={"query": "4711", "shared": True})).json()
    assert [each["id"] for each in gone["memories"]] == [rule]
    assert await listed(client, shared=True) == set()


async def test_many_go_by_an_operation(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.erasure.forget_scope.MAX_INLINE_ROWS", 1)
    for content in ("The kettle is red", "Lunch is at noon", "Bikes go into the yard"):
        await share(client, content)
    mine = await store(client, "My office is on floor 3")
    answer = await client.delete("/v1/memories?shared=true")
    assert answer.status_code == 202, answer.text
    assert mine in await listed(client, user_id="alice")


async def test_what_was_believed_is_asked_of_it_too(client: AsyncClient, clock: SetClock) -> None:
    clock.now = datetime.now(UTC)  # history goes by the database's clock
    rule, mine = await share(client), await store(client, "My office is on floor 3")
    clock.now = datetime.now(UTC)
    before = clock.now.isoformat()
    await client.patch(f"/v1/memories/{rule}", json={"content": "The office closes at nine"})
    asked: tuple[dict[str, Any], ...] = ({"shared": True}, {"user_id": "alice", "include_shared": True})
    for each, ids in zip(asked, ({rule}, {rule, mine}), strict=True):
        then = await results_of(client.get("/v1/memories", params={**each, "as_of": before}))
        assert {one["id"] for one in then} == ids
        assert RULE in {one["memory"] for one in then}


async def test_its_categories_are_counted(client: AsyncClient) -> None:
    await share(client, "We eat lunch at noon in the kitchen")
    alone = (await client.get("/v1/stats/categories?user_id=alice")).json()
    both = (await client.get("/v1/stats/categories?user_id=alice&include_shared=true")).json()
    assert (alone["results"], both["results"]) != ([], [])
    assert alone["results"] == []

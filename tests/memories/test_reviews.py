"""What becomes of a fact that contradicts a stored one, under each policy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from service.memories import lifecycle
from service.postgres.engine import Database
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables
from tests.support.calls import events, listed, results_of, store
from tests.support.judging import decided, dump, judged, tell

PORTO = {"event": "UPDATE", "id": 1, "text": "Lives in Porto"}
ALICE = {"user_id": "alice"}


async def reviews(client: AsyncClient) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/reviews", params=ALICE))


@asynccontextmanager
async def flagged(resources: Resources, tenant: Tenant) -> AsyncIterator[tuple[AsyncClient, str, str, str]]:
    """A client, and the ids of a memory, of a fact that contradicts it, and of the review of that."""
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        old = await store(client, "Lives in Lisbon")
        judge.say("Lives in Porto", PORTO)
        [result] = await tell(client, "I have moved to Porto")
        assert result["event"] == "ADD"
        assert "flagged" in result["warnings"][0]
        [review] = await reviews(client)
        yield client, old, result["id"], review["id"]


async def test_supersede_keeps_both_and_ties_them(resources: Resources, tenant: Tenant, clock: SetClock) -> None:
    async with judged(resources, tenant, contradiction_policy="supersede") as (client, judge):
        old = await store(client, "Lives in Lisbon")
        judge.say("Lives in Porto", PORTO)
        added, retired = await tell(client, "I have moved to Porto")
        assert (added["event"], retired["event"], retired["id"]) == ("ADD", "DELETE", old)
        before = (await client.get(f"/v1/memories/{old}")).json()
        assert before["memory"] == "Lives in Lisbon"
        assert before["archived"] is False
        assert before["t_invalid"] == clock().isoformat()
        [tie] = (await client.get(f"/v1/memories/{old}/relations")).json()["results"]
        assert (tie["source_id"], tie["type"], tie["target_id"]) == (added["id"], "SUPERSEDES", old)
        assert await events(client, old) == ["ADD", "UPDATE"]


async def test_what_was_superseded_can_become_true_again(resources: Resources, tenant: Tenant, clock: SetClock) -> None:
    async with judged(resources, tenant, contradiction_policy="supersede") as (client, judge):
        old = await store(client, "Lives in Lisbon")
        judge.say("Lives in Porto", PORTO)
        await tell(client, "I have moved to Porto")
        clock.forward(days=1)
        judge.say("Lives in Lisbon", {"event": "UPDATE", "id": 1, "text": "Lives in Lisbon"})
        results = await tell(client, "I am back in Lisbon")
        assert results[0]["event"] == "ADD"
        assert results[0]["id"] != old


async def test_prefer_old_stores_nothing_but_the_verdict(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant, contradiction_policy="prefer_old") as (client, judge):
        old = await store(client, "Lives in Lisbon")
        before = await dump(tables, tenant.workspace_id)
        judge.say("Lives in Porto", PORTO)
        [result] = await tell(client, "I have moved to Porto")
        assert (result["event"], result["id"]) == ("NONE", None)
        assert "contradiction_policy" in result["warnings"][0]
        assert await dump(tables, tenant.workspace_id) == before
        assert (await decided(client, old))[-1]["event"] == "NONE"


async def test_flagged_is_seen_by_reviews_only(resources: Resources, tenant: Tenant) -> None:
    async with flagged(resources, tenant) as (client, old, new, _):
        assert await listed(client, user_id="alice", include_archived=True) == {old}
        assert (await client.get(f"/v1/memories/{new}")).status_code == 404
        question = {"query": "Lives in Porto", "user_id": "alice", "include_archived": True}
        found = (await client.post("/v1/memories/search", json=question)).json()["results"]
        assert [each["id"] for each in found] == [old]
        for source, target in ((new, old), (old, new)):
            tie = {"target_id": target, "type": "RELATES_TO"}
            assert (await client.post(f"/v1/memories/{source}/relations", json=tie)).status_code == 404
        [review] = await reviews(client)
        assert review["memory"]["memory"] == "Lives in Porto"
        assert review["contradicts"][0]["memory"] == "Lives in Lisbon"
        [again] = await tell(client, "Porto is where I live")
        assert again["event"] == "NONE"
        assert len(await reviews(client)) == 1


async def last_audited(client: AsyncClient) -> str:
    entries = (await client.get("/v1/audit", params={"limit": 1})).json()["results"]
    return str(entries[0]["operation"])


async def test_accepted_it_holds_and_can_be_undone(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with flagged(resources, tenant) as (client, old, new, review):
        before = await dump(tables, tenant.workspace_id)
        for _ in range(2):
            answer = await client.post(f"/v1/reviews/{review}/accept")
            assert answer.status_code == 200, answer.text
            assert (answer.json()["state"], answer.json()["memory"]["id"]) == ("accepted", new)
            assert await last_audited(client) == "review_accepted"
            assert await listed(client, user_id="alice") == {new}
            assert (await client.get(f"/v1/memories/{old}")).json()["archived"] is True
            assert (await client.post(f"/v1/reviews/{review}/accept")).status_code == 200
            assert (await client.post(f"/v1/reviews/{review}/reject")).status_code == 409
            decision = (await decided(client, old))[-1]
            assert decision["source"] == "review"
            answer = await client.post(f"/v1/decisions/{decision['id']}/undo")
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["decisions"]) == 2
            assert await dump(tables, tenant.workspace_id) == before
            [again] = await reviews(client)
            assert (again["id"], again["state"], again["resolved_at"]) == (review, "pending", None)
            assert await listed(client, user_id="alice", include_archived=True) == {old}
            assert (await client.post(f"/v1/decisions/{decision['id']}/undo")).json() == answer.json()
        assert (await client.post(f"/v1/reviews/{review}/reject")).status_code == 200
        assert await reviews(client) == []


async def test_deleted_neither_comes_back(resources: Resources, tenant: Tenant) -> None:
    async with flagged(resources, tenant) as (client, old, _, review):
        assert (await client.post(f"/v1/reviews/{review}/accept")).status_code == 200
        decision = (await decided(client, old))[-1]
        assert (await client.delete(f"/v1/memories/{old}")).status_code == 200
        assert (await client.post(f"/v1/decisions/{decision['id']}/undo")).status_code == 409


async def test_a_flagged_replacement_archives_what_it_retires(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        old = await store(client, "Eats meat")
        judge.say("Is a vegetarian", {"event": "DELETE", "id": 1}, {"event": "ADD", "text": "Is a vegetarian"})
        [result] = await tell(client, "I am a vegetarian")
        [review] = await reviews(client)
        await client.post(f"/v1/reviews/{review['id']}/accept")
        assert await listed(client, user_id="alice") == {result["id"]}
        assert (await client.get(f"/v1/memories/{old}")).json()["archived"] is True
        decision = (await decided(client, old))[-1]
        assert (await client.post(f"/v1/decisions/{decision['id']}/undo")).status_code == 200
        assert await listed(client, user_id="alice") == {old}
        assert len(await reviews(client)) == 1


async def test_rejected_it_goes(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        await store(client, "Lives in Lisbon")
        before = await dump(tables, tenant.workspace_id)
        judge.say("Lives in Porto", PORTO)
        [result] = await tell(client, "I have moved to Porto")
        [review] = await reviews(client)
        assert (await client.post(f"/v1/reviews/{review['id']}/reject")).json()["state"] == "rejected"
        assert await last_audited(client) == "review_rejected"
        assert await dump(tables, tenant.workspace_id) == before
        assert await events(client, result["id"]) == ["ADD", "DELETE"]
        assert (await client.post("/v1/reviews/nonsense/accept")).status_code == 404


DELETIONS: dict[str, Callable[[AsyncClient, str], Awaitable[Response]]] = {
    "by id": lambda client, memory_id: client.delete(f"/v1/memories/{memory_id}"),
    "by ids": lambda client, memory_id: client.post("/v1/memories/batch/delete", json={"ids": [memory_id]}),
    "by scope": lambda client, _: client.delete("/v1/memories", params=ALICE),
    "for good": lambda client, memory_id: client.delete(f"/v1/memories/{memory_id}", params={"purge": True}),
    "a scope for good": lambda client, _: client.delete("/v1/memories", params={**ALICE, "purge": True}),
    "everything": lambda client, _: client.post("/v1/reset"),
}


@pytest.mark.parametrize("delete", DELETIONS.values(), ids=DELETIONS)
async def test_deleted_it_waits_no_more(
    resources: Resources, tenant: Tenant, tables: Tables, delete: Callable[[AsyncClient, str], Awaitable[Response]]
) -> None:
    async with flagged(resources, tenant) as (client, _, new, review):
        answer = await delete(client, new)
        assert answer.status_code == 200, answer.text
        assert await tables.value("SELECT count(*) FROM review WHERE workspace_id = $1", tenant.workspace_id) == 0
        for word in ("accept", "reject"):
            assert (await client.post(f"/v1/reviews/{review}/{word}")).status_code == 404


async def test_when_its_time_is_over_it_waits_no_more(
    resources: Resources, worker_database: Database, tenant: Tenant, tables: Tables, clock: SetClock
) -> None:
    """Nor does anything of a review that was settled before change."""
    async with flagged(resources, tenant) as (client, _, _, settled):
        assert (await client.post(f"/v1/reviews/{settled}/reject")).status_code == 200
        await tell(client, "I have moved to Porto again", expires_at=(clock() + timedelta(seconds=60)).isoformat())
        assert len(await reviews(client)) == 1
        clock.forward(minutes=2)
        await lifecycle.remove_outlived(replace(resources, db=worker_database))
        states = await tables.fetch("SELECT state FROM review WHERE workspace_id = $1", tenant.workspace_id)
        assert [each["state"] for each in states] == ["rejected"]


async def test_the_same_word_at_once_is_one_word(resources: Resources, tenant: Tenant) -> None:
    async with flagged(resources, tenant) as (client, old, _, review):
        answers = await asyncio.gather(*(client.post(f"/v1/reviews/{review}/accept") for _ in range(6)))
        assert {answer.status_code for answer in answers} == {200}
        assert await events(client, old) == ["ADD", "DELETE"]
        assert (await client.post(f"/v1/reviews/{review}/reject")).status_code == 409

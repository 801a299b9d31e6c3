"""What a decision did is taken back exactly, and only while nothing else happened to it."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables
from tests.support.calls import events, store
from tests.support.judging import decided, dump, judged, tell


async def undo(client: AsyncClient, decision: str) -> Any:
    return await client.post(f"/v1/decisions/{decision}/undo")


async def test_an_update_is_shown_with_its_evidence_and_taken_back(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Lives in Lisbon", tags=["home:city"], metadata={"seen": 1.5})
        friend = await store(client, "Has a flat near the river")
        tie = {"target_id": friend, "type": "RELATES_TO", "properties": {"why": "same place"}}
        assert (await client.post(f"/v1/memories/{old}/relations", json=tie)).status_code == 201
        before = await dump(tables, tenant.workspace_id)
        judge.say("Lives in Porto", {"event": "UPDATE", "id": 1, "text": "Lives in Porto"})
        results = await tell(client, "I have moved to Porto")
        changed = results[0]["id"]
        assert results[0]["event"] == "UPDATE"

        [decision] = [each for each in await decided(client, changed) if each["event"] == "UPDATE"]
        assert (decision["before"], decision["after"]) == (results[0]["old_memory"], "Lives in Porto")
        assert decision["source"] == "llm"
        assert decision["model"] == judge.model
        assert len(decision["prompt_sha256"]) == 64
        assert changed in decision["candidates"]
        assert "Lives in Porto" in decision["reply"]
        assert decision["state"] == "applied"

        answer = await undo(client, decision["id"])
        assert answer.status_code == 200, answer.text
        assert answer.json()["memories"][0]["id"] == changed
        assert await dump(tables, tenant.workspace_id) == before
        assert (await events(client, changed))[-2:] == ["UPDATE", "UPDATE"]
        audited = (await client.get("/v1/audit", params={"operation": "undo"})).json()["results"]
        assert len(audited) == 1
        again = await undo(client, decision["id"])
        assert again.status_code == 200
        assert again.json() == answer.json()
        [decision] = [each for each in await decided(client, changed) if each["event"] == "UPDATE"]
        assert decision["state"] == "undone"


async def test_a_ruling_is_undone_as_a_whole(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant) as (client, judge):
        await store(client, "Eats meat every day")
        before = await dump(tables, tenant.workspace_id)
        judge.say("Became a vegetarian", {"event": "DELETE", "id": 1}, {"event": "ADD", "text": "Became a vegetarian"})
        results = await tell(client, "I became a vegetarian")
        assert [each["event"] for each in results] == ["DELETE", "ADD"]
        decisions = [(await decided(client, each["id"]))[-1] for each in results]
        assert decisions[0]["ruling_id"] == decisions[1]["ruling_id"] is not None
        answer = await undo(client, decisions[1]["id"])
        assert answer.status_code == 200, answer.text
        assert answer.json()["removed"] == [results[1]["id"]]
        assert await dump(tables, tenant.workspace_id) == before


@pytest.mark.parametrize(
    ("method", "body", "why", "left"),
    [("PATCH", {"importance": 0.9}, "has changed since", "Drives a lorry"), ("DELETE", None, "erased", None)],
)
async def test_what_was_changed_or_erased_since_stays_so(
    resources: Resources, tenant: Tenant, method: str, body: dict[str, Any] | None, why: str, left: str | None
) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Drives a van")
        judge.say("Drives a lorry", {"event": "UPDATE", "id": 1, "text": "Drives a lorry"})
        await tell(client, "I drive a lorry now")
        decision = (await decided(client, old))[-1]
        await client.request(method, f"/v1/memories/{old}", json=body)
        answer = await undo(client, decision["id"])
        assert answer.status_code == 409
        assert why in answer.json()["detail"]
        assert (await client.get(f"/v1/memories/{old}")).json().get("memory") == left


async def test_a_fact_fades_from_its_own_confidence_and_from_the_old_one_after_undo(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Drives a van")
        await client.patch(f"/v1/memories/{old}", json={"fact_confidence": 0.7})
        await tables.fetch(
            "UPDATE memory_stat SET base_confidence = 0.7, confidence = 0.35, base_salience = 0.4, access_count = 3 "
            "WHERE memory_id = $1",
            UUID(old),
        )
        then = await tables.fetch(FADING, UUID(old))
        judge.say("Drives a lorry", {"event": "UPDATE", "id": 1, "text": "Drives a lorry"})
        await tell(client, "I drive a lorry now")
        lorry = (await client.get(f"/v1/memories/{old}")).json()
        assert lorry["current_confidence"] == lorry["fact_confidence"] > 0.8, "a new fact is as sure as it was said"
        assert await tables.fetch(FADING, UUID(old)) != then
        await tables.fetch("UPDATE memory_stat SET access_count = 4 WHERE memory_id = $1", UUID(old))
        decision = (await decided(client, old))[-1]
        assert (await undo(client, decision["id"])).status_code == 200
        assert await tables.fetch(FADING, UUID(old)) == then
        assert (await client.get(f"/v1/memories/{old}")).json()["current_confidence"] == 0.35
        uses = await tables.value("SELECT access_count FROM memory_stat WHERE memory_id = $1", UUID(old))
        assert uses >= 4, "it was used nevertheless"


FADING = (
    "SELECT base_relevance, base_salience, base_confidence, confidence, confirmed_at FROM memory_stat "
    "WHERE memory_id = $1"
)


async def test_a_verdict_that_changed_nothing_has_nothing_to_undo(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Drives a van")
        judge.say("Drives vans", {"event": "NONE", "id": 1})
        await tell(client, "I drive vans")
        decision = (await decided(client, old))[-1]
        assert decision["event"] == "NONE"
        assert (await undo(client, decision["id"])).status_code == 409


async def test_another_workspace_and_nonsense_find_no_decision(
    resources: Resources, tenant: Tenant, stranger: Tenant, other_client: AsyncClient
) -> None:
    async with judged(resources, tenant) as (client, judge):
        judge.say("Drives a van")
        [added] = await tell(client, "I drive a van")
        decision = (await decided(client, added["id"]))[-1]
    assert (await undo(other_client, decision["id"])).status_code == 404
    assert (await undo(other_client, "nonsense")).status_code == 404
    assert (await other_client.get(f"/v1/memories/{added['id']}/decisions")).status_code == 404


async def test_many_who_undo_at_once_get_one_answer(resources: Resources, tenant: Tenant) -> None:
    """Each has read the decision before the first of them has taken it back."""
    async with judged(resources, tenant) as (client, judge):
        await store(client, "Lives in Lisbon")
        judge.say("Lives in Porto", {"event": "UPDATE", "id": 1, "text": "Lives in Porto"})
        [changed] = await tell(client, "I have moved to Porto")
        decision = (await decided(client, changed["id"]))[-1]["id"]
        answers = await asyncio.gather(*(undo(client, decision) for _ in range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert await events(client, changed["id"]) == ["ADD", "UPDATE", "UPDATE"]

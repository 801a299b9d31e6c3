"""Is what a decision did taken back exactly, and only while nothing else happened since?"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.jobs import enrich
from service.resources import Resources
from tests.api.conftest import Tables
from tests.api.helpers import events, store
from tests.api.judging import decided, dump, judged, tell
from tests.conftest import Tenant


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


async def test_what_changed_since_is_not_overwritten(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Drives a van")
        judge.say("Drives a lorry", {"event": "UPDATE", "id": 1, "text": "Drives a lorry"})
        await tell(client, "I drive a lorry now")
        decision = (await decided(client, old))[-1]
        await client.patch(f"/v1/memories/{old}", json={"importance": 0.9})
        answer = await undo(client, decision["id"])
        assert answer.status_code == 409
        assert "has changed since" in answer.json()["detail"]
        assert (await client.get(f"/v1/memories/{old}")).json()["memory"] == "Drives a lorry"


async def test_what_was_erased_does_not_come_back(resources: Resources, tenant: Tenant) -> None:
    async with judged(resources, tenant) as (client, judge):
        old = await store(client, "Drives a van")
        judge.say("Drives a lorry", {"event": "UPDATE", "id": 1, "text": "Drives a lorry"})
        await tell(client, "I drive a lorry now")
        decision = (await decided(client, old))[-1]
        await client.delete(f"/v1/memories/{old}")
        answer = await undo(client, decision["id"])
        assert answer.status_code == 409
        assert "erased" in answer.json()["detail"]


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


WORDS = ("tea", "rice", "chess", "rain", "jazz", "bread", "snow", "maps")
VERBS = ("ADD", "UPDATE", "DELETE", "DELETE+ADD", "UPDATE+DELETE")


@pytest.mark.parametrize("policy", ["in_place", "supersede", "flag_review"])
@pytest.mark.parametrize("seed", range(4))
async def test_undo_of_apply_is_what_was_there(
    resources: Resources, tenant: Tenant, tables: Tables, policy: str, seed: int
) -> None:
    """Random rulings one after the other, then each taken back, the last one first: every state comes again."""
    dice = random.Random(f"{policy}{seed}")
    async with judged(resources, tenant, contradiction_policy=policy) as (client, judge):
        first = [await store(client, f"Likes {word}", tags=[f"food:{word}"]) for word in WORDS[:4]]
        for source, target in pairwise(first):
            tie = {"target_id": target, "type": "SIMILAR_TO", "strength": 0.3}
            await client.post(f"/v1/memories/{source}/relations", json=tie)
        await _enrich(resources, tenant, tables)
        states, rulings = [], []
        for number in range(6):
            states.append(await dump(tables, tenant.workspace_id))
            judge.say(f"Fact {number} about {dice.choice(WORDS)}", *_operations(dice, number))
            results = await tell(client, f"Message {number} of Anna Berg from Oslo")
            made = [each["id"] for each in results if each["id"] and each["event"] != "NONE"]
            rulings.append((await decided(client, made[0]))[-1]["id"] if made else None)
            await _enrich(resources, tenant, tables)
        assert sum(each is not None for each in rulings) > 3
        for ruling, state in zip(reversed(rulings), reversed(states), strict=True):
            if ruling is None:
                continue
            answer = await undo(client, ruling)
            assert answer.status_code == 200, answer.text
            assert await dump(tables, tenant.workspace_id) == state


def _operations(dice: random.Random, number: int) -> list[dict[str, Any]]:
    one, other = dice.sample((1, 2, 3), 2)
    made: dict[str, dict[str, Any]] = {
        "ADD": {"event": "ADD", "text": f"New {number} {dice.choice(WORDS)}"},
        "UPDATE": {"event": "UPDATE", "id": one, "text": f"Changed {number} {dice.choice(WORDS)}"},
        "DELETE": {"event": "DELETE", "id": other},
    }
    return [made[verb] for verb in dice.choice(VERBS).split("+")]


async def _enrich(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    """Everything that waits for it, as the worker would."""
    rows = await tables.fetch(
        "SELECT id FROM memory WHERE workspace_id = $1 AND enriched_at IS NULL ORDER BY id", tenant.workspace_id
    )
    for row in rows:
        job = Job(tenant.workspace_id, row["id"], "enrich", row["id"], {}, 1, 3, "test")
        await enrich.run(job, resources)

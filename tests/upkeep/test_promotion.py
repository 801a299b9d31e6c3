"""What was often used, and told in several conversations of a project, becomes known in all of them by itself."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.domain.job import Job
from service.memories.promote import promote_if_worthy
from service.runtime.resources import Resources
from service.upkeep.jobs import ageing
from tests.conftest import Tenant
from tests.memories.test_promote import promote
from tests.support.application import Tables
from tests.support.calls import listed, store
from tests.support.tasks import work

TEXT = "Prefers short answers"
USED = "UPDATE memory_stat SET access_count = $2 WHERE memory_id = $1"
CERTAIN = "UPDATE memory SET fact_confidence = $2 WHERE id = $1"


async def told(
    client: AsyncClient, tables: Tables, text: str = TEXT, *, confidence: float = 0.85, uses: int = 5, sessions: int = 2
) -> str:
    """A memory of the channel atlas that was stored in so many sessions."""
    memory_id = await store(client, text, channel="atlas", session_id="s0")
    for number in range(1, sessions):
        for _ in range(2):  # again in the same session is no other one
            again = {"content": text, "user_id": "alice", "channel": "atlas", "session_id": f"s{number}"}
            answer = await client.post("/v1/memories", json=again)
            assert answer.json()["results"][0]["id"] == memory_id
    await tables.fetch(CERTAIN, UUID(memory_id), confidence)
    await tables.fetch(USED, UUID(memory_id), uses)
    return memory_id


async def run(client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant) -> dict[str, int]:
    """What a run by request did."""
    assert (await client.post("/v1/jobs/promote/run")).status_code == 202
    before = await promoted(client)
    assert await work(resources, tables, tenant.workspace_id, "promote") == 1
    return {"promoted": len(await promoted(client)) - len(before)}


async def promoted(client: AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/v1/audit", params={"operation": "promote"})).json()["results"]
    return found


@pytest.mark.parametrize(
    ("confidence", "uses", "sessions", "expected"),
    [(0.85, 5, 2, 1), (0.84, 5, 2, 0), (0.85, 4, 2, 0), (0.85, 5, 1, 0)],
)
async def test_all_thresholds_must_be_met(
    client: AsyncClient,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    confidence: float,
    uses: int,
    sessions: int,
    expected: int,
) -> None:
    await told(client, tables, confidence=confidence, uses=uses, sessions=sessions)
    assert await run(client, resources, tables, tenant) == {"promoted": expected}
    assert len(await listed(client, user_id="alice", channel="_global")) == expected, "in _global, for the same user"
    assert await listed(client, user_id="bob", channel="_global") == set()


async def test_what_is_left_of_a_guess_is_what_counts(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    memory_id = UUID(await told(client, tables, confidence=0.7))
    own = {"promoting": {"min_confidence": 0.6}}
    assert (await client.patch("/v1/workspaces/current", json={"settings": own})).status_code == 200
    await tables.fetch("UPDATE memory_stat SET confidence = 0.59 WHERE memory_id = $1", memory_id)
    assert await run(client, resources, tables, tenant) == {"promoted": 0}
    await tables.fetch("UPDATE memory_stat SET confidence = 0.61 WHERE memory_id = $1", memory_id)
    assert await run(client, resources, tables, tenant) == {"promoted": 1}
    assert [each["promotion_confidence"] for each in await promoted(client)] == [0.61]


async def test_the_audit_has_every_figure_and_threshold(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    own = {"promoting": {"min_access_count": 3}}
    assert (await client.patch("/v1/workspaces/current", json={"settings": own})).status_code == 200
    resources = resources.of_workspace(own)
    memory_id = await told(client, tables, confidence=0.9, uses=7, sessions=3)
    await run(client, resources, tables, tenant)
    [entry] = await promoted(client)
    [copy] = await listed(client, user_id="alice", channel="_global")
    assert entry["affected_ids"] == [memory_id, copy]
    assert (entry["source_channel"], entry["target_channels"]) == ("atlas", ["_global"])
    assert (entry["promoted_from_channel"], entry["promotion_confidence"]) == ("atlas", 0.9)
    assert (entry["promotion_access_count"], entry["promotion_conversation_count"]) == (7, 3)
    assert entry["config_snapshot"]["promoting"] == {
        "min_confidence": 0.85,
        "min_access_count": 3,
        "min_conversations": 2,
    }
    assert entry["metadata"]["by"] == "job"


async def test_conversations_of_turns_count_once_with_their_session(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    for name in ("monday", "tuesday"):
        talk = {"messages": [{"role": "user", "content": "I work at Acme."}], "user_id": "alice", "channel": "atlas"}
        answer = await client.post("/v1/memories", json={**talk, "session_id": name})
        assert answer.status_code in (200, 201), answer.text
    [fact] = await listed(client, user_id="alice", channel="atlas")
    await tables.fetch(CERTAIN, UUID(fact), 0.85)
    await tables.fetch(USED, UUID(fact), 5)
    assert await run(client, resources, tables, tenant) == {"promoted": 1}
    assert [each["promotion_conversation_count"] for each in await promoted(client)] == [2]


async def test_twice_and_by_two_workers_is_once(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    for number in range(5):
        await told(client, tables, f"The crane number {number} lifts {number + 3} tons")
    job = Job(tenant.workspace_id, UUID(int=1), "promote", None, {}, 1, 1, "test")
    counts = await asyncio.gather(*(ageing.promote(job, resources) for _ in range(3)))
    assert sum(each["promoted"] for each in counts if each) == 5
    assert await ageing.promote(job, resources) == {"seen": 0, "promoted": 0, "archived": 0}
    assert len(await promoted(client)) == len(await listed(client, user_id="alice", channel="_global")) == 5


async def test_a_run_that_dies_goes_on(
    client: AsyncClient,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(3):
        await told(client, tables, f"The crane number {number} lifts {number + 3} tons")
    verb, calls = promote_if_worthy, 0

    async def dies(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ConnectionError
        return await verb(*args, **kwargs)

    monkeypatch.setattr(ageing, "promote_if_worthy", dies)
    job = Job(tenant.workspace_id, UUID(int=1), "promote", None, {}, 1, 1, "test")
    with pytest.raises(ConnectionError):
        await ageing.promote(job, resources)
    assert await ageing.promote(job, resources) == {"seen": 2, "promoted": 2, "archived": 0}
    assert len(await listed(client, user_id="alice", channel="_global")) == 3


async def test_what_must_not_spread_stays(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    """Turns, what is over, archived or flagged, and everything of a channel that is the wall of a key."""
    walled = {"name": "atlas bot", "rights": ["memory:read"], "channels": ["atlas"]}
    key = (await client.post("/v1/api-keys", json=walled)).json()
    memory_id = UUID(await told(client, tables))
    assert await run(client, resources, tables, tenant) == {"promoted": 0}
    assert (await client.delete(f"/v1/api-keys/{key['id']}")).status_code == 204
    for change, back in (
        ("archived = true", "archived = false"),
        ("review_status = 'flagged'", "review_status = NULL"),
        ("t_invalid = '2000-01-01'", "t_invalid = NULL"),
        ("valid_until = '2000-01-01'", "valid_until = NULL"),
        ("expires_at = '2000-01-01'", "expires_at = NULL"),
        ("dedup_key = NULL", "dedup_key = hash"),
    ):
        await tables.fetch(f"UPDATE memory SET {change} WHERE id = $1", memory_id)
        assert await run(client, resources, tables, tenant) == {"promoted": 0}, change
        await tables.fetch(f"UPDATE memory SET {back} WHERE id = $1", memory_id)
    assert await run(client, resources, tables, tenant) == {"promoted": 1}


async def test_a_copy_that_was_undone_or_deleted_does_not_come_back_by_itself(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    memory_id = await told(client, tables)
    await run(client, resources, tables, tenant)
    [copy] = await listed(client, user_id="alice", channel="_global")
    decisions = (await client.get(f"/v1/memories/{copy}/decisions")).json()["results"]
    undone = await client.post(f"/v1/decisions/{decisions[0]['id']}/undo")
    assert undone.status_code == 200, undone.text
    assert await listed(client, user_id="alice", channel="_global") == set()
    assert await listed(client, user_id="alice", channel="atlas") == {memory_id}
    assert await run(client, resources, tables, tenant) == {"promoted": 0}
    again = await promote(client, memory_id)
    assert again["status"] == 201, "by hand it does"
    await client.delete(f"/v1/memories/{again['id']}")
    assert await run(client, resources, tables, tenant) == {"promoted": 0}


async def test_a_search_shows_it_once(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    await told(client, tables)
    await run(client, resources, tables, tenant)
    for params in ({"channel": "atlas"}, {"channel": "borealis"}):
        query = {"query": "short answers", "user_id": "alice", **params}
        found = (await client.get("/v1/memories/search", params=query)).json()["results"]
        assert [each["memory"] for each in found] == [TEXT], params


async def test_the_copy_follows_what_its_original_says(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    """Unless somebody changed the copy by hand."""
    memory_id = await told(client, tables)
    await run(client, resources, tables, tenant)
    [copy] = await listed(client, user_id="alice", channel="_global")
    changed = {"content": "Prefers long answers"}
    assert (await client.patch(f"/v1/memories/{memory_id}", json=changed)).status_code == 200
    await run(client, resources, tables, tenant)
    [later] = await listed(client, user_id="alice", channel="_global")
    assert later != copy
    assert (await client.get(f"/v1/memories/{later}")).json()["memory"] == "Prefers long answers"
    assert (await client.get(f"/v1/memories/{copy}")).json()["archived"] is True
    assert (await client.patch(f"/v1/memories/{later}", json={"importance": 0.9})).status_code == 200
    await tables.fetch("UPDATE memory SET t_invalid = '2000-01-01' WHERE id = $1", UUID(memory_id))
    await run(client, resources, tables, tenant)
    assert await listed(client, user_id="alice", channel="_global") == {later}

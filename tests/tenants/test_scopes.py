"""Users, agents and runs: listed with their counts, and deleted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from httpx2 import AsyncClient

from tests.conftest import SetClock
from tests.support.application import Tables
from tests.support.calls import listed, pages, results_of, store


async def scopes(client: AsyncClient, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/scopes", params=params))


async def test_users_agents_and_runs_with_counts_and_last_use(
    client: AsyncClient, other_client: AsyncClient, clock: SetClock, tables: Tables
) -> None:
    began = clock().isoformat()
    first = await store(client, "Drinks tea", agent_id="planner", run_id="r1")
    clock.forward(hours=1)
    await store(client, "Plays chess")
    await store(client, "Rides a bike", user_id="bob")
    await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(first))
    await store(other_client, "Theirs alone", user_id="stranger")
    found = await scopes(client)
    assert [(each["type"], each["id"], each["memories"], each["archived"]) for each in found] == [
        ("user", "alice", 2, 1),
        ("user", "bob", 1, 0),
        ("agent", "planner", 1, 1),
        ("run", "r1", 1, 1),
    ]
    assert (found[0]["first_used"], found[0]["last_used"]) == (began, clock().isoformat())
    assert found[2]["last_used"] == began


async def test_pages_hold_each_once(client: AsyncClient) -> None:
    for user in ("ana", "ben", "cleo"):
        await store(client, f"Something of {user}", user_id=user, agent_id=f"agent/{user}", run_id="r|1")
    found = [page["results"] async for page in pages(client, "/v1/scopes", limit=2)]
    assert [f"{each['type']}:{each['id']}" for page in found for each in page] == [
        "user:ana",
        "user:ben",
        "user:cleo",
        "agent:agent/ana",
        "agent:agent/ben",
        "agent:agent/cleo",
        "run:r|1",
    ]
    assert [each["id"] for each in await scopes(client, type="run")] == ["r|1"]


async def test_one_is_forgotten(client: AsyncClient) -> None:
    await store(client, "Something of alice", agent_id="team/planner")
    bobs = await store(client, "Something of bob", user_id="bob")
    assert (await client.delete("/v1/scopes/agent/team/planner")).json()["deleted"] == 1
    assert (await client.delete("/v1/scopes/user/alice")).json()["deleted"] == 0
    assert await listed(client, user_id="bob") == {bobs}
    assert [each["id"] for each in await scopes(client)] == ["bob"]


async def test_what_is_no_scope_is_400(client: AsyncClient) -> None:
    for params in ({"cursor": "nonsense"}, {"type": "channel"}, {"limit": 0}, {"cursor": "dXNlcnwA"}):
        assert (await client.get("/v1/scopes", params=params)).status_code == 400, params
    assert (await client.delete("/v1/scopes/channel/x")).status_code == 400

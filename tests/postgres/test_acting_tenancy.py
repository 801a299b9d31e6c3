"""Row-level security of goals, procedures and working memory, tested without the predicates of our statements."""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient

from service.postgres.engine import Database
from tests.conftest import Tenant
from tests.postgres.test_tenancy import without_tenant_predicates
from tests.support.application import Tables

IRIS = {"user_id": "iris"}
WORD = "ledger"


async def acted(client: AsyncClient, word: str) -> dict[str, str]:
    """A goal, a tool invocation, a strategy and a working entry, each with the word; ids by kind."""
    goal = await client.post("/v1/goals", json={"description": f"Hide the {word}", **IRIS})
    use = {"tool_name": "search", "tool_input": word, "success": True, **IRIS}
    used = await client.post("/v1/tool-invocations", json=use)
    way = await client.post("/v1/strategies", json={"description": f"Ask about the {word}", **IRIS})
    held = await client.put("/v1/working/trip/items/cart", json={"value": word}, params=IRIS)
    for answer in (goal, used, way, held):
        assert answer.status_code in (200, 201), answer.text
    return {"goal": goal.json()["id"], "strategy": way.json()["id"]}


async def test_without_our_predicates_nothing_foreign_is_seen_or_changed(
    database: Database, client: AsyncClient, other_client: AsyncClient, stranger: Tenant, tables: Tables
) -> None:
    theirs = await acted(other_client, WORD)
    before = await tables.counts(stranger.workspace_id)
    goal, strategy = f"/v1/goals/{theirs['goal']}", f"/v1/strategies/{theirs['strategy']}"
    posts: list[tuple[str, Any]] = [
        (f"{goal}/complete", {}),
        (f"{strategy}/reinforce", {"success": True}),
    ]
    with without_tenant_predicates(database) as taken:
        for path in (goal, strategy, "/v1/working/trip/items/cart?user_id=iris"):
            assert (await client.get(path)).status_code == 404, path
        for path, body in posts:
            assert (await client.post(path, json=body)).status_code == 404, path
        for path in (goal, strategy, "/v1/working/trip/items/cart?user_id=iris"):
            assert (await client.delete(path)).status_code == 404, path
        assert (await client.patch(goal, json={"priority": 1})).status_code == 404
        assert (await client.delete("/v1/working/trip", params=IRIS)).json() == {"deleted": 0}
        for path in (
            "/v1/goals?user_id=iris",
            "/v1/strategies?user_id=iris",
            "/v1/strategies/search?user_id=iris&task=hide",
            "/v1/tool-invocations?user_id=iris",
            "/v1/tools/stats",
        ):
            answer = await client.get(path)
            assert answer.status_code == 200, answer.text
            assert answer.json()["results"] == [], path
        mine = await acted(client, WORD)
        assert mine["strategy"] != theirs["strategy"], "an equal one of another workspace is none of ours"
        assert (await client.get("/v1/working/trip", params=IRIS)).json()["items"]["cart"]["value"] == WORD
    assert len(taken) > 20, "the statements were not stripped"
    assert await tables.counts(stranger.workspace_id) == before
    assert (await other_client.get(goal)).json()["version"] == 1

"""What goals, uses of tools, strategies and profiles have in common: refusals, redaction, deletion with the user."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from httpx2 import AsyncClient

from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of

ALICE = {"user_id": "alice"}
USE: dict[str, Any] = {"tool_name": "search", "tool_input": {"query": "trains"}, "success": True}
PROFILE = "/v1/users/alice/profile"

# By route: its table, a good request, and what makes it bad, with the field that is named.
BAD: dict[str, tuple[str, dict[str, Any], list[tuple[dict[str, Any], str]]]] = {
    "/v1/goals": (
        "goal",
        {"description": "x", **ALICE},
        [
            ({"user_id": None}, "user_id"),
            ({"description": None}, "description"),
            ({"description": " "}, "description"),
            ({"description": "x" * 4_001}, "description"),
            ({"description": "a\x00"}, "description"),
            ({"priority": 1.5}, "priority"),
            ({"priority": True}, "priority"),
            ({"deadline": "soon"}, "deadline"),
            ({"parent_id": "one"}, "parent_id"),
            ({"status": "completed"}, "status"),
            ({"blocked_by": ["no"]}, "blocked_by[0]"),
        ],
    ),
    "/v1/tool-invocations": (
        "tool_invocation",
        {**USE, **ALICE},
        [
            ({"tool_name": None}, "tool_name"),
            ({"tool_name": "t" * 101}, "tool_name"),
            ({"tool_name": " "}, "tool_name"),
            ({"success": 1}, "success"),
            ({"latency_ms": -1}, "latency_ms"),
            ({"latency_ms": "5"}, "latency_ms"),
            ({"colour": 1}, "colour"),
            ({"user_id": None}, "user_id"),
            ({"turn_id": str(uuid4())}, "turn_id"),
            ({"conversation_id": "trip"}, "conversation_id"),
            ({"tool_input": "x" * 262_143}, "tool_input"),
            ({"tool_output": {"k": "\x00"}}, "tool_output.k"),
            ({"timestamp": "now"}, "timestamp"),
        ],
    ),
    "/v1/strategies": (
        "strategy",
        {"description": "x", **ALICE},
        [
            ({"description": ""}, "description"),
            ({"description": "a\x00"}, "description"),
            ({"user_id": None}, "user_id"),
            ({"tool_sequence": "search"}, "tool_sequence"),
            ({"tool_sequence": ["s"] * 51}, "tool_sequence"),
            ({"tool_sequence": [""]}, "tool_sequence[0]"),
            ({"success": "yes"}, "success"),
            ({"from_conversation_id": "trip"}, "from_conversation_id"),
            ({"rate": 1}, "rate"),
        ],
    ),
    PROFILE: (
        "user_profile",
        {},
        [
            ({"preferences": []}, "preferences"),
            ({"expertise_areas": {}}, "expertise_areas"),
            ({"expertise_areas": ["x"] * 1001}, "expertise_areas"),
            ({"communication_style": "brief"}, "communication_style"),
            ({"hobbies": []}, "hobbies"),
            ({"preferences": {"a": "x\x00"}}, "preferences.a"),
        ],
    ),
}
ROWS = [(path, table, {**good, **bad}, field) for path, (table, good, rows) in BAD.items() for bad, field in rows]


@pytest.mark.parametrize(("path", "table", "body", "field"), ROWS, ids=[f"{row[1]} {row[3]}" for row in ROWS])
async def test_bad_input_is_refused_by_name(
    client: AsyncClient, tables: Tables, tenant: Tenant, path: str, table: str, body: dict[str, Any], field: str
) -> None:
    answer = await client.request("PUT" if path == PROFILE else "POST", path, json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text
    assert await tables.value(f"SELECT count(*) FROM {table} WHERE workspace_id = $1", tenant.workspace_id) == 0


async def made(client: AsyncClient, path: str, **fields: Any) -> dict[str, Any]:
    """A goal, a use of a tool or a strategy, of alice unless the fields say otherwise."""
    return await body_of(client.post(f"/v1/{path}", json={**ALICE, **fields}), 201)


async def test_secrets_are_cut_out_before_anybody_reads_them(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    secret = "greta.lund@example.org"
    goal = await made(client, "goals", description=f"Answer {secret}")
    await client.patch(f"/v1/goals/{goal['id']}", json={"description": f"Call {secret}"})
    await client.post(f"/v1/goals/{goal['id']}/complete", json={"result": f"{secret} is happy"})
    way = await made(client, "strategies", description=f"Answer {secret}", context_pattern=f"When {secret} is in")
    assert goal["description"] == way["description"] == "Answer [REDACTED:EMAIL]"
    await client.get("/v1/strategies/search", params={"task": f"Write to {secret}", **ALICE})
    assert not any(secret in text for text in embedder.seen)
    assert await tables.holding(secret) == []


@pytest.mark.parametrize("purge", [False, True])
async def test_all_of_a_user_goes_with_the_user(
    client: AsyncClient, other_client: AsyncClient, tables: Tables, tenant: Tenant, purge: bool
) -> None:
    word = f"Flibbertigibbet{purge}"
    goal = await made(client, "goals", description=f"Find the {word}")
    await client.patch(f"/v1/goals/{goal['id']}", json={"description": f"Buy the {word}"})
    await made(client, "tool-invocations", **USE | {"tool_input": {"query": word}, "tool_output": word})
    way = await made(client, "strategies", description=f"Ask the {word}", context_pattern=word)
    for path, body in (
        (f"goals/{goal['id']}/complete", {"result": f"Got the {word}"}),
        (f"strategies/{way['id']}/reinforce", {"success": True}),
    ):
        answer = await client.post(f"/v1/{path}", json=body, headers={"Idempotency-Key": path})
        assert (answer.status_code, word in answer.text) == (200, True), answer.text
    assert {"goal", "strategy", "tool_invocation", "idempotency"} <= set(await tables.holding(word))
    await made(client, "tool-invocations", **USE, user_id="bob")
    kept = [
        (who, f"/v1/{path}/{(await made(who, path, description='theirs', **ids))['id']}")
        for who, ids in ((client, {"user_id": "bob"}), (other_client, {}))
        for path in ("goals", "strategies")
    ]
    assert (await client.delete("/v1/memories", params={**ALICE, "purge": purge})).status_code == 200
    assert await tables.holding(word) == []
    assert (await client.get(f"/v1/goals/{goal['id']}")).status_code == 404
    assert await tables.value("SELECT count(*) FROM goal_vector WHERE workspace_id = $1", tenant.workspace_id) == 1
    assert [(await who.get(path)).json()["description"] for who, path in kept] == ["theirs"] * 4
    assert (await client.get("/v1/tool-invocations", params={"user_id": "bob"})).json()["results"]
    assert (await client.get("/v1/tools/stats")).json()["results"][0]["usage_count"] == 1

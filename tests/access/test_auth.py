"""Authentication: who gets in, where the key may stand, and what it may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.domain.access import Right
from service.kit.settings import Settings
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables, client_of, serving

NOTE = {"content": "Feeds the heron", "user_id": "iris"}
OPEN = {"/", "/livez", "/readyz", "/v1/health", "/docs", "/openapi.json"}
LIST = "/v1/memories?user_id=iris"


async def made(client: AsyncClient, *rights: str, **more: Any) -> str:
    answer = await client.post("/v1/api-keys", json={"name": "made", "rights": list(rights), **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["api_key"])


async def test_headers_that_hold_the_key(anonymous: AsyncClient, tenant: Tenant) -> None:
    for headers in ({"Authorization": f"Bearer {tenant.key}"}, {"authorization": f"bearer {tenant.key}"}):
        assert (await anonymous.get(LIST, headers=headers)).status_code == 200
    assert (await anonymous.get(LIST, headers={"X-API-Key": tenant.key})).status_code == 200


@pytest.fixture
async def with_query(resources: Resources, settings: Settings) -> AsyncIterator[AsyncClient]:
    """No key, and a service that takes one in the URL."""
    lenient = replace(resources, settings=settings.changed(auth_allow_query=True))
    async with serving(lenient) as app, client_of(app, None) as client:
        yield client


async def test_the_url_is_a_fourth_place_where_it_is_allowed(with_query: AsyncClient, tenant: Tenant) -> None:
    assert (await with_query.get(f"{LIST}&api_key={tenant.key}")).status_code == 200
    schemes = (await with_query.get("/openapi.json")).json()["components"]["securitySchemes"].values()
    assert {(each["type"], each.get("in")) for each in schemes} == {
        ("http", None),
        ("apiKey", "header"),
        ("apiKey", "query"),
    }


async def test_bearer_before_header_before_query(with_query: AsyncClient, tenant: Tenant, stranger: Tenant) -> None:
    async def workspace(headers: dict[str, str], query: str = "") -> tuple[int, str | None]:
        answer = await with_query.get(f"/v1/whoami{query}", headers=headers)
        return answer.status_code, answer.json().get("workspace_id")

    bearer, header = {"Authorization": f"Bearer {tenant.key}"}, {"X-API-Key": stranger.key}
    wrong = {"Authorization": "Bearer wrong"}
    mine, theirs = (200, str(tenant.workspace_id)), (200, str(stranger.workspace_id))
    assert await workspace({**bearer, **header}) == mine
    assert await workspace({**bearer, "X-API-Key": "wrong"}, "?api_key=wrong") == mine
    assert await workspace(header, f"?api_key={tenant.key}") == theirs
    assert await workspace({**wrong, **header}) == (401, None), "a wrong key is not made good by another"
    assert await workspace({"X-API-Key": "wrong"}, f"?api_key={tenant.key}") == (401, None)
    assert await workspace({"Authorization": "Basic eDp5", **header}) == theirs


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic eDp5"},
        {"X-API-Key": ""},
        {"X-API-Key": "lox_" + "x" * 43},
        {"X-API-Key": "é".encode("latin-1")},
        {"Authorization": "Bearer " + "x" * 10_000},
        {"Authorization": "Bearer ' OR 1=1 --"},
    ],
)
async def test_401(anonymous: AsyncClient, headers: dict[str, Any]) -> None:
    answer = await anonymous.get(LIST, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["code"] == "unauthenticated"
    assert body["error"] == body["detail"]
    assert "xxx" not in answer.text


async def test_a_key_in_the_url_is_refused(anonymous: AsyncClient, tenant: Tenant) -> None:
    """Also beside a good one: it stands in the logs of whatever lies between."""
    for headers in ({}, {"X-API-Key": tenant.key}, {"Authorization": f"Bearer {tenant.key}"}):
        refused = await anonymous.get(f"{LIST}&api_key={tenant.key}", headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
        assert "An API key in the URL (api_key) is not accepted" in refused.json()["detail"]
        assert refused.headers["WWW-Authenticate"] == "Bearer"


async def test_the_key_is_in_no_log(with_query: AsyncClient, tenant: Tenant) -> None:
    with structlog.testing.capture_logs() as lines:
        await with_query.get(f"{LIST}&api_key={tenant.key}")
        await with_query.get(LIST, headers={"X-API-Key": tenant.key})
        await with_query.get(f"/v1/nowhere/{tenant.key}?api_key={tenant.key}")
    assert lines
    assert tenant.key not in str(lines)


async def test_an_expired_key(client: AsyncClient, anonymous: AsyncClient, clock: SetClock) -> None:
    key = await made(client, "memory:read", expires_at="2026-03-02T10:00:00Z")
    headers = {"X-API-Key": key}
    assert (await anonymous.get(LIST, headers=headers)).status_code == 200
    clock.forward(minutes=30)
    assert (await anonymous.get(LIST, headers=headers)).status_code == 401


async def test_a_revoked_key_ends_at_once(client: AsyncClient, anonymous: AsyncClient) -> None:
    answer = (await client.post("/v1/api-keys", json={"name": "short", "rights": ["memory:read"]})).json()
    headers = {"X-API-Key": answer["api_key"]}
    assert (await anonymous.get(LIST, headers=headers)).status_code == 200
    assert (await client.delete(f"/v1/api-keys/{answer['id']}")).status_code == 204
    assert (await anonymous.get(LIST, headers=headers)).status_code == 401
    assert (await client.delete(f"/v1/api-keys/{answer['id']}")).status_code == 204
    assert (await client.delete(f"/v1/api-keys/{uuid4()}")).status_code == 404
    assert (await client.delete("/v1/api-keys/none")).status_code == 404
    listed = (await client.get("/v1/api-keys")).json()["results"]
    assert [each["revoked_at"] is not None for each in listed if each["name"] == "short"] == [True]
    assert answer["api_key"] not in str(listed), "a key is shown once"


CALLS: list[tuple[str, str, Any, str]] = [
    ("GET", LIST, None, "memory:read"),
    ("GET", f"/v1/memories/{UUID(int=7)}", None, "memory:read"),
    ("GET", f"/v1/memories/{UUID(int=7)}/history", None, "memory:read"),
    ("GET", f"/v1/operations/{UUID(int=7)}", None, "memory:read"),
    ("GET", "/v1/memories/search?query=x&user_id=i", None, "memory:read"),
    ("POST", "/v1/memories/search", {"query": "x", "user_id": "i"}, "memory:read"),
    ("POST", "/v1/memories", NOTE, "memory:write"),
    ("POST", "/v1/memories/batch", {"items": [NOTE]}, "memory:write"),
    ("DELETE", f"/v1/memories/{UUID(int=7)}", None, "memory:delete"),
    ("DELETE", "/v1/memories?user_id=i", None, "memory:delete"),
    ("DELETE", "/v1/scopes/user/i", None, "memory:delete"),
    ("POST", "/v1/memories/batch/delete", {"ids": [str(UUID(int=7))]}, "memory:delete"),
    ("GET", f"/v1/goals/{UUID(int=7)}", None, "memory:read"),
    ("POST", "/v1/goals", {"description": "x", "user_id": "i"}, "memory:write"),
    ("DELETE", f"/v1/goals/{UUID(int=7)}", None, "memory:delete"),
    ("GET", f"/v1/strategies/{UUID(int=7)}", None, "memory:read"),
    ("DELETE", f"/v1/strategies/{UUID(int=7)}", None, "memory:delete"),
    (
        "POST",
        "/v1/tool-invocations",
        {"tool_name": "oar", "tool_input": {}, "success": True, "user_id": "i"},
        "memory:write",
    ),
    ("GET", "/v1/working/w/items/cart?user_id=i", None, "memory:read"),
    ("PUT", "/v1/working/w/items/cart?user_id=i", {"value": 1}, "memory:write"),
    ("POST", "/v1/working/w/turns?user_id=i", {"role": "user", "content": "x"}, "memory:write"),
    ("DELETE", "/v1/working/w?user_id=i", None, "memory:write"),
    ("GET", "/v1/api-keys", None, "admin"),
    ("POST", "/v1/reset", None, "admin"),
    ("GET", "/v1/audit", None, "audit:read"),
    ("POST", "/v1/api-keys", {"name": "x", "rights": ["memory:read"]}, "admin"),
    ("DELETE", f"/v1/api-keys/{UUID(int=7)}", None, "admin"),
    ("PATCH", "/v1/workspaces/current", {"name": "x"}, "admin"),
    ("POST", "/v1/workspaces", {"name": "x"}, "operator"),
    ("GET", "/metrics", None, "metrics"),
    ("GET", "/v1/health/details", None, "metrics"),
]


@pytest.mark.parametrize(("method", "path", "body", "right"), CALLS, ids=[f"{row[0]} {row[1][:30]}" for row in CALLS])
async def test_each_route_wants_its_right(
    client: AsyncClient, app: FastAPI, method: str, path: str, body: Any, right: str
) -> None:
    others = {str(each) for each in Right} - {right} - ({"admin"} if right.startswith(("memory:", "audit:")) else set())
    async with client_of(app, await made(client, *others)) as without:
        answer = await without.request(method, path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert right in answer.json()["detail"]
    async with client_of(app, await made(client, right)) as having:
        answer = await having.request(method, path, json=body)
        assert answer.status_code in (200, 201, 204, 404), answer.text


WRITE_ALONE = {
    *(
        "store_memory",
        "store_memories",
        "store_conversation_later",
        "put_user_profile",
        "create_goal",
    ),
    *("create_relation", "delete_relation", "delete_entity_relation", "record_tool_invocation"),
    *("set_working_item", "delete_working_item", "add_working_turn", "push_thought"),
    "clear_working_context",
}
"""Operations that memory:write opens alone: their answers tell nothing that was stored before."""


async def test_what_is_stored_is_shown_to_keys_that_may_read(client: AsyncClient, app: FastAPI) -> None:
    operations = [each for path in app.openapi()["paths"].values() for each in path.values()]
    assert {each["operationId"] for each in operations if "Needs `memory:write`." in each["description"]} == WRITE_ALONE
    known = (await client.post("/v1/memories", json=NOTE)).json()["results"][0]
    async with client_of(app, await made(client, "memory:write")) as writer:
        for change in ({}, {"importance": 0.5}):
            answer = await writer.patch(f"/v1/memories/{known['id']}", json=change)
            assert (answer.status_code, answer.json()["detail"]) == (403, "This key lacks the right memory:read.")
        for more in ({}, {"dry_run": True}):
            again = (await writer.post("/v1/memories", json=NOTE | more)).json()["results"][0]
            assert (again["event"], again["id"], again["memory"]) == ("NONE", known["id"], None)
        batch = (await writer.post("/v1/memories/batch", json={"items": [NOTE]})).json()["results"][0]["results"][0]
        assert (batch["id"], batch["memory"]) == (known["id"], None)
        new = (await writer.post("/v1/memories", json=NOTE | {"content": "Rows a red boat"})).json()["results"][0]
        assert (new["event"], new["memory"]) == ("ADD", "Rows a red boat")
    async with client_of(app, await made(client, "memory:delete")) as deleter:
        for named in ({"query": "the heron", "dry_run": True}, {"ids": [known["id"]]}):
            answer = await deleter.post("/v1/forget", json={"user_id": "iris"} | named)
            assert (answer.status_code, answer.json()["detail"]) == (403, "This key lacks the right memory:read.")


async def test_a_key_cannot_raise_itself(client: AsyncClient, app: FastAPI) -> None:
    """An admin without metrics, operator: it gives what it holds or implies, nothing more."""
    async with client_of(app, await made(client, "admin")) as admin:
        for right in ("operator", "metrics"):
            answer = await admin.post("/v1/api-keys", json={"name": "x", "rights": ["memory:read", right]})
            assert (answer.status_code, answer.json()["field"]) == (403, "rights")
        assert (await admin.post("/v1/workspaces", json={"name": "x"})).status_code == 403
        await made(admin, "admin", "memory:delete", "audit:read")
    async with client_of(app, await made(client, "memory:read", "memory:write", "operator")) as operator:
        assert (await operator.post("/v1/api-keys", json={"name": "x", "rights": ["admin"]})).status_code == 403


async def test_a_new_workspace_is_apart_and_makes_no_others(client: AsyncClient, app: FastAPI) -> None:
    new = (await client.post("/v1/workspaces", json={"name": "new"})).json()
    await client.post("/v1/memories", json=NOTE)
    async with client_of(app, new["api_key"]) as inside:
        assert (await inside.get("/v1/workspaces/current")).json()["id"] == new["id"]
        assert (await inside.get(LIST)).json()["results"] == []
        assert (await inside.post("/v1/workspaces", json={"name": "more"})).status_code == 403
        assert len((await inside.get("/v1/api-keys")).json()["results"]) == 1


async def test_whoami(client: AsyncClient, app: FastAPI, tenant: Tenant) -> None:
    key = await made(client, "memory:read", user_id="iris", channels=["garden"], expires_at="2027-01-01T00:00:00Z")
    async with client_of(app, key) as who:
        answer = (await who.get("/v1/whoami")).json()
    assert answer.pop("api_key_id")
    assert answer == {
        "workspace_id": str(tenant.workspace_id),
        "rights": ["memory:read"],
        "user_id": "iris",
        "agent_id": None,
        "run_id": None,
        "channels": ["garden"],
        "defaults": {"user_id": None, "agent_id": None, "run_id": None, "channel": None},
        "expires_at": "2027-01-01T00:00:00+00:00",
    }


async def test_a_keys_own_scope_counts_when_none_is_given(client: AsyncClient, app: FastAPI) -> None:
    key = await made(client, "memory:read", "memory:write", defaults={"user_id": "iris", "channel": "garden"})
    async with client_of(app, key) as iris:
        stored = await iris.post("/v1/memories", json={"content": "Feeds the heron"})
        assert stored.status_code == 201
        read = (await iris.get(f"/v1/memories/{stored.json()['results'][0]['id']}")).json()
        assert (read["user_id"], read["agent_id"], read["channel"]) == ("iris", None, "garden")
        assert len((await iris.get("/v1/memories")).json()["results"]) == 1
        assert len((await iris.post("/v1/memories/search", json={"query": "heron"})).json()["results"]) == 1
        assert (await iris.get("/v1/memories?agent_id=other")).json()["results"] == []
    assert len((await client.get("/v1/memories?user_id=iris&channel=garden")).json()["results"]) == 1


async def test_open_routes_are_exactly_these(app: FastAPI, anonymous: AsyncClient) -> None:
    open_ones = set()
    for path, operations in app.openapi()["paths"].items():
        for method in operations:
            answer = await anonymous.request(method, path.replace("{", "").replace("}", ""))
            if answer.status_code != 401:
                open_ones.add(path)
                assert answer.status_code == 200, (method, path, answer.text)
    for path in ("/docs", "/openapi.json", "/redoc", "/docs/oauth2-redirect", "/", "/v1", "/health"):
        if (await anonymous.get(path)).status_code == 200:
            open_ones.add(path)
    assert open_ones - {"/health"} == OPEN  # /health: the unversioned name of /v1/health


async def test_the_door_comes_before_the_lock(anonymous: AsyncClient) -> None:
    """Nothing about routes or bodies is told to those without a key."""
    assert (await anonymous.post("/v1/memories", json={"content": 5})).status_code == 401
    assert (await anonymous.get("/v1/memories?limit=x")).status_code == 401


async def test_every_answer_has_a_request_id(client: AsyncClient, anonymous: AsyncClient) -> None:
    given = await client.get(LIST, headers={"X-Request-ID": "mine-1"})
    assert given.headers["X-Request-ID"] == "mine-1"
    refused = await anonymous.get(LIST)
    assert refused.headers["X-Request-ID"] == refused.json()["request_id"]
    odd = await client.get(LIST, headers={b"X-Request-ID": "é".encode("latin-1")})
    assert odd.headers["X-Request-ID"].isascii()


async def test_a_rotated_key_has_a_new_secret_at_once_and_the_old_one_for_a_while(
    client: AsyncClient, app: FastAPI, clock: SetClock, tables: Tables
) -> None:
    made = (await client.post("/v1/api-keys", json={"name": "old", "rights": ["memory:read"]})).json()
    rotated = await client.post(f"/v1/api-keys/{made['id']}/rotate", json={"overlap_s": 60})
    assert rotated.status_code == 200, rotated.text
    assert rotated.json()["old_secret_until"] == "2026-03-02T09:31:00+00:00"
    async with client_of(app, made["api_key"]) as old, client_of(app, rotated.json()["api_key"]) as new:
        assert [(await each.get("/v1/memories?user_id=a")).status_code for each in (old, new)] == [200, 200]
        assert (await old.get("/v1/whoami")).json()["api_key_id"] == (await new.get("/v1/whoami")).json()["api_key_id"]
        clock.forward(seconds=60)
        assert [(await each.get("/v1/memories?user_id=a")).status_code for each in (old, new)] == [401, 200]
        ended = await client.post(f"/v1/api-keys/{made['id']}/rotate", json={})
        assert (await new.get("/v1/memories?user_id=a")).status_code == 401
    shown = (await client.get(f"/v1/api-keys/{made['id']}")).json()
    assert shown["hint"] == ended.json()["api_key"][-4:]
    assert shown["old_secret_until"] is None
    assert await tables.holding(made["api_key"]) == []


async def test_a_key_is_changed_and_its_wall_only_drawn_tighter(client: AsyncClient, app: FastAPI) -> None:
    made = (await client.post("/v1/api-keys", json={"name": "k", "rights": ["memory:read", "memory:write"]})).json()
    path = f"/v1/api-keys/{made['id']}"
    changed = await client.patch(path, json={"name": "new", "rights": ["memory:read"], "user_id": "alice"})
    assert changed.status_code == 200, changed.text
    assert [changed.json()[name] for name in ("name", "rights", "user_id")] == ["new", ["memory:read"], "alice"]
    async with client_of(app, made["api_key"]) as key:
        assert (await key.get("/v1/memories?user_id=bob")).status_code == 403
        assert (await key.post("/v1/memories", json={"content": "x"})).status_code == 403
    for wider in ({"user_id": "bob"}, {"user_id": None}):
        refused = await client.patch(path, json=wider)
        assert (refused.status_code, refused.json()["field"]) == (403, "user_id")
    outside = await client.patch(path, json={"defaults": {"user_id": "bob"}})
    assert (outside.status_code, outside.json()["field"]) == (400, "defaults.user_id")
    past = await client.patch(path, json={"expires_at": "2020-01-01T00:00:00Z"})
    assert (past.status_code, past.json()["field"]) == (400, "expires_at")
    assert (await client.delete(path)).status_code == 204
    assert (await client.patch(path, json={"name": "x"})).status_code == 409
    assert (await client.post(f"{path}/rotate", json={})).status_code == 409


async def test_a_key_that_may_more_is_neither_changed_nor_rotated(client: AsyncClient, app: FastAPI) -> None:
    strong = (await client.post("/v1/api-keys", json={"name": "k", "rights": ["operator"]})).json()
    async with client_of(app, await made(client, "admin")) as admin:
        for method, path, body in (("PATCH", "", {"name": "x"}), ("POST", "/rotate", {})):
            refused = await admin.request(method, f"/v1/api-keys/{strong['id']}{path}", json=body)
            assert refused.status_code == 403


async def test_changes_of_keys_are_audited(client: AsyncClient) -> None:
    own = (await client.get("/v1/whoami")).json()["api_key_id"]
    body = {"name": "k", "rights": ["memory:read"], "user_id": "alice"}
    made = (await client.post("/v1/api-keys", json=body)).json()["id"]
    await client.patch(f"/v1/api-keys/{made}", json={"name": "new"})
    await client.post(f"/v1/api-keys/{made}/rotate", json={"overlap_s": 5})
    await client.delete(f"/v1/api-keys/{made}")
    await client.delete(f"/v1/api-keys/{made}")
    entries = (await client.get("/v1/audit", params={"memory_type": "api_key"})).json()["results"]
    assert [each["operation"] for each in reversed(entries)] == [
        f"{verb}_api_key" for verb in ("create", "update", "rotate", "revoke")
    ]
    assert {(each["api_key_id"], *each["affected_ids"]) for each in entries} == {(own, made)}
    assert "alice" not in str(entries)


async def test_when_a_key_was_last_used(client: AsyncClient, app: FastAPI, clock: SetClock) -> None:
    made = (await client.post("/v1/api-keys", json={"name": "k", "rights": ["memory:read"]})).json()
    path = f"/v1/api-keys/{made['id']}"
    assert (await client.get(path)).json()["last_used_at"] is None
    async with client_of(app, made["api_key"]) as key:
        for seconds, noted in ((0, "09:30:00"), (59, "09:30:00"), (1, "09:31:00")):
            clock.forward(seconds=seconds)
            await key.get("/v1/whoami")
            await app.state.key_uses.flush()
            assert (await client.get(path)).json()["last_used_at"] == f"2026-03-02T{noted}+00:00"

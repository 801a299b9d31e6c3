"""Names that hold what a path is made of: each reaches what was stored under it and nothing else, or is refused."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.app.test_openapi import operations
from tests.support.calls import listed, opened, store
from tests.thorough import THOROUGH

ODD = (
    *("a/b", "/a", "a/", "/", "//", "a//b", "a///", "../a", "a/..", "./a"),
    *("a\n", "\na", "a\r\n", "a\n\n", "a\tb", " a", "a ", "a%2Fb", "100%", "%", "%2F", "%0A", "a%"),
    *(
        "a?b",
        "?",
        "a#b",
        "#",
        "a\\b",
        "\\",
        "１２",
        "é",
        "名前",
        "a+b",
        "a&b=c",
        "a;b",
        "...",
        "{id}",
        '"a"',
        "a:b",
        "search",
    ),
)
STEPS = (".", "..")
BODIES: dict[str, Any] = {
    "patch_conversation": {"title": "Plans"},
    "store_turn": {"role": "user", "content": "Hello there"},
    "put_user_profile": {"preferences": {"units": "metric"}},
    "set_working_item": {"value": 1},
    "add_working_turn": {"role": "user", "content": "Hello there"},
    "push_thought": {"thought": "Maybe later"},
    "set_active_goal": {"description": "Rest"},
}
"""Of the operations that take a body and have a name in their path."""


def with_names(app: FastAPI) -> list[tuple[str, str, str]]:
    """Method, path and id of each operation that has a free name in its path, in an order in which all succeed."""
    found = []
    for method, path, operation in operations(app.openapi()):
        free = [
            each
            for each in operation.get("parameters", [])
            if each["in"] == "path" and each["schema"].get("type") == "string" and "format" not in each["schema"]
        ]
        if free:
            found.append((method.upper(), path, operation["operationId"]))
    order = ("PUT", "POST", "PATCH", "GET", "DELETE")
    return sorted(found, key=lambda each: (order.index(each[0]), -len(each[1])))


async def furnish(client: AsyncClient, name: str) -> None:
    """Something under this name wherever a path can name it."""
    await store(client, "Likes tea", user_id=name)
    await opened(client, name, user_id="alice")
    made = await client.put("/v1/entities", json={"name": name, "type": "person", "user_id": "alice"})
    assert made.status_code in (200, 201), made.text


@pytest.mark.parametrize("name", ODD if THOROUGH else ODD[::2], ids=lambda name: quote(name, safe=""))
async def test_every_operation_takes_the_name(app: FastAPI, client: AsyncClient, name: str) -> None:
    await furnish(client, name)
    ran = with_names(app)
    assert len(ran) >= 20
    for method, path, operation in ran:
        assert (method in ("GET", "DELETE")) != (operation in BODIES), f"{operation} needs a body in BODIES"
        at = re.sub(r"{(\w+)}", lambda part: "user" if part[1] == "type" else quote(name, safe=""), path)
        answer = await client.request(method, at, json=BODIES.get(operation))
        if operation == "list_entity_relations" and not re.search(r"\w", name):
            assert answer.status_code in (200, 404), answer.text  # such an entity has no name to look up
            continue
        assert answer.status_code in (200, 201), f"{operation} {at}: {answer.text}"
        if method == "DELETE":
            assert answer.json().get("deleted", 1) >= 1, operation
    assert await listed(client, user_id=name) == set()


TWINS = tuple(name for name in ODD if name.startswith("a"))


@pytest.mark.parametrize("twin", TWINS, ids=lambda name: quote(name, safe=""))
async def test_a_deletion_takes_nothing_of_another_name(client: AsyncClient, twin: str) -> None:
    for user in ("a", twin):
        await store(client, "Likes tea", user_id=user)
        await opened(client, user, user_id="alice")
        for key in ("a", twin):
            at = f"/v1/working/{quote(user, safe='')}/items/{quote(key, safe='')}"
            assert (await client.put(at, json={"value": user})).status_code in (200, 201)
    sent = quote(twin, safe="")
    for path in (
        f"/v1/scopes/user/{sent}",
        f"/v1/compat/mem0/v2/entities/user/{sent}/",
        f"/v1/compat/mem0/v1/entities/user/{sent}",
        f"/v1/conversations/{sent}",
        f"/v1/working/a/items/{sent}",
        f"/v1/working/{sent}",
    ):
        assert (await client.delete(path)).status_code == 200, path
    assert len(await listed(client, user_id="a")) == 1
    assert await listed(client, user_id=twin) == set()
    assert (await client.get("/v1/conversations/a")).status_code == 200
    assert (await client.get(f"/v1/conversations/{sent}")).status_code == 404
    assert list((await client.get("/v1/working/a")).json()["items"]) == ["a"]


async def test_a_slash_that_is_sent_as_it_is(client: AsyncClient) -> None:
    """Behind a route it is optional; where a name may hold slashes it belongs to the name. Clients of mem0 add one."""
    for user in ("bob", "bob/"):
        await store(client, "Likes tea", user_id=user)
    assert (await client.delete("/v1/scopes/user/bob/")).json()["deleted"] == 1
    assert len(await listed(client, user_id="bob")) == 1
    assert await listed(client, user_id="bob/") == set()
    assert (await client.delete("/v1/compat/mem0/v2/entities/user/bob/")).status_code == 200
    assert await listed(client, user_id="bob") == set()
    assert (await client.get("/v1/memories//?user_id=bob")).status_code == 404
    assert (await client.get("/v1/memori%65s/?user_id=bob")).status_code == 200
    assert (await client.get("/v1%2Fmemories?user_id=bob")).status_code == 404
    assert (await client.get("/v1/memories%0A?user_id=bob")).status_code == 404


@pytest.mark.parametrize("name", STEPS)
async def test_steps_are_no_names(client: AsyncClient, name: str) -> None:
    """Browsers and most clients take them out of a URL, even encoded, and then it is the address of something else."""
    text = {"content": "Likes tea"}
    for method, path, body, field in (
        ("POST", "/v1/memories", {**text, "user_id": name}, "user_id"),
        ("POST", "/v1/memories", {**text, "agent_id": name}, "agent_id"),
        ("POST", "/v1/memories", {**text, "user_id": "u", "session_id": name}, "session_id"),
        ("POST", "/v1/conversations", {"external_id": name, "user_id": "u"}, "external_id"),
        ("PUT", "/v1/users/%2E%2E/profile", {}, "user_id"),
        ("PUT", "/v1/working/w/items/%2E", {"value": 1}, "key"),
        ("PUT", "/v1/entities", {"name": name, "type": "person", "user_id": "u"}, "name"),
        ("POST", "/v1/compat/mem0/v1/memories/", {"messages": "I like tea.", "user_id": name}, "user_id"),
    ):
        answer = await client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), path


@pytest.mark.parametrize("path", ["/redoc", "/favicon.ico", "/ui", "/v1", "/api/v1/memories", "/V1/memories", "/a%2Fb"])
async def test_what_is_nowhere_needs_no_key(anonymous: AsyncClient, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await anonymous.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert (await anonymous.get("/v1/nowhere")).status_code == 401, "of the API nothing is told without a key"
    assert (await anonymous.get("/mcp")).status_code == 401
    assert (await anonymous.get("/metrics")).status_code == 401

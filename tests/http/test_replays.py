"""Every route that takes an Idempotency-Key, native and of other systems: a repetition gets the first answer, from the
same scope and with the same rights only.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Param
from fastapi.routing import APIRoute
from httpx2 import AsyncClient, Response
from pydantic.fields import FieldInfo

from service.app.main import PARTS
from service.domain.errors import StoreUnavailable
from service.domain.request import IdempotencyKey
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.runtime.statements import idempotency
from tests.app.test_openapi import operations
from tests.app.test_walls_everywhere import BOB, bodies, furnish, paths, put, queries
from tests.conftest import Tenant
from tests.support.application import Tables, client_of
from tests.support.calls import store
from tests.support.judging import judged, tell
from tests.support.tasks import work

KEY = "Idempotency-Key"
UUIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


def steady(answer: Response) -> Any:
    """The body without what is measured anew."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without(each) for name, each in value.items() if name not in ("usage", "query_time_ms")}
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(answer.json())


def document_of(client: AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = client._transport.app.openapi()  # type: ignore[attr-defined]
    return found


def takes_key(operation: dict[str, Any]) -> bool:
    return any(each["name"] == KEY for each in operation.get("parameters", []))


def examples(document: dict[str, Any], operation: dict[str, Any]) -> list[Any]:
    if "requestBody" not in operation:
        return [None]
    shape = operation["requestBody"]["content"]["application/json"]["schema"]
    shape = (shape.get("anyOf") or [shape])[0]
    found: list[Any] = document["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]].get("examples", [])
    return found


RANKS = (
    {"delete_entity_relation", "complete_goal"},
    {"merge_entities"},
    {"delete_turn", "delete_relation", "delete_strategy"},
    {"delete_goal", "delete_entity", "delete_conversation", "delete_memory"},
    {"delete_memories_by_id"},
    {"forget"},
    {"delete_memories"},
    {"delete_scope"},
    {"reset_workspace"},
)
"""What takes away comes last, and the more the later."""


def rank(name: str) -> int:
    return next((index for index, names in enumerate(RANKS, 1) if name in names), 0)


async def candidates(
    client: AsyncClient, tables: Tables, path: str, operation: dict[str, Any], ids: dict[str, str]
) -> AsyncIterator[tuple[str, Any, Any]]:
    """Path, query and body of requests of which one should succeed."""
    match operation["operationId"]:
        case "store_conversation_later":
            yield path, None, {"messages": [{"role": "user", "content": "I keep bees."}], **BOB}
        case "promote_memory":
            own = await store(client, "Sails at noon", channel="boats", **BOB)
            yield path.replace("{id}", own), None, {}
        case "store_turn":
            yield path.replace("{id}", ids["conversation"]), None, {"role": "user", "content": "And it flies."}
        case "delete_entity":
            own = await put(client, "PUT", "/v1/entities", name="Ithaca Ltd", **BOB)
            yield path.replace("{id}", own["id"]), None, None
        case "reject_review":
            yield path.replace("{id}", await reviewed(client)), None, None
        case "forget":
            gone = await store(client, "Sails at dawn", **BOB)
            yield path, None, {"ids": [gone], **BOB}
        case "restore_memory":
            gone = await store(client, "Sails at dusk", **BOB)
            await tables.fetch("UPDATE memory SET archived = true WHERE id = $1", UUID(gone))
            yield path.replace("{id}", gone), None, None
    for target in paths(path, ids):
        for example in examples(document_of(client), operation):
            yield target, None, example
        for query in queries(operation, path, ids):
            for body in bodies(document_of(client), path, operation, ids):
                yield target, query, body


async def reviewed(client: AsyncClient) -> str:
    """The id of a review that is open."""
    found = (await client.get("/v1/reviews", params=BOB)).json()["results"]
    return str(found[0]["id"])


def check_repeated(first: Response, again: Response, name: str, *, whole: bool = True) -> None:
    """`whole`: answered from one stored answer, not from one for each item."""
    assert (again.status_code, steady(again)) == (first.status_code, steady(first)), name
    assert [again.headers.get(each) for each in ("ETag", "Location")] == [
        first.headers.get(each) for each in ("ETag", "Location")
    ], name
    assert ("Idempotency-Replayed" in again.headers) == whole, name


async def test_every_native_route_repeats_its_answer(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        ids = await furnish(client, judge)
        judge.say("The parrot lives in Rome", {"event": "ADD", "text": "The parrot lives in Rome"})
        await tell(client, "The parrot lives in Rome", run_id="r2", **BOB)
        judge.say("The parrot lives in Oslo", {"event": "UPDATE", "id": 1, "text": "The parrot lives in Oslo"})
        await tell(client, "The parrot lives in Oslo", run_id="r2", **BOB)
        await work(resources, tables, tenant.workspace_id, "enrich")
        every = [each for each in operations(document_of(client)) if takes_key(each[2])]
        every.sort(key=lambda each: rank(each[2]["operationId"]))
        unanswered = []
        for method, path, operation in every:
            name, number = operation["operationId"], 0
            async for target, query, body in candidates(client, tables, path, operation, ids):
                number += 1
                sent: dict[str, Any] = {"params": query, "json": body, "headers": {KEY: f"{name}-{number}"}}
                first = await client.request(method, target, **sent)
                if first.is_success:
                    again = await client.request(method, target, **sent)
                    check_repeated(first, again, name, whole=name != "store_memories")
                    break
            else:
                unanswered.append((name, first.text))
    assert [name for name, _ in unanswered] == ["apply_optimization"], unanswered  # tests/upkeep/test_optimization.py


AUTOMEM, MEM0 = "/v1/compat/automem", "/v1/compat/mem0"
TALK = {"messages": [{"role": "user", "content": "I keep bees."}], "user_id": "bob", "infer": False}
FOREIGN: dict[tuple[str, str], Any] = {
    ("POST", f"{AUTOMEM}/memory"): {"content": "Feeds the heron"},
    ("POST", f"{AUTOMEM}/memory/batch"): {"memories": [{"content": "Feeds the otter"}, {"content": "Sees the owl"}]},
    ("POST", f"{AUTOMEM}/associate"): {"memory1_id": "{0}", "memory2_id": "{1}", "type": "RELATES_TO"},
    ("PATCH", f"{AUTOMEM}/memory/{{id}}"): {"content": "Rows on the lake"},
    ("DELETE", f"{AUTOMEM}/memory/by-tag"): None,
    ("DELETE", f"{AUTOMEM}/memory/{{id}}"): None,
    ("POST", f"{MEM0}/v1/memories"): TALK,
    ("POST", f"{MEM0}/v3/memories/add"): TALK,
    ("PUT", f"{MEM0}/v1/memories/{{id}}"): {"text": "Rows on the sea"},
    ("PUT", f"{MEM0}/v1/batch"): {"memories": [{"memory_id": "{0}", "text": "Rows at dawn"}]},
    ("POST", f"{MEM0}/v1/feedback"): {"memory_id": "{0}", "feedback": "POSITIVE"},
    ("DELETE", f"{MEM0}/v1/memories/{{id}}"): None,
    ("DELETE", f"{MEM0}/v1/batch"): {"memories": [{"memory_id": "{0}"}]},
    ("DELETE", f"{MEM0}/v1/memories"): None,
    ("DELETE", f"{MEM0}/v1/entities/{{type}}/{{name:path}}"): None,
    ("DELETE", f"{MEM0}/v2/entities/{{type}}/{{name:path}}"): None,
}
"""A request to each route of another system that takes a key; {0} and {1} are ids."""

OF_ITEMS = {("POST", f"{AUTOMEM}/memory/batch"), ("PUT", f"{MEM0}/v1/batch")}


def is_documented(header: FieldInfo) -> bool:
    """Whether a route takes the header, which one that refuses it reads as well."""
    return isinstance(header, Param) and bool(header.include_in_schema)


def test_every_foreign_route_is_asked() -> None:
    routes = [route for part in PARTS for route in part.router.routes if isinstance(route, APIRoute)]
    taking = {
        (method, route.path)
        for route in routes
        if route.path.startswith(("/v1/compat/", AUTOMEM))
        and any(each.alias == KEY and is_documented(each.field_info) for each in get_flat_params(route.dependant))
        for method in route.methods or ()
    }
    assert taking == FOREIGN.keys()


@pytest.mark.parametrize("where", FOREIGN, ids=" ".join)
async def test_every_foreign_route_repeats_its_answer(client: AsyncClient, where: tuple[str, str]) -> None:
    method, path = where
    made = [
        await client.post(f"{AUTOMEM}/memory", json={"content": content, "tags": ["lake"]})
        for content in ("Rows on Tuesday", "Swims on Friday")
    ]
    ids = [each.json()["memory_id"] for each in made]
    await store(client, "Rows to the island", **BOB)
    target = path.replace("{id}", ids[0]).replace("{type}/{name:path}", "user/bob")
    sent = json.loads(json.dumps(FOREIGN[where]).replace("{0}", ids[0]).replace("{1}", ids[1]))
    params = {"tags": "lake"} if "by-tag" in path else {"user_id": "bob"} if target == f"{MEM0}/v1/memories" else {}
    request: dict[str, Any] = {"params": params if method == "DELETE" else {}, "json": sent, "headers": {KEY: "k"}}
    first = await client.request(method, target, **request)
    assert first.is_success, first.text
    again = await client.request(method, target, **request)
    check_repeated(first, again, path, whole=where not in OF_ITEMS)


async def test_relations_that_came_together_are_repeated(client: AsyncClient) -> None:
    ids = [
        (await client.post(f"{AUTOMEM}/memory", json={"content": f"Note {n}"})).json()["memory_id"] for n in range(3)
    ]
    ties = [{"memory1_id": ids[0], "memory2_id": each, "type": "RELATES_TO"} for each in ids[1:]]
    sent: dict[str, Any] = {"json": {"associations": ties}, "headers": {KEY: "k"}}
    first = await client.post(f"{AUTOMEM}/associate", **sent)
    await client.delete(f"/v1/memories/{ids[2]}")
    again = await client.post(f"{AUTOMEM}/associate", **sent)
    assert (first.status_code, again.status_code, first.json()) == (201, 201, again.json())


async def test_more_than_a_page_by_tag_is_deleted_and_counted_once(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.compat.automem.MOST_AT_ONCE", 2)
    for number in range(5):
        await client.post(f"{AUTOMEM}/memory", json={"content": f"Bird {number}", "tags": ["bird"]})
    sent: dict[str, Any] = {"params": {"tags": "bird"}, "headers": {KEY: "k"}}
    first = await client.delete(f"{AUTOMEM}/memory/by-tag", **sent)
    again = await client.delete(f"{AUTOMEM}/memory/by-tag", **sent)
    assert (first.json()["deleted_count"], again.json()) == (5, first.json())


async def test_a_key_without_an_answer_does_not_commit(database: Database, tenant: Tenant) -> None:
    key = IdempotencyKey("k", "f", 60.0)
    with pytest.raises(StoreUnavailable):
        async with database.begin(tenant.workspace_id) as session:
            await idempotency.claim(session, key)
    async with database.read(tenant.workspace_id) as session:
        assert await idempotency.find(session, key) is None


# -- whose an answer is ----------------------------------------------------------------------------------------------


async def made(client: AsyncClient, *rights: str, **fields: Any) -> str:
    rights = rights or ("memory:read", "memory:write", "memory:delete")
    return str((await put(client, "POST", "/v1/api-keys", name="x", rights=rights, **fields))["api_key"])


SCOPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"defaults": {"user_id": "alice"}}, {"defaults": {"user_id": "bob"}}),
    ({"defaults": {"agent_id": "a"}}, {"defaults": {"agent_id": "b"}}),
    ({"defaults": {"run_id": "a"}}, {"defaults": {"run_id": "b"}}),
    ({"defaults": {"user_id": "alice", "channel": "a"}}, {"defaults": {"user_id": "alice", "channel": "b"}}),
    ({"user_id": "alice"}, {"user_id": "bob"}),
    (
        {"channels": ["a", "b"], "defaults": {"user_id": "alice", "channel": "a"}},
        {"channels": ["a", "b"], "defaults": {"user_id": "alice", "channel": "b"}},
    ),
]
SAID = [{"role": "user", "content": "The PIN hint is the year of the bees"}]
WRITES: list[tuple[str, str, Any, dict[str, str]]] = [
    ("POST", "/v1/memories", {"content": "The PIN hint is the year of the bees"}, {}),
    ("POST", "/v1/memories", {"messages": SAID}, {}),
    ("POST", "/v1/memories", {"messages": SAID}, {"Prefer": "respond-async"}),
    ("POST", "/v1/memories/batch", {"items": [{"content": "The PIN hint"}]}, {}),
    ("POST", "/v1/operations", {"messages": SAID}, {}),
    ("DELETE", "/v1/memories", None, {}),
    ("POST", "/v1/conversations", {}, {}),
    ("POST", "/v1/goals", {"description": "Keep bees"}, {}),
    ("POST", f"{AUTOMEM}/memory", {"content": "The PIN hint"}, {}),
    ("POST", f"{AUTOMEM}/memory/batch", {"memories": [{"content": "The PIN hint"}]}, {}),
    ("POST", f"{MEM0}/v3/memories/add", {"messages": SAID, "infer": False}, {}),
]


@pytest.mark.parametrize(("one", "other"), SCOPES, ids=lambda each: json.dumps(each))
async def test_a_key_of_another_scope_is_not_answered_for_this_one(
    client: AsyncClient, app: FastAPI, one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = await made(client, **one), await made(client, **other)
    same = await made(client, **one)
    async with client_of(app, first) as a, client_of(app, second) as b, client_of(app, same) as c:
        for number, (method, path, body, headers) in enumerate(WRITES):
            if method == "DELETE":
                for each in (a, b):
                    await put(each, "POST", "/v1/memories", content=f"Bird {number}")
            sent: dict[str, Any] = {"json": body, "headers": {**headers, KEY: f"k{number}"}}
            answers = [await each.request(method, path, **sent) for each in (a, b, c)]
            assert [each.status_code for each in answers] == [answers[0].status_code] * 3, answers[1].text
            own, foreign, repeated = answers
            assert own.is_success, own.text
            assert "Idempotency-Replayed" not in foreign.headers
            assert steady(repeated) == steady(own), path
            ids = set(UUIDS.findall(own.text))
            assert not ids & set(UUIDS.findall(foreign.text)), f"{path}: {foreign.text}"


async def test_a_write_only_key_gets_no_text_by_repeating(client: AsyncClient, app: FastAPI) -> None:
    reads, writes = await made(client, user_id="alice"), await made(client, "memory:write", user_id="alice")
    body = {"content": "Feeds the heron at noon"}
    async with client_of(app, reads) as reader, client_of(app, writes) as writer:
        await reader.post("/v1/memories", json=body)
        full = await reader.post("/v1/memories", json=body, headers={KEY: "k"})
        assert full.json()["results"][0]["memory"] == body["content"]
        for headers in ({}, {KEY: "k"}, {KEY: "other"}, {KEY: "k"}):
            found = (await writer.post("/v1/memories", json=body, headers=headers)).json()["results"][0]
            assert (found["memory"], found["old_memory"]) == (None, None)
        batch = {"items": [body]}
        assert (await reader.post("/v1/memories/batch", json=batch, headers={KEY: "b"})).json()["results"]
        again = await writer.post("/v1/memories/batch", json=batch, headers={KEY: "b"})
        assert again.json()["results"][0]["results"][0]["memory"] is None

"""Every operation of the OpenAPI document, called with a key and a token made for Alice and aimed at what is Bob's.

Bob has something in every table, with a canary word in each of its texts. Whatever a key of Alice's sends, at once or
to be done later, no answer shows the word, no row of Bob's changes, and no id of his is found. What is Bob's is
answered like what is not there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response

from service.runtime.resources import Resources
from tests.app.test_openapi import operations
from tests.conftest import Tenant
from tests.support.application import Tables, client_of, serving
from tests.support.calls import opened, said, store
from tests.support.judging import Judge, judged, tell
from tests.support.tasks import work

CANARY = "Wallabyish"
BOB = {"user_id": "bob"}
RIGHTS = ["memory:read", "memory:write", "memory:delete", "memory:purge", "memory:admin", "memory:share"]
NOT_HIS = frozenset(
    {
        "api_key",
        "erased_memory",
        "model_day",
        "llm_cache",
        "embedding_cache",
        "webhook",
        "webhook_delivery",
        "workspace",
    }
)
"""Tables of the workspace, not of Bob: keys, caches."""

KIND_OF_PATH = {
    "memories": "memory",
    "conversations": "conversation",
    "turns": "turn",
    "entities": "entity",
    "decisions": "decision",
    "reviews": "review",
    "operations": "operation",
    "jobs": "memory",
    "goals": "goal",
    "strategies": "strategy",
    "api-keys": "key",
    "agent": "name",
    "webhooks": "memory",
}
NAMES = {"user_id": "bob", "type": "user", "conversation_id": "bobs-session", "key": "cart", "name": f"{CANARY} Ltd"}


async def put(client: AsyncClient, method: str, path: str, **body: Any) -> Any:
    answer = await client.request(method, path, json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    return answer.json()


async def furnish(client: AsyncClient, judge: Judge) -> dict[str, str]:
    """Something of Bob's of every kind; returns the id of each."""
    ids = {"memory": await store(client, f"Keeps a {CANARY} bird", tags=[CANARY], metadata={"of": CANARY}, **BOB)}
    ids["other_memory"] = await store(client, f"Feeds the {CANARY} at noon", **BOB)
    tie = {"target_id": ids["other_memory"], "type": "RELATES_TO"}
    await put(client, "POST", f"/v1/memories/{ids['memory']}/relations", **tie)
    ids["conversation"] = await opened(client, "bobs-talk", title=f"{CANARY} plans", **BOB)
    ids["turn"] = await said(client, ids["conversation"], f"The {CANARY} sings.", name=CANARY)
    judge.say(f"The {CANARY} lives in Lisbon", {"event": "ADD", "text": f"The {CANARY} lives in Lisbon"})
    [told] = await tell(client, f"The {CANARY} lives in Lisbon", run_id="bobs-run", **BOB)
    judge.say(f"The {CANARY} lives in Porto", {"event": "UPDATE", "id": 1, "text": f"The {CANARY} lives in Porto"})
    await tell(client, f"The {CANARY} lives in Porto", run_id="bobs-run", **BOB)
    decisions = (await client.get(f"/v1/memories/{told['id']}/decisions")).json()["results"]
    reviews = (await client.get("/v1/reviews", params=BOB)).json()["results"]
    ids |= {"decision": decisions[0]["id"], "review": reviews[0]["id"]}
    for name in ("entity", "other_entity", "third_entity"):
        named = {"name": f"{CANARY} {name}", "type": "organization", "description": CANARY, **BOB}
        ids[name] = (await put(client, "PUT", "/v1/entities", **named))["id"]
    await put(
        client, "POST", "/v1/entities/relations", source_id=ids["entity"], target_id=ids["other_entity"], type="OWNS"
    )
    merged = {"source_id": ids["third_entity"], "target_id": ids["other_entity"]}
    await put(client, "POST", "/v1/entities/merge", **merged)
    goal = await put(client, "POST", "/v1/goals", description=f"Sell the {CANARY}", memory_ids=[ids["memory"]], **BOB)
    ids["goal"] = goal["id"]
    learned = {"description": f"Ask the {CANARY} first", "success": True, "tool_sequence": [CANARY], **BOB}
    strategy = await put(client, "POST", "/v1/strategies", **learned, from_conversation_id=ids["conversation"])
    ids["strategy"] = strategy["id"]
    use = {
        "tool_name": CANARY,
        "tool_input": {"q": CANARY},
        "success": True,
        "conversation_id": ids["conversation"],
    }
    await put(client, "POST", "/v1/tool-invocations", **use, turn_id=ids["turn"])
    await put(client, "PUT", "/v1/working/bobs-session/items/cart?user_id=bob", value=CANARY)
    await put(client, "PUT", "/v1/users/bob/profile", preferences={"bird": CANARY})
    body = {"messages": [{"role": "user", "content": f"{CANARY} again"}], "infer": False, "run_id": "later", **BOB}
    waiting = await client.post("/v1/memories", json=body, headers={"Prefer": "respond-async"})
    ids["operation"] = waiting.json()["operation_id"]
    kept = {"content": f"A {CANARY} is blue", **BOB}
    assert (await client.post("/v1/memories", json=kept, headers={"Idempotency-Key": "k"})).status_code == 201
    heard = {
        "messages": [{"role": "user", "content": f"Acme Corp owns {CANARY} Ltd"}],
        "infer": False,
        "run_id": "r",
        **BOB,
    }
    gone = (await put(client, "POST", "/v1/memories", **heard))["results"][0]["id"]
    await put(client, "DELETE", f"/v1/memories/{gone}")
    ids["key"] = (await client.get("/v1/whoami")).json()["api_key_id"]
    return ids | {"name": "bob"}


def paths(path: str, ids: dict[str, str]) -> Iterator[str]:
    """The path with what is Bob's in it; a conversation by its id and by its name."""

    def filled(found: re.Match[str], name: str | None = None) -> str:
        if found[1] in NAMES and found[1] != "type":
            return quote(NAMES[found[1]])
        before = [part for part in path[: found.start()].split("/") if part and "{" not in part]
        if found[1] == "type":
            return "user"
        if before[-1] == "scopes":
            return "bob"
        return name or ids[KIND_OF_PATH[before[-1]]]

    yield re.sub(r"\{(\w+)(?::path)?\}", filled, path)
    if path.startswith("/v1/conversations/{"):
        yield re.sub(r"\{(\w+)\}", lambda found: filled(found, "bobs-talk"), path)


def references(path: str, ids: dict[str, str]) -> dict[str, Any]:
    """Fields that name other things, filled with Bob's."""
    both = ["entity", "other_entity"] if path.startswith("/v1/entities") else ["memory", "other_memory"]
    return {
        "ids": [ids["memory"], ids["other_memory"]],
        "memory_ids": [ids["memory"]],
        "source_id": ids[both[0]],
        "target_id": ids[both[1]],
        "parent_id": ids["goal"],
        "goal_id": ids["goal"],
        "blocked_by": [ids["goal"]],
        "conversation_id": ids["conversation"],
        "from_conversation_id": ids["conversation"],
        "turn_id": ids["turn"],
        "explain_id": ids["memory"],
        "memory_id": ids["memory"],
        "task": CANARY,
        "query": CANARY,
        "tags": CANARY,
    }


def bodies(document: dict[str, Any], path: str, operation: dict[str, Any], ids: dict[str, str]) -> Iterator[Any]:
    """What is sent: the examples, for Bob, and for Alice with references to what is Bob's."""
    if "requestBody" not in operation:
        yield None
        return
    shape = operation["requestBody"]["content"]["application/json"]["schema"]
    shape = (shape.get("anyOf") or [shape])[0]
    model = document["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
    theirs = {name: value for name, value in references(path, ids).items() if name in model["properties"]}
    for example in model.get("examples", [{}]):
        given = {**example, **({"items": [{**example["items"][0], "id": ids["memory"]}]} if "items" in example else {})}
        own = {name: value for name, value in given.items() if name not in ("user_id", "dry_run")}
        yield {**own, **{name: value for name, value in theirs.items() if name != "tags"}}
        if "query" in given:
            yield {**own, "query": CANARY}
        if "user_id" in model["properties"]:
            yield {**given, **BOB}
        if "agent_id" in model["properties"]:
            yield {**own, "agent_id": "bobs-agent"}


def queries(operation: dict[str, Any], path: str, ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    names = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query"}
    needed = {each["name"] for each in operation.get("parameters", []) if each["in"] == "query" and each["required"]}
    theirs = {name: value for name, value in references(path, ids).items() if name in names}
    yield {**theirs, **({"type": "OWNS"} if "type" in needed else {})}
    if "user_id" in names:
        yield {**theirs, "user_id": "bob"}
    if "run_id" in names:
        yield {**theirs, "run_id": "bobs-run"}
    if "purge" in names:
        yield {**theirs, "purge": "true"}


async def rows(tables: Tables, workspace_id: UUID) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for name in tables.names:
        if name not in NOT_HIS:
            sql = f"SELECT to_jsonb(t)::text FROM {name} t WHERE workspace_id = $1"
            found.update((name, row[0]) for row in await tables.fetch(sql, workspace_id))
    return found


WALLS: dict[str, dict[str, Any]] = {
    "user": {"user_id": "alice"},
    "agent": {"agent_id": "guide"},
    "run": {"run_id": "alices-run"},
    "channels": {"channels": ["support"]},
}
"""All that is Bob's lies outside of each: it has no agent, and is in _global."""

LATER = ("ingest", "consolidate", "forget_scope", "embed", "enrich")


async def key_for_alice(client: AsyncClient, app: FastAPI, wall: dict[str, Any], *, by_token: bool) -> str:
    body = {"name": "for Alice", "rights": [*RIGHTS, "tokens"], **({} if by_token else wall)}
    key = str((await put(client, "POST", "/v1/api-keys", **body))["api_key"])
    if not by_token:
        return key
    async with client_of(app, key) as server:
        return str((await put(server, "POST", "/v1/tokens", rights=RIGHTS, **wall))["token"])


def requests(document: dict[str, Any], ids: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Every operation as it may be aimed at what is Bob's; those that can be answered later, later too."""
    for method, path, operation in operations(document):
        for target in paths(path, ids):
            for query in queries(operation, path, ids):
                for sent in bodies(document, path, operation, ids):
                    yield {"method": method, "url": target, "params": query, "json": sent}
                    if operation["operationId"] in ("store_memory", "store_conversation_later"):
                        named = {"messages": [{"role": "user", "content": "Hello."}], "session_id": "bobs-talk", **BOB}
                        for body in (sent, named, {**named, "infer": False}, {**named, "user_id": None}):
                            later = {"Prefer": "respond-async"}
                            yield {"method": method, "url": target, "params": query, "json": body, "headers": later}


@pytest.mark.parametrize(
    ("wall", "by_token"), [*((name, False) for name in WALLS), ("user", True)], ids=[*WALLS, "user's token"]
)
async def test_no_operation_reaches_beyond_the_wall(
    resources: Resources, tenant: Tenant, tables: Tables, wall: str, *, by_token: bool
) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review", audit_level="verbose") as (client, judge):
        ids = await furnish(client, judge)
    for kind in LATER:
        await work(resources, tables, tenant.workspace_id, kind)
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        key = await key_for_alice(client, app, WALLS[wall], by_token=by_token)
        before = await rows(tables, tenant.workspace_id)
        furnished = {name for name, _ in before}
        called = 0
        async with client_of(app, key) as alice:
            for request in requests(app.openapi(), ids):
                answer = await alice.request(**request)
                where = f"{json.dumps(request)}: {answer.status_code} {answer.text}"
                assert answer.status_code < 500, where
                assert CANARY not in answer.text, where
                called += 1
                if called % 20 == 0:
                    assert not (lost := before - await rows(tables, tenant.workspace_id)), (
                        f"{where}: {sorted(lost)[:3]}"
                    )
        assert called > 250
        for kind in LATER:
            await work(resources, tables, tenant.workspace_id, kind)
        assert not (lost := before - await rows(tables, tenant.workspace_id)), sorted(lost)[:3]
    closed = {"term_stat", "job", *NOT_HIS}
    assert set(tables.names) - furnished - closed <= {
        "goal_edge",
        "entity_vector",
        "entity_edge_source",
        "withdrawn_span",
    }


def shape(answer: Response) -> Any:
    """What an answer says of itself: its status, and of an error the code and field; else the names of its fields."""
    found = answer.json() if answer.content else {}
    if answer.is_error:
        return answer.status_code, found.get("code"), found.get("field")
    return answer.status_code, sorted(found) if isinstance(found, dict) else len(found)


@pytest.mark.parametrize("wall", WALLS)
async def test_what_is_outside_is_answered_like_what_is_not_there(
    resources: Resources, tenant: Tenant, tables: Tables, wall: str
) -> None:
    async with judged(resources, tenant, contradiction_policy="flag_review") as (client, judge):
        ids = await furnish(client, judge)
    nowhere = {each: str(uuid4()) for each in ids.values() if each != "bob"}
    nowhere |= {f"bobs-{name}": f"nobodys-{name}" for name in ("talk", "session", "run")}
    nowhere |= {f"{CANARY} Ltd": "Nowhere Ltd", quote(f"{CANARY} Ltd"): quote("Nowhere Ltd")}
    async with serving(resources) as app, client_of(app, tenant.key) as client:
        key = await key_for_alice(client, app, WALLS[wall], by_token=False)
        async with client_of(app, key) as alice:
            for request in requests(app.openapi(), ids):
                written = json.dumps(request)
                for here, there in nowhere.items():
                    written = written.replace(here, there)
                is_chosen = request["url"].startswith("/v1/memories/batch") and '"id":' in json.dumps(request["json"])
                if written == json.dumps(request) or is_chosen:
                    continue  # a chosen id of a new memory that is taken is 409, as documented
                theirs, nobodys = await alice.request(**request), await alice.request(**json.loads(written))
                assert shape(theirs) == shape(nobodys), f"{request}: {theirs.text} {nobodys.text}"

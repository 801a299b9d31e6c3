"""MCP over HTTP with the official client: an agent's tools, walls, headers, errors, and what is no MCP at all."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient, Response
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent, TextResourceContents

from service.mcp.routes.mcp import ID_HEADERS
from service.mcp.tools import BY_NAME, SCOPE, TOOLS, AgentTool
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import client_of, serving

REVISIONS = ("2026-07-28", "legacy")
"""What clients speak today, and the one before, which begins with a handshake."""

URL = "http://test/mcp"
UNKNOWN = "0198f1c2-7d5e-7cc3-9a55-0a6d1d3a1b2c"
DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


@asynccontextmanager
async def agent(app: FastAPI, key: str, mode: str = "2026-07-28", **headers: str) -> AsyncIterator[Client]:
    """A client of a connection with these headers; X_User_Id is X-User-Id."""
    async with client_of(app, key) as http:
        http.headers.update([(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()])
        async with Client(streamable_http_client(URL, http_client=http), mode=mode) as found:
            yield found


async def said(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a tool, which is what its schema promises."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content
    jsonschema_rs.validator_for(BY_NAME[tool].answer_schema()).validate(found)
    return found


async def refused(client: Client, tool: str, **arguments: Any) -> tuple[str, Any]:
    """The sentence of the error of a tool, and its code."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.content
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text, (answer.meta or {})["loxodon/problem"]["code"]


async def a_key(client: AsyncClient, *rights: str, **wall: Any) -> str:
    made = await client.post("/v1/api-keys", json={"name": "agent", "rights": list(rights), **wall})
    assert made.status_code == 201, made.text
    return str(made.json()["api_key"])


# -- what there is -----------------------------------------------------------------------------------------------------


def test_an_agent_is_told_of_few_tools_in_few_words() -> None:
    assert len(TOOLS) <= 12
    told = json.dumps([(row.name, row.description, row.schema({})) for row in TOOLS])
    fixed = json.dumps([(row.name, row.description, row.schema(dict.fromkeys(SCOPE, "a"))) for row in TOOLS])
    assert len(told) < 11_200, "some 2,800 tokens"
    assert len(fixed) < 8_700


@pytest.mark.parametrize("row", TOOLS, ids=lambda row: row.name)
def test_an_argument_is_what_the_route_takes(row: AgentTool) -> None:
    """Of the same name, with no wider limits."""
    document = json.loads(DOCUMENT.read_text())
    operation = document["paths"][row.path][row.method.lower()]
    taken = {each["name"]: each["schema"] for each in operation.get("parameters", [])}
    if "requestBody" in operation:
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        taken |= _resolved(body, document)["properties"]
    for name, told in {**row.arguments, **(SCOPE if row.is_scoped else {})}.items():
        real = _resolved(taken[name], document)
        for limit in ("maximum", "maxLength", "maxItems"):
            assert told.get(limit, 0) <= real.get(limit, 1_000_000), f"{name}: {limit}"
        assert set(told.get("enum", ())) <= set(real.get("enum", told.get("enum", ()))), name
    assert row.also.keys() <= taken.keys()


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references, and without null."""
    found = dict(schema)
    if "anyOf" in found:
        found |= next(each for each in found["anyOf"] if each != {"type": "null"})
    if "$ref" in found:
        found |= document["components"]["schemas"][found["$ref"].rpartition("/")[2]]
    return found


# -- a talk ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", REVISIONS)
async def test_an_agent_remembers_corrects_and_forgets(
    app: FastAPI, tenant: Tenant, embedder: AngleEmbedder, mode: str
) -> None:
    embedder.place("What does drink in the morning?", 1.0)
    embedder.place("Alice drinks tea in the morning", 0.9)
    async with agent(app, tenant.key, mode, X_User_Id="alice") as client:
        assert mode != "legacy" or "recall" in (client.instructions or ""), "the handshake tells how to use it"
        tea = (await said(client, "remember", content="Alice drinks tea in the morning", tags=["drink"]))["results"][0]
        again = (await said(client, "remember", content="Alice drinks tea in the morning"))["results"][0]
        assert (tea["event"], again["event"], again["id"]) == ("ADD", "NONE", tea["id"])
        secret = await said(client, "remember", content="Alice's card number is 4111 1111 1111 1111")
        assert "4111" not in secret["results"][0]["memory"]
        assert not re.search(r"4111\D?1111", str(secret)), "an id may hold four of these digits"
        assert secret["results"][0]["redacted"]
        talk = [
            {"role": "user", "content": "I work at Acme now."},
            {"role": "user", "content": "My sister is called Ana."},
        ]
        assert len((await said(client, "remember_conversation", messages=talk, session_id="chat-1"))["results"]) == 2

        found = await client.call_tool("recall", {"query": "What does Alice drink in the morning?"})
        assert isinstance(found.content[0], TextContent)
        assert "Alice drinks tea in the morning" in found.content[0].text
        assert tea["id"] in [each["id"] for each in found.structured_content["facts"]]
        hits = await said(client, "search", query="tea in the morning", tags=["drink"])
        assert [each["id"] for each in hits["results"]] == [tea["id"]]

        changed = await said(client, "update", id=tea["id"], content="Alice drinks coffee in the morning")
        assert changed["memory"] == "Alice drinks coffee in the morning"
        changes = (await said(client, "why", id=tea["id"]))["changes"]
        assert [each.get("old_memory") for each in changes] == [None, "Alice drinks tea in the morning"]

        shown = await said(client, "forget", query="Ana", dry_run=True)
        assert [each["memory"] for each in shown["memories"]] == ["User: My sister is called Ana."]
        assert (await said(client, "forget", query="Ana"))["removed"]
        kept = {each["memory"] for each in (await said(client, "list_memories"))["results"]}
        assert {"Alice drinks coffee in the morning", "User: I work at Acme now."} <= kept
        assert not [each for each in kept if "Ana" in each or "tea" in each]
        transcript = await client.read_resource("loxodon://conversations/chat-1")
        assert isinstance(transcript.contents[0], TextResourceContents)
        assert "Acme" in transcript.contents[0].text
        assert "Ana" not in transcript.contents[0].text


async def test_an_agent_stores_and_changes_all_of_a_memory(app: FastAPI, client: AsyncClient, tenant: Tenant) -> None:
    vector = [1.0, *[0.0] * (app.state.resources.embedder.dimension - 1)]
    given: dict[str, Any] = {"tags": ["drink"], "importance": 0.9, "metadata": {"by": "me"}}
    new: dict[str, Any] = {"tags": ["food"], "importance": 0.4, "metadata": {"by": None, "seen": True}}
    async with agent(app, tenant.key, X_User_Id="alice") as one:
        made = await said(
            one, "remember", content="Alice likes tea", embedding=vector, timestamp="2026-01-02T00:00:00Z", **given
        )
        tea = made["results"][0]["id"]
        stored = (await client.get(f"/v1/memories/{tea}")).json()
        assert {name: stored[name] for name in given} == given
        assert stored["timestamp"] == "2026-01-02T00:00:00+00:00"
        await said(one, "update", id=tea, type_confidence=0.4, timestamp="2026-01-03T00:00:00Z", **new)
        stored = (await client.get(f"/v1/memories/{tea}")).json()
        assert (stored["tags"], stored["importance"], stored["metadata"]) == (["food"], 0.4, {"seen": True})
        assert (stored["type_confidence"], stored["timestamp"]) == (0.4, "2026-01-03T00:00:00+00:00")
        tools = {each.name: each.annotations for each in (await one.list_tools()).tools}
        assert tools["forget"] is not None
        assert (tools["forget"].destructive_hint, tools["forget"].idempotent_hint) == (True, True)
    async with agent(app, await a_key(client, "memory:read", "memory:write"), X_User_Id="alice") as other:
        sentence, code = await refused(other, "update", id=tea, timestamp="2026-01-03T00:00:00Z")
        assert (code, "memory:admin" in sentence) == ("forbidden", True)


async def test_goals_relations_pages_and_resources(app: FastAPI, client: AsyncClient, tenant: Tenant) -> None:
    await client.put("/v1/users/alice/profile", json={"preferences": {"tone": "dry"}})
    async with agent(app, tenant.key, X_User_Id="alice") as one:
        ids = [
            (await said(one, "remember", content=each))["results"][0]["id"] for each in ("Oslo trip", "New passport")
        ]
        edge = await said(one, "relate", id=ids[0], target_id=ids[1], type="DERIVED_FROM")
        assert (edge["source_id"], edge["target_id"]) == (ids[0], ids[1])
        first = await said(one, "list_memories", limit=1)
        second = await said(one, "list_memories", limit=1, cursor=first["next_cursor"])
        assert [each["results"][0]["id"] for each in (first, second)] == ids[::-1]

        goal = await said(one, "set_goal", description="Move to Oslo", priority=3)
        assert [each["id"] for each in (await said(one, "goals", status="active"))["results"]] == [goal["id"]]
        assert (await said(one, "close_goal", id=goal["id"], result="Moved"))["status"] == "completed"
        assert (await said(one, "goals", status="active"))["results"] == []

        await said(
            one, "remember_conversation", messages=[{"role": "user", "content": "I like dry jokes."}], session_id="c"
        )
        listed = {each.name: each.uri for each in (await one.list_resources()).resources}
        assert listed.keys() == {"Profile", "c"}
        for name, words in (("Profile", '"tone": "dry"'), ("c", "user: I like dry jokes.")):
            read = (await one.read_resource(listed[name])).contents[0]
            assert isinstance(read, TextResourceContents)
            assert words in read.text
        assert len((await one.list_resource_templates()).resource_templates) == 2
        with pytest.raises(MCPError, match="There is no conversation"):
            await one.read_resource("loxodon://conversations/nowhere")
        for uri in ("loxodon://conversations/%00", "loxodon://conversations/.."):
            with pytest.raises(MCPError, match="must be a name"):
                await one.read_resource(uri)
        with pytest.raises(MCPError, match="uri: must be"):
            await one.read_resource("file:///etc/passwd")


# -- who ---------------------------------------------------------------------------------------------------------------


async def test_a_key_for_one_user_reaches_no_other(app: FastAPI, client: AsyncClient, tenant: Tenant) -> None:
    async with agent(app, tenant.key, X_User_Id="bob") as bob:
        bobs = (await said(bob, "remember", content="Bob collects mechanical clocks"))["results"][0]["id"]
        talk = [{"role": "user", "content": "I collect clocks."}]
        await said(bob, "remember_conversation", messages=talk, session_id="bobs-chat")
    await client.put("/v1/users/bob/profile", json={"preferences": {"tone": "loud"}})
    key = await a_key(client, "memory:read", "memory:write", "memory:delete", user_id="alice")
    async with agent(app, key) as alice:
        tools = {each.name: each for each in (await alice.list_tools()).tools}
        assert "user_id" not in tools["recall"].input_schema["properties"], "the wall says whose"
        assert (await said(alice, "remember", content="Alice rows on the lake"))["results"][0]["event"] == "ADD"
        assert await refused(alice, "search", query="clocks", user_id="bob") == (
            "user_id: this key is restricted to another one.",
            "forbidden",
        )
        assert "clocks" not in str(await said(alice, "recall", query="Which clocks?"))
        assert "clocks" not in str(await said(alice, "list_memories"))
        for tool, more in (("why", {}), ("update", {"content": "Nothing"})):
            assert await refused(alice, tool, id=bobs, **more) == ("There is no memory with this id.", "not_found")
        assert not (await said(alice, "forget", ids=[bobs]))["removed"]
        for uri in ("loxodon://users/bob/profile", "loxodon://conversations/bobs-chat"):
            with pytest.raises(MCPError):
                await alice.read_resource(uri)
        listed = (await alice.list_resources()).resources
        assert "bob" not in str(listed)
        assert "Profile" not in {each.name for each in listed}, "she has none"
    assert (await client.get(f"/v1/memories/{bobs}")).json()["memory"] == "Bob collects mechanical clocks"


async def test_headers_fix_whose_memory_it_is(app: FastAPI, tenant: Tenant, client: AsyncClient) -> None:
    bobs = (await client.post("/v1/memories", json={"content": "Bob swims", "user_id": "bob"})).json()["results"][0][
        "id"
    ]
    async with agent(app, tenant.key, X_User_Id="Ålice", X_Agent_Id="guide", X_Channel="work") as one:
        told = {each.name: each.input_schema["properties"].keys() for each in (await one.list_tools()).tools}
        assert all(SCOPE.keys().isdisjoint(names) for names in told.values())
        made = (await said(one, "remember", content="Prefers the window seat"))["results"][0]["id"]
        assert (await refused(one, "recall", query="x", user_id="bob"))[0] == (
            "user_id: is fixed by this connection; leave it out."
        )
        assert (await refused(one, "update", id=bobs, content="Sinks"))[1] == "not_found"
        with pytest.raises(MCPError, match="user_id: this connection is fixed"):
            await one.read_resource("loxodon://users/bob/profile")
    found = (await client.get(f"/v1/memories/{made}")).json()
    assert (found["user_id"], found["agent_id"], found["channel"]) == ("Ålice", "guide", "work")
    bad = await client.post("/mcp", json={}, headers={"X-User-Id": "4111 1111 1111 1111"})
    assert (bad.status_code, bad.json()["field"]) == (400, "X-User-Id")
    for header in ID_HEADERS.values():
        for empty in ("", "  "):
            bad = await client.post("/mcp", json={}, headers={header: empty})
            assert (bad.status_code, bad.json()["field"]) == (400, header)


async def test_rights_are_those_of_the_key(app: FastAPI, client: AsyncClient) -> None:
    async with agent(app, await a_key(client, "memory:read"), X_User_Id="alice") as reader:
        assert (await said(reader, "recall", query="anything"))["facts"] == []
        assert await refused(reader, "remember", content="x") == ("This key lacks the right memory:write.", "forbidden")
        assert (await refused(reader, "forget", query="x"))[1] == "forbidden"


async def test_processes_behind_a_balancer_answer_alike(resources: Resources, app: FastAPI, tenant: Tenant) -> None:
    """Nothing of a connection is kept: what one process has shaken hands on, another one serves."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "remember", "arguments": {"content": "Alice sings", "user_id": "alice"}}
    async with serving(resources) as other, client_of(app, tenant.key) as here, client_of(other, tenant.key) as there:
        shaken = await sent(here, "initialize", hello)
        assert "mcp-session-id" not in shaken.headers
        assert shaken.json()["result"]["protocolVersion"] == "2025-06-18"
        called = await sent(there, "tools/call", call, **{"mcp-protocol-version": "2025-06-18"})
        assert called.json()["result"]["structuredContent"]["results"][0]["event"] == "ADD"
        assert (await here.get("/mcp")).status_code == 405
        assert (await here.delete("/mcp")).status_code == 405


# -- what is refused ---------------------------------------------------------------------------------------------------


async def sent(client: AsyncClient, method: str, params: Any, **headers: str) -> Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"Accept": "application/json, text/event-stream"}
    return await client.post("/mcp", json=body, headers={**accepted, **headers})


async def test_the_text_of_a_list_is_not_one(app: FastAPI, tenant: Tenant, client: AsyncClient) -> None:
    """Models send it; the routes would split it at its commas, or take it for what was said."""
    async with agent(app, tenant.key, X_User_Id="alice") as one:
        for tool, name, given in (
            ("remember", "tags", {"content": "Likes gin", "tags": '["a", "b"]'}),
            ("remember_conversation", "messages", {"messages": '[{"role": "user", "content": "I like gin."}]'}),
            ("list_memories", "types", {"types": "Preference"}),
            ("forget", "ids", {"ids": "01a206a3-5e2c-70f6-83f7-413baf8bea2e"}),
        ):
            assert await refused(one, tool, **given) == (f"{name}: must be a list.", "invalid_input")
    assert (await client.get("/v1/memories", params={"user_id": "alice"})).json()["results"] == []


async def test_errors_of_tools_are_sentences(app: FastAPI, tenant: Tenant) -> None:
    async with agent(app, tenant.key) as client:
        said_of: dict[tuple[str, str], dict[str, Any]] = {
            ("recall", "query"): {"query": "x"},
            ("remember", "user_id"): {},
            ("search", "query"): {"query": 5, "user_id": "a"},
            ("forget", "user_id"): {"user_id": "a", "purge": True, "query": "x"},
            ("why", "id"): {"id": "../../v1/config"},
            ("update", "id"): {"id": "no-uuid", "content": "x"},
            ("set_goal", "user_id"): {"description": "Rest", "priority": 5_000, "user_id": "a"},
        }
        found = [(await refused(client, tool, **arguments))[0] for (tool, _), arguments in said_of.items()]
        assert found == [
            "user_id: say whose memory it is, by user_id or agent_id.",
            "content: is missing.",
            "query: must be a string",
            "purge: is not an argument of this tool.",
            "There is no memory with this id.",
            "There is no memory with this id.",
            "priority: must be less than or equal to 1000",
        ]
        word = await refused(client, "remember", content="x" * 2_001, user_id="a")
        assert word == ("content has 2,001 characters; at most 2,000 are accepted.", "too_large")
        drawn = {"id": UNKNOWN, "target_id": UNKNOWN, "type": "MAY_OUTDATE"}
        sentence, code = await refused(client, "relate", **drawn)
        assert sentence.startswith("type: must be one of OCCURRED_BEFORE, EXEMPLIFIES,")
        assert code == "invalid_input"
        with pytest.raises(MCPError, match="There is no such tool; the tools are remember,"):
            await client.call_tool("drop_tables", {})
        assert (await said(client, "goals", user_id="a"))["results"] == [], "the connection goes on"


async def test_who_has_no_key_or_comes_from_a_page_is_kept_out(
    client: AsyncClient, anonymous: AsyncClient, other_client: AsyncClient
) -> None:
    assert (await anonymous.post("/mcp", json={})).status_code == 401
    for origin in ("https://evil.example", "http://test", "null"):
        kept_out = await sent(client, "ping", {}, Origin=origin)
        assert (kept_out.status_code, kept_out.json()["field"]) == (403, "Origin")
    assert (await sent(client, "ping", {})).status_code == 200


async def test_a_hostile_body_gets_a_clean_error(client: AsyncClient) -> None:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    bodies: dict[str, tuple[bytes, set[int]]] = {
        "no JSON": (b"{", {400}),
        "nothing": (b"", {400}),
        "too large": (b" " * 4_100_000, {413}),
        "too deep": (b'{"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {400}),
        "a key twice": (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', {400}),
        "a huge number": (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', {400}),
        "a batch": (json.dumps([ping, ping]).encode(), {400}),
        "no request": (b'{"hello":1}', {202, 400}),
        "params of another kind": (json.dumps(ping | {"method": "tools/call", "params": [1]}).encode(), {200, 400}),
        "arguments of another kind": (
            json.dumps(ping | {"method": "tools/call", "params": {"name": "recall", "arguments": "x"}}).encode(),
            {200, 400},
        ),
        "a method there is not": (json.dumps(ping | {"method": "sampling/steal"}).encode(), {200, 400}),
        "another version": (json.dumps(ping | {"jsonrpc": "1.0"}).encode(), {400}),
    }
    for headers in (accepted, accepted | {"MCP-Protocol-Version": "2026-07-28"}):
        for name, (body, statuses) in bodies.items():
            answer = await client.post("/mcp", content=body, headers=headers)
            assert answer.status_code in statuses, f"{name}: {answer.status_code} {answer.text[:300]}"
            shown = answer.json() if answer.content else {}
            assert answer.status_code == 202 or {"error", "detail"} & shown.keys(), f"{name}: {answer.text[:300]}"
            assert "Traceback" not in answer.text
    assert (await sent(client, "ping", {})).json()["result"] == {}, "and it goes on"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], "body: must be one JSON-RPC message; batches"),
        ({"id": 1, "method": "ping"}, 'jsonrpc: must be "2.0".'),
        ({"jsonrpc": "2.0", "id": 1}, "method: must name a method"),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"nam": 3}},
            "params: must be an object with the name",
        ),
    ],
)
async def test_what_is_wrong_with_a_message_is_said(client: AsyncClient, message: Any, said: str) -> None:
    answer = await client.post("/mcp", json=message)
    assert (answer.status_code, answer.json()["error"]["message"][: len(said)]) == (400, said)


@pytest.mark.parametrize("accept", ["", "text/plain", "*/*", "text/event-stream"])
async def test_any_accept_header_gets_json(client: AsyncClient, accept: str) -> None:
    answer = await sent(client, "ping", {}, Accept=accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


# -- standard input ----------------------------------------------------------------------------------------------------

SHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


async def test_a_lone_surrogate_on_standard_input_is_refused_by_its_field() -> None:
    """With the words of the REST API, and the command goes on. No JSON parser of the protocol's library takes it."""
    calls: list[tuple[dict[str, Any], str]] = [
        ({"name": "remember", "arguments": {"content": "x\ud800"}}, "params.arguments.content"),
        ({"name": "why", "arguments": {"id": "\udfff"}}, "params.arguments.id"),
        (
            {"name": "remember", "arguments": {"content": "x", "metadata": {"a": ["\ud800"]}}},
            "params.arguments.metadata.a[0]",
        ),
    ]
    messages: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": SHAKE}]
    messages += [{"id": f"call {n}", "method": "tools/call", "params": params} for n, (params, _) in enumerate(calls)]
    messages += [{"id": "\ud800", "method": "ping"}, {"method": "\ud800"}, {"id": 9, "method": "ping"}]
    lines = [json.dumps({"jsonrpc": "2.0", **each}) for each in messages]
    env = {**os.environ, "LOXODON_URL": "http://127.0.0.1:9", "LOXODON_API_KEY": "lox_1"}
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "service", "mcp"), stdin=PIPE, stdout=PIPE, cwd=DOCUMENT.parents[1], env=env
    )
    out, _ = await command.communicate("\n".join([lines[0], "", "no JSON", *lines[1:], ""]).encode())
    answers = {each["id"]: each for each in map(json.loads, out.splitlines())}
    assert answers.keys() == {0, "call 0", "call 1", "call 2", 9}
    for number, (_, field) in enumerate(calls):
        error = answers[f"call {number}"]["error"]
        assert (error["message"], error["data"]["field"]) == (f"{field}: contains a lone surrogate.", field)
    assert answers[9]["result"] == {}

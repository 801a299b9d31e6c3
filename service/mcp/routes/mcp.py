"""Route for the Model Context Protocol. Its tools send requests to the other routes inside this process.

The request passes the middleware like any other. Requests of tools go to the router as its caller, so rights, scope
restrictions, audit and errors are those of the routes; they do not count as further running requests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.domain.errors import Forbidden, InvalidInput
from service.domain.sizes import MAX_BODY_BYTES
from service.http import errors, json_body, replica_reads
from service.http.deps import CallerOf, header_text, known_caller
from service.http.json_body import replay
from service.http.schemas import Channel, Name
from service.kit.process import import_module
from service.mcp.requests import FixedIds, RestAnswer, RestRequest
from service.runtime.resources import Resources

router = APIRouter()

PATH = "/mcp"
ID_HEADERS = {"user_id": "X-User-Id", "agent_id": "X-Agent-Id", "run_id": "X-Run-Id", "channel": "X-Channel"}
"""Ids that a connection fixes for all of its tools."""

PASSED_ON = frozenset({b"x-session-id", b"user-agent"})
"""Headers that are passed on to the routes. An Idempotency-Key is not: it would be shared by different tools."""

OF_ROUTE = frozenset({"route", "endpoint", "path_params", "router"})
NAME: TypeAdapter[str] = TypeAdapter(Name)
CHANNEL: TypeAdapter[str] = TypeAdapter(Channel)


@router.post(PATH, include_in_schema=False)
async def mcp(request: Request, caller: CallerOf) -> Response:
    """Supports every revision of the protocol since 2025-03-26, without sessions. Not in the OpenAPI document, as the
    protocol defines the body."""
    res: Resources = request.app.state.resources
    _check_origin(request, res.settings.server.cors_origins)
    ids = _fixed_ids(request)
    if fault := _fault_of(message := getattr(request.state, "json", None)):
        own = message.get("id") if isinstance(message, dict) else None
        return JSONResponse({"jsonrpc": "2.0", "id": own, "error": {"code": -32600, "message": fault}}, 400)
    await import_module("service.mcp.server")
    from service.mcp.server import over_http

    async def ask(wanted: RestRequest) -> RestAnswer:
        return await _ask(wanted, request)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await over_http(ask, ids, scope, receive, send, max_bytes=MAX_BODY_BYTES)

    others = [each for each in request.scope["headers"] if each[0] != b"accept"]
    scope = {**request.scope, "headers": [*others, (b"accept", b"application/json")]}  # the only kind of answer
    return await _call(serve, scope, lambda: request.receive)


def _fault_of(message: Any) -> str | None:
    """Says what is wrong with a JSON-RPC message, which the library does in pydantic's words; None: nothing is."""
    if not isinstance(message, dict):
        return "body: must be one JSON-RPC message; batches are not supported."
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc: must be "2.0".'
    if not isinstance(message.get("method"), str) and not {"result", "error"} & message.keys():
        return "method: must name a method such as tools/list."
    params = message.get("params") or {}
    if message.get("method") == "tools/call" and not (isinstance(params, dict) and isinstance(params.get("name"), str)):
        return "params: must be an object with the name of a tool, and its arguments."
    return None


def _check_origin(request: Request, allowed: Sequence[str]) -> None:
    """Raises Forbidden for a page that may not call the API, whatever host name it uses."""
    origin = request.headers.get("origin")
    if origin is not None and origin not in allowed:
        raise Forbidden("Origin: pages of this origin may not use MCP; see LOXODON_CORS_ORIGINS.", field="Origin")


def _fixed_ids(request: Request) -> FixedIds:
    """The ids that the headers fix; raises InvalidInput for an invalid name. An empty one would fix nothing."""
    fixed = {}
    for name, header in ID_HEADERS.items():
        given = request.headers.get(header)
        if given is not None:
            try:
                fixed[name] = (CHANNEL if name == "channel" else NAME).validate_python(header_text(given).strip())
            except ValidationError:
                raise InvalidInput(f"{header}: is not a valid {name}.", field=header) from None
    return fixed


async def _ask(wanted: RestRequest, request: Request) -> RestAnswer:
    """Sends a request to the routes as the caller of `request`."""
    raw = b"" if wanted.body is None else json.dumps(wanted.body).encode()
    passed = [each for each in request.scope["headers"] if each[0] in PASSED_ON]
    state = {**request.scope["state"]}
    state.pop("json", None)
    position = replica_reads.position_of(request.scope)
    if position is not None:
        known: dict[UUID, int] = request.app.state.mcp_positions
        workspace = known_caller(request).workspace_id
        state["position"] = own = position.again(known.get(workspace, 0))
    state["has_body"] = wanted.body is not None
    if wanted.body is not None:
        state["json"] = dict(wanted.body)
    scope: Scope = {
        **{name: value for name, value in request.scope.items() if name not in OF_ROUTE},
        "method": wanted.method,
        "path": json_body.path_of({"raw_path": wanted.path.encode()}),
        "raw_path": wanted.path.encode(),
        "query_string": wanted.query_string.encode(),
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(raw)).encode()), *passed],
        "state": state,
    }
    try:
        answer = await _call(request.app.router, scope, lambda: replay(raw, request.receive))
    except Exception as exc:  # as the middleware does
        errors.log_unexpected(exc)
        answer = errors.answer_unexpected(request)
    if position is not None:  # an agent's client knows nothing of positions, so this process keeps them
        position.reached = max(position.reached, own.reached)
        known[workspace] = max(known.get(workspace, 0), own.reached)
    return RestAnswer(answer.status_code, json.loads(bytes(answer.body) or b"null"))


async def _call(asgi: ASGIApp, scope: Scope, receive: Callable[[], Receive]) -> Response:
    """Calls an ASGI application and returns the whole response."""
    response = Response()
    parts: list[bytes] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            response.status_code = int(message["status"])
            response.raw_headers = [tuple(each) for each in message.get("headers", ())]
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await replica_reads.run(asgi, scope, receive, send)
    response.body = b"".join(parts)
    return response

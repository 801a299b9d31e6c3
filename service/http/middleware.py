"""Runs before the route of every request, and sets headers of every response.

One ASGI middleware assigns a request id, keeps the path as sent, checks the key before reading the body, limits the
body, parses its JSON (json_body.py), and logs one line per request, without the query. Another adds headers to every
response, whether from a route, an error handler, the first one or a preflight: responses contain personal data, so no
cache may keep them, and no browser may guess another content type.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote_to_bytes

import structlog
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from service.domain.access import Caller
from service.domain.errors import InvalidInput, ServiceError
from service.domain.sizes import MAX_BODY_BYTES
from service.http import deps, errors, json_body, replica_reads
from service.http.admission import Admission, spend_budget
from service.http.errors import AUTOMEM
from service.http.json_body import WITHOUT_BODY, BodyLimits, announced_bytes, drain, may_be_long, replay
from service.kit import deadline
from service.kit.deadline import Deadline
from service.kit.fair_gate import inside
from service.kit.settings import Settings
from service.observability import metrics, tracing
from service.redaction import detection

log = structlog.get_logger("http")

REQUEST_ID_CHARS = 100

PROBES = frozenset(
    {"/livez", "/readyz", "/health", "/v1/health", "/v1/health/details", "/metrics", f"{AUTOMEM}/health"}
)
"""Called every few seconds by monitors; logged at debug level only."""

OPEN = frozenset(
    {
        "/",
        "/livez",
        "/readyz",
        "/health",
        "/v1/health",
        "/console",
        "/docs",
        "/openapi.json",
        f"{AUTOMEM}/health",
    }
)
"""Paths that need no key (docs/decisions/021-open-routes.md)."""

BODY_TIMEOUT_S = 20.0
"""A body that takes longer is refused with 408: the largest, 4 MB, needs 200 kB/s."""

BODY_BYTES_PER_S = 10_000
"""Bytes of a body that must arrive each second after the first five; a phone on a bad network manages that."""


def is_open(path: str) -> bool:
    return path in OPEN or path.startswith(("/docs/assets/", "/console/"))


def _is_nowhere(request: Request) -> bool:
    """Whether the path is outside the API and does not exist: 404 with or without a key."""
    scope = request.scope
    return not scope["path"].startswith("/v1/") and all(
        route.matches(scope)[0] is Match.NONE for route in request.app.routes
    )


class RequestMiddleware:
    """Admits requests before any route sees them."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._limits = BodyLimits(MAX_BODY_BYTES, BODY_TIMEOUT_S, BODY_BYTES_PER_S)
        self._deadline_s = settings.server.request_deadline_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        scope.setdefault("state", {})["request_id"] = _request_id(scope)
        answer = _Answer(scope, send, body_unread=may_be_long(scope))
        metrics.HTTP_RUNNING.inc()
        with tracing.request(scope["method"], scope["headers"]) as span, _log_request(scope):
            try:
                await self._enter(scope, receive, answer)
            except Exception as exc:  # the server would log its message, which may contain a user's text
                errors.log_unexpected(exc)
                if not answer.begun:
                    await errors.answer_unexpected(Request(scope))(scope, receive, answer.send)
            finally:
                took_s, method, route = time.perf_counter() - began, scope["method"], _route(scope)
                metrics.HTTP_RUNNING.dec()
                metrics.request_answered(method, route, answer.status, took_s)
                tracing.complete(span, method, route, answer.status, _who(scope))
                say = log.debug if scope["path"] in PROBES else log.info
                say("request", method=method, path=route, status=answer.status, took_ms=round(took_s * 1000, 1))

    async def _enter(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        scope["path"] = json_body.path_of(scope)
        if scope["method"] == "HEAD":  # as GET; the server leaves the body out
            scope = {**scope, "method": "GET"}
        request = Request(scope, receive)
        try:
            check_head(scope)
            if is_open(scope["path"]) or _is_nowhere(request):
                await self._app(scope, receive, answer.send)
            else:
                await self._admit(request, receive, answer)
        except ServiceError as exc:  # those of routes are answered inside
            await _refuse(errors.of(request, exc), scope, receive, answer)

    async def _admit(self, request: Request, receive: Receive, answer: _Answer) -> None:
        """Runs the request once its key is valid and it is its turn; raises ServiceError. The body is read only after
        checking the key and the announced size."""
        ends = deadline.after(self._deadline_s)
        async with deadline.ends_at(ends):
            caller = await deps.authenticate(request)
        left_s = ends - deadline.after(0)  # reading the body does not count: that has its own time limit
        replica_reads.begin(request)
        workspace = caller.workspace_id
        structlog.contextvars.bind_contextvars(**_who(request.scope))
        admission: Admission = request.app.state.admission
        announced = 0 if request.method in WITHOUT_BODY else announced_bytes(request.scope)
        if announced != 0 and request.headers.get("content-encoding", "identity") != "identity":
            raise InvalidInput("Content-Encoding: compressed bodies are not accepted.", field="Content-Encoding")
        self._limits.check(announced)
        size = self._limits.max_bytes if announced is None else announced
        spend_budget(request.app.state.budgets, caller.key_id)
        with admission.holding(workspace, size):
            body = await self._limits.read(receive) if announced != 0 else b""
            answer.body_unread = answer.body_unread and announced == 0
            async with deadline.ends_at(deadline.after(left_s)) as limit:
                request.state.deadline = limit
                with inside(await admission.take_slots(workspace, len(body))):
                    request.state.has_body = bool(body.strip())
                    if body and json_body.is_json(request.headers.get("content-type", "application/json")):
                        request.state.json = await json_body.read(body)
                    send = answer.sender(limit)
                    await replica_reads.run(
                        self._app, request.scope, lambda: replay(body, receive) if body else receive, send
                    )


class _Answer:
    """The response, with the request id. The connection is closed after it if much of the body is still unread."""

    def __init__(self, scope: Scope, send: Send, *, body_unread: bool) -> None:
        self._scope = scope
        self._send = send
        self.body_unread = body_unread
        self.begun = False
        self.status = 500

    def sender(self, limit: Deadline) -> Send:
        """Wraps `send` for a response that is not cut off once it has begun."""

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                limit.lift()
            await self.send(message)

        return send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            headers = message.setdefault("headers", [])
            headers.append((b"x-request-id", self._scope["state"]["request_id"].encode()))
            headers.extend(replica_reads.headers(self._scope))
            if self.body_unread:
                headers.append((b"connection", b"close"))
        await self._send(message)


async def _refuse(response: Response, scope: Scope, receive: Receive, answer: _Answer) -> None:
    """Responds at once, then gives the client a moment to read the response."""
    if not answer.body_unread:
        await response(scope, receive, answer.send)
        return

    async def unfinished(message: Message) -> None:
        more = {"more_body": True} if message["type"] == "http.response.body" else {}
        await answer.send({**message, **more})

    await response(scope, receive, unfinished)
    await drain(receive)
    await answer.send({"type": "http.response.body", "body": b"", "more_body": False})


def check_head(scope: Scope) -> None:
    """Raises InvalidInput for a path, query or header that no text column can store."""
    for field, raw in (("path", scope.get("raw_path") or b""), ("query", scope.get("query_string", b""))):
        decoded = unquote_to_bytes(raw.replace(b"+", b" "))
        json_body.text_of(decoded, field)
    for name, value in scope["headers"]:
        if b"\x00" in value:
            raise InvalidInput("A header contains a NUL character.", field=name.decode("latin-1"))


def _request_id(scope: Scope) -> str:
    """The caller's X-Request-ID if it is short printable ASCII without a secret, else a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    text: str = given.decode("latin-1")
    usable = 0 < len(text) <= REQUEST_ID_CHARS and text.isascii() and text.isprintable()
    return text if usable and not detection.holds_secret(text) else str(uuid7())


@contextmanager
def _log_request(scope: Scope) -> Iterator[None]:
    """Binds request, key, workspace and trace to each log line within the block."""
    state = scope["state"]
    about = {"request_id": state["request_id"], "trace_id": tracing.trace_id(scope["headers"])}
    tokens = structlog.contextvars.bind_contextvars(**{name: value for name, value in about.items() if value})
    try:
        yield
    finally:
        structlog.contextvars.reset_contextvars(**tokens)
        structlog.contextvars.unbind_contextvars(*WHO)


WHO = ("workspace", "key_id")


def _who(scope: Scope) -> dict[str, str]:
    """The workspace and the id of the key, once known. The key itself is never logged."""
    caller: Caller | None = scope["state"].get("caller")
    return dict(zip(WHO, (str(caller.workspace_id), str(caller.key_id)), strict=True)) if caller else {}


def _route(scope: Scope) -> str:
    """The route's template instead of the path, to keep ids and names out of the log."""
    route = scope.get("route")
    return getattr(route, "path", None) or "unmatched"


EVERYWHERE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

BROWSERS_MAY_SEND = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Prefer",
    "X-API-Key",
    "X-Agent-Id",
    "X-Channel",
    "X-Loxodon-Position",
    "X-Request-ID",
    "X-Run-Id",
    "X-Session-Id",
    "X-User-Id",
)
BROWSERS_MAY_READ = (
    "ETag",
    "Idempotency-Replayed",
    "Location",
    "Preference-Applied",
    "Retry-After",
    "WWW-Authenticate",
    "X-Loxodon-Position",
    "X-Request-ID",
)


class AnswerHeaders:
    """The outermost middleware: adds EVERYWHERE to each response that does not say otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = dict(message.get("headers", ()))
                message["headers"] = [*message.get("headers", ()), *(each for each in EVERYWHERE if each[0] not in own)]
            await send(message)

        await self._app(scope, receive, sending)


def install(app: FastAPI, settings: Settings) -> None:
    """Without `cors_origins` there are no CORS headers, and browsers block pages of other origins. No cookies are used,
    so none are allowed."""
    app.add_middleware(RequestMiddleware, settings=settings)
    if settings.server.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.server.cors_origins,
            allow_methods=errors.METHODS,
            allow_headers=BROWSERS_MAY_SEND,
            expose_headers=BROWSERS_MAY_READ,
        )
    app.add_middleware(AnswerHeaders)

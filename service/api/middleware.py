"""Runs before the route of every request.

One ASGI middleware: it gives a request id, drops a trailing slash (a redirect would lose the body), limits the body,
reads its JSON (json_body.py), and writes one log line per request, without its query.
"""

from __future__ import annotations

import time
from urllib.parse import unquote_to_bytes

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from service.api import errors, json_body
from service.errors import InvalidInput

log = structlog.get_logger("http")

REQUEST_ID_CHARS = 100

PROBES = frozenset({"/livez", "/readyz", "/health", "/v1/health", "/v1/health/details", "/metrics"})
"""Called every few seconds by monitors; logged at debug level only."""


class RequestMiddleware:
    """The only middleware. `max_body_bytes`: larger bodies get 413, whatever Content-Length says."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        answer: dict[str, int] = {"status": 500, "begun": 0}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer.update(status=message["status"], begun=1)
                message.setdefault("headers", []).append((b"x-request-id", request_id.encode()))
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._enter(scope, receive, sending)
            except Exception as exc:  # the server would log its message, which may hold a user's text
                errors.log_unexpected(exc)
                if not answer["begun"]:
                    await errors.unexpected(Request(scope))(scope, receive, sending)
            finally:
                took_ms = round((time.perf_counter() - began) * 1000, 1)
                say = log.debug if scope["path"] in PROBES else log.info
                say("request", method=scope["method"], path=_route(scope), status=answer["status"], took_ms=took_ms)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if len(path) > 1 and path.endswith("/"):
            scope["path"] = path.rstrip("/") or "/"
            scope["raw_path"] = scope.get("raw_path", b"").rstrip(b"/") or b"/"
        request = Request(scope, receive)
        try:
            check_head(scope)
            body = await self._body(scope, receive)
            if body and _is_json(scope):
                scope["state"]["json"] = await json_body.read(body)
        except TooLong:
            detail = f"The body is larger than {self._max_body_bytes} bytes."
            await errors.reply(request, 413, code="too_large", detail=detail, field="body")(scope, receive, send)
            return
        except InvalidInput as exc:
            await errors.of(request, exc)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b"".join(chunks)
            size += len(message.get("body", b""))
            if size > self._max_body_bytes:
                raise TooLong
            chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(chunks)


class TooLong(Exception):
    """The body is over the limit."""


def _replay(body: bytes | None, receive: Receive) -> Receive:
    if body is None:
        return receive
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def check_head(scope: Scope) -> None:
    """Raises InvalidInput for a path, query or header that no text column could hold."""
    for field, raw in (("path", scope.get("raw_path") or b""), ("query", scope.get("query_string", b""))):
        decoded = unquote_to_bytes(raw.replace(b"+", b" "))
        json_body.text_of(decoded, field)
    for name, value in scope["headers"]:
        if b"\x00" in value:
            raise InvalidInput("A header holds a NUL character.", field=name.decode("latin-1"))


def _is_json(scope: Scope) -> bool:
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"application/json")
    return b"json" in kind.lower()


def _request_id(scope: Scope) -> str:
    """The caller's X-Request-ID if it is short printable ASCII, else a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    text: str = given.decode("latin-1")
    usable = 0 < len(text) <= REQUEST_ID_CHARS and text.isascii() and text.isprintable()
    return text if usable else str(uuid7())


def _route(scope: Scope) -> str:
    """The route's template instead of the path, to keep ids and names out of the log."""
    route = scope.get("route")
    return getattr(route, "path", None) or "unmatched"

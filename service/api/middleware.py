"""Runs before the route of every request.

One ASGI middleware: it gives a request id, drops a trailing slash (a redirect would lose the body), limits the body,
refuses what JSON or Postgres cannot hold (NUL, lone surrogates, NaN and infinities, duplicate keys, deep nesting; see
docs/decisions/018-hostile-input.md), and writes one log line per request, without its query.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from service.api import errors
from service.errors import InvalidInput

log = structlog.get_logger("http")

MAX_DEPTH = 32
MAX_NUMBER = 10**308
LARGE_BYTES = 50_000
"""Bodies from this size on are checked in a thread (about 2 ms)."""

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
            if body is not None and _is_json(scope):
                await check_body(body)
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
        _text(decoded, field)
    for name, value in scope["headers"]:
        if b"\x00" in value:
            raise InvalidInput("A header holds a NUL character.", field=name.decode("latin-1"))


async def check_body(body: bytes) -> None:
    """Raises InvalidInput with the path of the first value that cannot be stored."""
    if not body:
        return
    if len(body) > LARGE_BYTES:
        await asyncio.to_thread(check_json, body)
    else:
        check_json(body)


def check_json(body: bytes) -> None:
    text = _text(body, "body")
    try:
        value = json.loads(text, parse_int=_int, object_pairs_hook=_object)
    except RecursionError:
        raise InvalidInput(f"The body is nested deeper than {MAX_DEPTH} levels.", field="body") from None
    except json.JSONDecodeError as exc:  # its message is about the syntax and does not show the input
        detail = f"The body is not valid JSON: {exc.msg} (line {exc.lineno}, column {exc.colno})."
        raise InvalidInput(detail, field="body") from None
    except ValueError:
        raise InvalidInput("The body is not valid JSON.", field="body") from None
    for where, part in walk(value):
        bad = _unstorable(part) if isinstance(part, str) else _not_finite(part) if isinstance(part, float) else None
        if bad:
            raise InvalidInput(f"{where or 'body'}: holds {bad}.", field=where or "body")


class _DuplicateKey(dict[str, Any]):
    """An object that has a key twice. Parsers differ in which of the two they take, so it is refused."""

    name: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    duplicate = _DuplicateKey(found)
    duplicate.name = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return duplicate


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """The strings, numbers and keys of a JSON value with their paths; raises InvalidInput when nested too deep."""
    waiting: list[tuple[str, Any, int]] = [("", value, 0)]
    while waiting:
        where, part, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{where}: nested deeper than {MAX_DEPTH} levels.", field=where)
        if isinstance(part, dict):
            if isinstance(part, _DuplicateKey) and not _unstorable(part.name):
                shown = f"{where}.{part.name}" if where else part.name
                raise InvalidInput(f"{shown}: is there twice; send it once.", field=shown)
            for key, inner in part.items():
                shown = where if _unstorable(key) else (f"{where}.{key}" if where else key)
                yield shown, key
                waiting.append((shown, inner, depth + 1))
        elif isinstance(part, list):
            waiting.extend((f"{where}[{place}]", inner, depth + 1) for place, inner in enumerate(part))
        else:
            yield where, part


def _unstorable(text: str) -> str | None:
    if "\x00" in text:
        return "a NUL character"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "a lone surrogate"
    return None


def _not_finite(number: float) -> str | None:
    if math.isfinite(number):
        return None
    return "NaN, which is not a JSON number" if math.isnan(number) else "a number beyond 1e308"


def _text(raw: bytes, field: str) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"The {field} is not valid UTF-8.", field=field) from None
    if "\x00" in text:
        raise InvalidInput(f"The {field} holds a NUL character.", field=field)
    return text


def _int(digits: str) -> int | float:
    """The number, or infinity for one that jsonb cannot hold: infinity is refused later, with its path."""
    if len(digits) > 308 and (len(digits) > 4_000 or abs(int(digits)) > MAX_NUMBER):
        return math.inf
    return int(digits)


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

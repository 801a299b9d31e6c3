"""Reads the path and the body of a request, and rejects JSON that Postgres cannot represent.

Rejected are NUL and lone surrogates, NaN, infinities and numbers beyond 1e308, duplicate keys and keys longer than
1,000 characters, nesting deeper than 32 and more than 250,000 values (decisions 018 and 048). Time and memory are
linear in the length of the text: at most 32 bytes for each byte.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive, Scope

from service.domain.errors import BodyTooLarge, InvalidInput, RequestTimeout, TooLarge
from service.domain.sizes import PAYLOAD


def path_of(scope: Scope) -> str:
    """The path for routing: normalised but still encoded, without the optional trailing slash. In ASGI's decoded `path`
    %2F in a name would be a slash of the route."""
    raw: bytes | None = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1")
    if len(path) > 1:
        path = path.removesuffix("/")  # a redirect would lose the body
    return "/".join(quote(unquote(each), safe="") for each in path.split("/")) if "%" in path else path


def path_names(scope: Scope, *, with_slash: bool) -> dict[str, Any]:
    """The parameters of the path, decoded. `with_slash`: the last one may contain slashes, so the trailing slash that
    `of` removed belongs to it: DELETE /v1/scopes/user/bob/ is not about bob."""
    values = {name: unquote(value) for name, value in scope["path_params"].items()}
    if with_slash and scope["raw_path"].endswith(b"/"):
        values[list(values)[-1]] += "/"
    return values


MAX_DEPTH: Final = 32
MAX_NUMBER: Final = 1e308
MAX_VALUES: Final = 250_000
"""Maximum number of values and keys. A hundred items with vectors of 1,536 numbers have 154,000."""

MAX_KEY_CHARS: Final = PAYLOAD.key_chars
MAX_PATH_KEY_CHARS: Final = 60
"""Length of a key in the path of an error."""

LARGE_BYTES: Final = 50_000
"""Texts of at least this size are parsed in a thread: below it 0.3 ms for prose, at worst 8 ms for empty objects."""


_JSON: Final = re.compile(r"(?i)application/(?:[\w.-]+\+)?json *(?:;.*)?")


def is_json(content_type: str) -> bool:
    """Whether a body of this type is read as JSON."""
    return _JSON.fullmatch(content_type) is not None


async def read(raw: bytes) -> Any:
    """The value of the body; raises TooLarge, or InvalidInput with the path of what cannot be stored."""
    if len(raw) > LARGE_BYTES:
        return await asyncio.to_thread(parse, raw)
    return parse(raw)


def parse(raw: bytes, parameter: str = "") -> Any:
    """Parses a body, or the named parameter, without a thread."""
    called = parameter or "body"
    subject = f"{parameter}:" if parameter else "The body"
    text = text_of(raw, called)
    _refuse_too_many(text, called)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidInput(f"{subject} is nested deeper than {MAX_DEPTH} levels.", field=called) from None
    except json.JSONDecodeError as exc:  # the message does not show the input
        detail = f"{subject} is not valid JSON: {exc.msg} (line {exc.lineno}, column {exc.colno})."
        raise InvalidInput(detail, field=called) from None
    except ValueError:  # a whole number with more digits than Python reads
        raise InvalidInput(f"{subject} contains a number beyond 1e308.", field=called) from None
    fault = _fault(value, 0, with_texts="\\u" in text)
    if fault is not None:
        where = f"{parameter}{fault[0]}".removeprefix(".") or called
        raise InvalidInput(f"{where}: {fault[1]}.", field=where)
    return value


def text_of(raw: bytes, called: str) -> str:
    """The text in UTF-8; raises InvalidInput for other bytes and for NUL."""
    try:
        text = raw.decode("utf-8-sig")  # without the byte order mark that some editors write
    except UnicodeDecodeError:
        raise InvalidInput(f"The {called} is not valid UTF-8.", field=called) from None
    if "\x00" in text:
        raise InvalidInput(f"The {called} contains a NUL character.", field=called)
    return text


# -- how many values --------------------------------------------------------------------------------------------------


def _refuse_too_many(text: str, called: str) -> None:
    """Raises TooLarge before parsing. Strings are examined only if commas in prose could be taken for values."""
    if len(text) <= MAX_VALUES or _values(text) <= MAX_VALUES:
        return
    plain = text.replace("\\\\", "").replace('\\"', "")
    if _values("".join(plain.split('"')[::2])) > MAX_VALUES:
        raise TooLarge(f"{called}: contains more than {MAX_VALUES:,} values.", field=called)


def _values(text: str) -> int:
    """Upper bound of the number of values: each but the first of its container follows a comma."""
    return text.count(",") + text.count("[") + text.count("{")


# -- what cannot be stored --------------------------------------------------------------------------------------------


class _DuplicateKey(dict[str, Any]):
    """An object with a duplicate key, which is rejected as parsers differ in which value they take."""

    name: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    duplicate = _DuplicateKey(members)
    duplicate.name = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
    return duplicate


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)


def _fault(part: Any, depth: int, *, with_texts: bool) -> tuple[str, str] | None:
    """The first value that cannot be stored: its path below `part`, and what is wrong with it. `with_texts`: examine
    strings, too, which is needed only if the text has escapes."""
    kind = type(part)
    if kind is str:
        return _text_fault(part) if with_texts else None
    if depth > MAX_DEPTH:
        return "", f"nested deeper than {MAX_DEPTH} levels"
    if kind is float or kind is int:
        return _number_fault(part)
    if kind is list:
        return _list_fault(part, depth + 1, with_texts=with_texts)
    if isinstance(part, dict):
        return _object_fault(part, depth + 1, with_texts=with_texts)
    return None


def _list_fault(part: list[Any], depth: int, *, with_texts: bool) -> tuple[str, str] | None:
    for index, inner in enumerate(part):
        fault = _fault(inner, depth, with_texts=with_texts)
        if fault is not None:
            return f"[{index}]{fault[0]}", fault[1]
    return None


def _object_fault(part: dict[str, Any], depth: int, *, with_texts: bool) -> tuple[str, str] | None:
    if isinstance(part, _DuplicateKey):
        return _text_fault(part.name) or (_step(part.name), "is a duplicate key; send it once")
    for key, inner in part.items():
        fault = _key_fault(key, with_texts=with_texts)
        if fault is not None:
            return fault
        fault = _fault(inner, depth, with_texts=with_texts)
        if fault is not None:
            return f"{_step(key)}{fault[0]}", fault[1]
    return None


def _key_fault(key: str, *, with_texts: bool) -> tuple[str, str] | None:
    if len(key) > MAX_KEY_CHARS:
        return _step(key), f"is a key of more than {MAX_KEY_CHARS:,} characters"
    return _text_fault(key) if with_texts else None


def _text_fault(text: str) -> tuple[str, str] | None:
    if "\x00" in text:
        return "", "contains a NUL character"
    if not text.isascii() and _SURROGATE.search(text):
        return "", "contains a lone surrogate"
    return None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _number_fault(number: float) -> tuple[str, str] | None:
    if -MAX_NUMBER <= number <= MAX_NUMBER:  # False for NaN
        return None
    return "", "contains NaN, which is not a JSON number" if number != number else "contains a number beyond 1e308"


def _step(key: str) -> str:
    """A key as a step of a path."""
    return f".{key}" if len(key) <= MAX_PATH_KEY_CHARS else f".{key[:MAX_PATH_KEY_CHARS]}…"


# -- one parse for middleware and routes ------------------------------------------------------------------------------


class _ReadRequest(Request):
    """A request whose JSON was read by the middleware."""

    async def json(self) -> Any:
        return self.state.json if hasattr(self.state, "json") else await super().json()


class JsonRoute(APIRoute):
    """The class of all routes: the body is parsed once, by the middleware and not by FastAPI; names in the path are
    decoded after routing. A route without a body rejects one: a client that sends `{"dry_run": true}` to a deletion
    does not want it executed."""

    reads_its_body = False
    """Whether the function takes the body from the request."""

    slash_is_optional = False
    """Whether the last parameter may contain slashes."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, takes_none = super().get_route_handler(), self.body_field is None and not self.reads_its_body
        in_name = self.path.endswith(":path}") and not self.slash_is_optional

        async def handle(request: Request) -> Response:
            request.scope["path_params"] = path_names(request.scope, with_slash=in_name)
            if takes_none:
                _refuse_body(request)
            return await handler(_ReadRequest(request.scope, request.receive))

        return handle


def _refuse_body(request: Request) -> None:
    """Raises InvalidInput for a body that is not empty, naming its first field."""
    sent = getattr(request.state, "json", None)
    name = next(iter(sent), None) if isinstance(sent, dict) else "body"
    if name is not None and getattr(request.state, "has_body", False):
        raise InvalidInput(f"{name}: is not allowed; this request takes no body.", field=name)


WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
GRACE_S = 5.0
"""Time that any body may take; longer ones must keep up the minimum rate."""

DRAINED_BYTES = 64_000
"""Unused bodies up to this size are read so that the connection can stay open."""

MAX_DRAINED_BYTES = 16_000_000
DRAINED_S = 2.0
"""Bytes of a rejected body that are read and discarded before closing the connection."""


def announced_bytes(scope: Scope) -> int | None:
    """The size of the body by its header; None for a chunked body."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
        if name == b"transfer-encoding":
            return None
    return 0


def may_be_long(scope: Scope) -> bool:
    """Whether the body may be too long to be read and discarded."""
    announced = announced_bytes(scope)
    return announced is None or announced > DRAINED_BYTES


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits of the size and duration of a body."""

    max_bytes: int
    max_s: float
    min_bytes_per_s: int

    async def read(self, receive: Receive) -> bytes:
        """The whole body; raises BodyTooLarge, or RequestTimeout for one that comes too slowly."""
        chunks: list[bytes] = []
        size = 0
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(self.max_s, GRACE_S)) as limit:
                while True:
                    message = await receive()
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    self.check(size)
                    chunks.append(chunk)
                    if not message.get("more_body", False):  # as in the message of a disconnected client
                        return b"".join(chunks)
                    limit.reschedule(began + min(self.max_s, GRACE_S + size / self.min_bytes_per_s))
        except TimeoutError:
            took_s = asyncio.get_running_loop().time() - began
            detail = f"Only {size} bytes of the body arrived within {took_s:.0f} s."
            raise RequestTimeout(detail, field="body") from None

    def check(self, size: int | None) -> None:
        """Raises BodyTooLarge; an unknown size passes."""
        if size is not None and size > self.max_bytes:
            raise BodyTooLarge(f"The body is larger than {self.max_bytes} bytes.", field="body")


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body already read, then what follows."""
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def drain(receive: Receive) -> None:
    """Reads and discards the body for a moment: closing a connection while the client still sends resets it, and the
    client may lose the response."""
    left = MAX_DRAINED_BYTES
    try:
        async with asyncio.timeout(DRAINED_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        pass

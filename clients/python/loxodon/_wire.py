"""What the two clients share: settings, one request made ready, and when it is sent again. No I/O here."""

from __future__ import annotations

import json
import math
import os
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote
from uuid import UUID, uuid4

import httpx

from loxodon._operations import OPERATIONS
from loxodon.errors import ApiError, LoxodonError, NoAnswerError, UnsendableError, error_of

URL = "http://127.0.0.1:8080"
__version__ = "0.1.0"
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 8.0
Query: TypeAlias = list[tuple[str, str | int | float | bool | None]]
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Positions:
    """How far each service had written when it last answered a write, so that later reads of this process see it,
    whichever database server they reach. The greatest is the last, also as text."""

    HEADER = "X-Loxodon-Position"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_url: dict[str, str] = {}

    def headers(self, url: str) -> dict[str, str]:
        position = self._by_url.get(url)
        return {} if position is None else {self.HEADER: position}

    def note(self, url: str, answer: httpx.Response) -> None:
        position = answer.headers.get(self.HEADER)
        if position is not None:
            with self._lock:
                self._by_url[url] = max(position, self._by_url.get(url, ""))


POSITIONS = Positions()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a client reaches the service. `timeout_s`: for one attempt; `retries`: attempts after the first, from 0;
    `longest_retry_after_s`: a service that wants a longer wait is not waited for; `call_timeout_s`: for a call with all
    its attempts and pauses, None for no limit."""

    url: str
    api_key: str
    timeout_s: float = 25.0
    retries: int = 3
    longest_retry_after_s: float = 60.0
    call_timeout_s: float | None = None

    def __repr__(self) -> str:
        return f"Settings(url={self.url!r}, timeout_s={self.timeout_s}, retries={self.retries})"

    @classmethod
    def read(cls, url: str | None, api_key: str | None, **more: Any) -> Settings:
        """What is not given comes from LOXODON_URL and LOXODON_API_KEY. Raises LoxodonError without a key, and for one
        or for an address that no request can carry."""
        key = (api_key or os.environ.get("LOXODON_API_KEY") or "").strip()
        if not key:
            raise LoxodonError(
                "No API key. Pass api_key=, or set LOXODON_API_KEY; `make run` of the service prints one."
            )
        if not key.isascii() or not key.isprintable():
            raise LoxodonError("The API key holds characters that no key has. A key is one line of ASCII.")
        return cls(_checked_url((url or os.environ.get("LOXODON_URL") or URL).strip().rstrip("/")), key, **more)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}", "User-Agent": f"loxodon-client/{__version__}"}


def _checked_url(url: str) -> str:
    """Raises LoxodonError for what is no address of a service."""
    with suppress(httpx.InvalidURL):
        read = httpx.URL(url)
        if read.scheme in ("http", "https") and read.host and not (read.query or read.fragment):
            return url
    raise LoxodonError(f"url: not the address of a service, such as {URL}: {url!r}")


@dataclass(slots=True)
class Attempts:
    """One request through all its attempts: the same bytes and the same Idempotency-Key each time."""

    settings: Settings
    method: str
    path: str
    query: Query = field(default_factory=list)
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    content: bytes | None = None
    repeatable: bool = False
    made: int = 0
    began_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.headers.update(POSITIONS.headers(self.settings.url))
        for name, value in self.headers.items():
            if not value.isprintable() or value != value.strip():
                raise UnsendableError(f"{name}: no request can carry {value!r}")

    @property
    def timeout(self) -> httpx.Timeout:
        """For the next attempt: what the call has left, if that is less."""
        left_s = min(self.settings.timeout_s, max(0.001, self._left_s))
        return httpx.Timeout(left_s, connect=min(5.0, left_s))

    @property
    def _left_s(self) -> float:
        limit_s = self.settings.call_timeout_s
        return math.inf if limit_s is None else self.began_s + limit_s - time.monotonic()

    def failed(self, error: httpx.RequestError) -> float:
        """Seconds to wait before the next attempt; raises NoAnswerError where there is none."""
        sent = not isinstance(error, NOT_SENT)
        self.made += 1
        wait_s = self._backoff()
        if self.made > self.settings.retries or wait_s >= self._left_s or (sent and not self.repeatable):
            told = str(error) or type(error).__name__
            count = f"{self.made} attempt{'s' * (self.made > 1)}"
            raise NoAnswerError(
                f"No answer from {self.settings.url} to {self.method} {self.path} after {count}: {told}", sent=sent
            ) from error
        return wait_s

    def answered(self, answer: httpx.Response) -> float | None:
        """Seconds to wait before the next attempt, None where this answer is the one; raises ApiError."""
        POSITIONS.note(self.settings.url, answer)
        if answer.is_success:
            return None
        after = retry_after_s(answer.headers.get("Retry-After"))
        error = error_of(answer.status_code, answer.content, retry_after_s=after)
        self.made += 1
        wait_s = self._backoff() if after is None else after + random.uniform(0, 0.25)  # noqa: S311
        if self.made > self.settings.retries or wait_s >= self._left_s or not self._may_repeat(error):
            raise error
        return wait_s

    def _may_repeat(self, error: ApiError) -> bool:
        if (error.retry_after_s or 0) > self.settings.longest_retry_after_s:
            return False
        if error.status == 429:  # refused before any work
            return error.retry_after_s is not None
        return (error.status >= 500 or error.status == 408) and self.repeatable

    def _backoff(self) -> float:
        """0.5, 1, 2 ... seconds, and up to a tenth more, so that clients do not come back together."""
        return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (self.made - 1)) * random.uniform(1, 1.1)  # noqa: S311


def operation(settings: Settings, name: str, options: Mapping[str, Any]) -> Attempts:
    """The request of an operation; raises TypeError for an argument that it does not have. None is left out, but in a
    body that changes things, where it means: remove."""
    found = OPERATIONS[name]
    path, query, headers, body = found.path, Query(), httpx.Headers(), dict[str, Any]()
    for key, value in options.items():
        if key not in found.arguments:
            raise TypeError(f"{name} takes no argument {key!r}. It takes: {', '.join(sorted(found.arguments))}")
        place, wire = found.arguments[key]
        if place == "body":
            if value is not None or found.method == "PATCH":
                body[wire] = value
        elif value is None:
            continue
        elif place == "path":
            path = path.replace(f"{{{wire}}}", _segment(key, _text(value, key)))
        elif place == "header":
            headers[wire] = _text(value, key)
        else:
            query += _pairs(wire, value)
    if found.keyed:
        headers.setdefault("Idempotency-Key", uuid4().hex)
    has_body = any(place == "body" for place, _ in found.arguments.values())
    if has_body:
        headers["Content-Type"] = "application/json"
    return Attempts(
        *(settings, found.method, path, query, headers),
        content=encoded(body) if has_body else None,
        repeatable=found.keyed or found.repeatable,
    )


def any_request(
    settings: Settings, method: str, path: str, query: Mapping[str, Any] | None, body: Any, key: str | None
) -> Attempts:
    """A request to a route that has no method of its own here."""
    path, asked = _split(_sendable(path))
    asked += [pair for name, value in (query or {}).items() for pair in _pairs(name, value)]
    headers = httpx.Headers() if key is None else httpx.Headers({b"Idempotency-Key": _sendable(key).encode()})
    found = Attempts(
        settings, method.upper(), path, asked, headers, repeatable=key is not None or method.upper() == "GET"
    )
    if body is not None:
        found.content, found.headers["Content-Type"] = encoded(body), "application/json"
    return found


def _split(path: str) -> tuple[str, Query]:
    """The path of a route, and the query that may follow it; raises UnsendableError for another address."""
    route, _, query = path.partition("?")
    with suppress(httpx.InvalidURL):
        read = httpx.URL(path)
        if not (read.scheme or read.host or "#" in path or {".", ".."} & {*route.split("/")}):
            return route, [*parse_qsl(query, keep_blank_values=True)]
    raise UnsendableError(f"path: not a route of the service, such as /v1/timeline: {path!r}")


def said(what: str | Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """A text is one memory, a message or a list of them a conversation; raises UnsendableError for anything else."""
    if isinstance(what, str):
        return {"content": what}
    if not isinstance(what, Iterable):
        raise UnsendableError(f"{type(what).__name__} is no text, message or list of messages.")
    return {"messages": [what] if isinstance(what, Mapping) else list(what)}


def decoded(answer: httpx.Response) -> Any:
    """The JSON of an answer; raises LoxodonError where it is none, such as a page of a proxy."""
    if answer.status_code == 204:
        return None
    try:
        return answer.json()
    except ValueError as error:
        raise LoxodonError(f"{answer.request.url} answered {answer.status_code} and no JSON. Is it Loxodon?") from error


def encoded(body: Any, name: str = "") -> bytes:
    """Half of a surrogate pair becomes an escape, and the service says in which field it is. Raises UnsendableError for
    what JSON does not have, such as NaN or a set, and for what contains itself."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, default=_text)
    except (TypeError, ValueError) as error:
        fault = None if "Circular" in str(error) else next(_not_finite(body, name), None)
        raise UnsendableError(fault or str(error)) from None
    return text.encode(errors="backslashreplace")


def _not_finite(value: object, name: str) -> Iterator[str]:
    """A sentence for each NaN and infinity in a value, with its place."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{name}: no request can carry {value}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{name}[{index}]")


def _segment(name: str, value: str) -> str:
    """One segment of a path; raises UnsendableError for what would make it the address of something else."""
    if value in ("", ".", ".."):
        raise UnsendableError(f"{name} cannot be {value!r}")
    return quote(value, safe="")


def _pairs(name: str, value: object) -> Query:
    """A value of the query, each of a list, nothing for None."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [(name, _text(each, name)) for each in values if each is not None]


def _text(value: object, name: str = "") -> str:
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return encoded(value, name).decode()
    if fault := next(_not_finite(value, name), None):
        raise UnsendableError(fault)
    if isinstance(value, (str, int, float, UUID)):
        return _sendable(str(value))
    raise UnsendableError(f"{type(value).__name__} cannot be sent; text, numbers, dates, UUID, lists and dicts can.")


def _sendable(text: str) -> str:
    """The text; raises UnsendableError for half of a surrogate pair, which UTF-8 does not have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnsendableError(f"no request can carry {text!r}") from None
    return text


def retry_after_s(value: str | None) -> float | None:
    """Seconds of a Retry-After, which may be a number or a date; None where there is none, or it makes no sense."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        try:
            return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
        except (TypeError, ValueError):
            return None

"""HTTP client for OpenAI-compatible servers: addressing, retries, and fields a model does not accept.

Sending a request through a vendor's SDK costs 1.4 ms of CPU; aiohttp alone takes 0.35. Answers are validated with
models of ours; `retry.py` repeats failed calls within the deadline.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from service.kit.fair_gate import outside
from service.language.prompt_text import one_line
from service.observability import tracing
from service.providers.presets import Endpoint
from service.providers.retry import LASTING, CallFailed, FailureReason, retry_after_s, run

if TYPE_CHECKING:
    import ssl

    import aiohttp

T = TypeVar("T")
Answer = TypeVar("Answer", bound=BaseModel)

CONNECT_TIMEOUT_S = 5.0
LARGE_BYTES = 64_000  # 1 to 2 ms of parsing; more is read in a thread
MAX_ANSWER_BYTES = 32_000_000
"""Bytes of one answer, unpacked: twice as many as the vectors of the largest batch have as text."""

IDLE_S = 4.0
"""Seconds after which an idle connection is not used again: uvicorn, so vLLM and many others, closes it after 5."""
QUOTA_CODE = "insufficient_quota"  # OpenAI's other 429: waiting does not help
TOO_LONG_CODE = "context_length_exceeded"
FILTER_CODE = "content_filter"  # Azure's word for a prompt that it does not pass on
MESSAGE_CHARS = 300  # of the server's own sentence
SECRET_CHARS = 6  # shorter ones stand for "no key", and are parts of words
TOO_LONG = re.compile(r"context (length|size|window)|prompt is too long", re.IGNORECASE)
"""Messages of servers about a prompt that is too long for their model: vLLM, llama.cpp and others have no code for
it."""

RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
OPTIONAL = frozenset(
    {"temperature", "response_format", "dimensions", "encoding_format", "reasoning_effort", "thinking", *RENAMED}
)
"""Fields that a request can do without: it still means the same, though it may be answered less well."""

OPTIONAL_NAME = re.compile(rf"\b(?:{'|'.join(sorted(OPTIONAL))})\b")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The options of a client. `timeout_s` bounds one attempt, a caller's deadline all of them; `concurrency`: requests
    in flight. A failed one is sent up to `retries` times again, after `base_delay_s`, doubled with each."""

    timeout_s: float = 20.0
    concurrency: int = 8
    retries: int = 3
    base_delay_s: float = 1.0


RawResponse = tuple[int, Mapping[str, str], bytes]
"""Status, headers and content of a response with any status."""


class AcceptedFields:
    """Remembers, per model and as long as the process lives, which request fields a server refused.

    Servers differ by model more than a table can keep up with: reasoning models take no `temperature`, newer ones want
    `max_completion_tokens`, old embedding models no `dimensions`. A request refused because of a field (400 with
    `param`) is sent again without it.
    """

    def __init__(self) -> None:
        self._refused: dict[str, set[str]] = {}

    def reduce(self, model: str, body: Mapping[str, object]) -> dict[str, object]:
        """`body` without the fields that `model` refused; a renamed field goes by its other name unless refused too."""
        refused = self._refused.get(model, set())
        reduced = {name: value for name, value in body.items() if name not in refused}
        for name in refused & body.keys() & RENAMED.keys():
            if RENAMED[name] not in refused:
                reduced[RENAMED[name]] = body[name]
        return reduced

    async def send(self, body: Mapping[str, object], send: Callable[[dict[str, object]], Awaitable[T]]) -> T:
        """The result of `send`, repeated without each field that gets refused. Raises CallFailed."""
        model = str(body.get("model"))
        while True:
            try:
                return await send(self.reduce(model, body))
            except CallFailed as failed:
                if not self._learn(model, failed):
                    raise

    def _learn(self, model: str, failed: CallFailed) -> bool:
        refused = self._refused.setdefault(model, set())
        name = failed.parameter
        if failed.reason not in LASTING or name not in OPTIONAL or name in refused:
            return False
        refused.add(name)
        return True


class OpenAiClient:
    """Posts JSON to one endpoint, with retries."""

    def __init__(self, endpoint: Endpoint, options: ClientOptions) -> None:
        import aiohttp  # noqa: F401 - now rather than within the first request

        self._endpoint = endpoint
        self._options = options
        self._fields = AcceptedFields()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, object], answer: type[Answer], *, deadline_s: float) -> Answer:
        """The answer to `body`; fields that its "model" does not accept are left out.

        Raises CallFailed within `deadline_s`, the wait for a free slot included.
        """

        async def call() -> Answer:
            return await self._fields.send(body, lambda reduced: self._post(path, reduced, answer))

        async with outside():
            retries, base_delay_s = self._options.retries, self._options.base_delay_s
            return await run(call, retries=retries, base_delay_s=base_delay_s, deadline_s=deadline_s)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _post(self, path: str, body: dict[str, object], answer: type[Answer]) -> Answer:
        async with self._slots:
            status, headers, content = await self._exchange(path, body)
        if not 200 <= status < 300:
            raise _refusal(status, headers, content, self._endpoint.api_key)
        try:
            if len(content) > LARGE_BYTES:
                return await asyncio.to_thread(answer.model_validate_json, content)
            return answer.model_validate_json(content)
        except ValidationError:  # some gateways send an error with 200
            message = without_keys(_error_fields(content)[2], self._endpoint.api_key)
            # `from None`: the error quotes the answer, which no log may hold
            raise CallFailed(FailureReason.UNREADABLE, message=message) from None

    async def _exchange(self, path: str, body: dict[str, object]) -> RawResponse:
        import aiohttp

        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with asyncio.timeout(self._options.timeout_s):
                url, headers = _head(self._endpoint, path, str(body.get("model")))
                async with self._open_session().post(url, data=content, headers=headers | tracing.headers()) as got:
                    read = bytearray()
                    async for piece in got.content.iter_any():
                        read += piece
                        if len(read) > MAX_ANSWER_BYTES:
                            raise CallFailed(FailureReason.UNREADABLE)
                    return got.status, got.headers, bytes(read)
        except TimeoutError as exc:
            raise CallFailed(FailureReason.TIMEOUT) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise CallFailed(FailureReason.UNREACHABLE) from exc

    def _open_session(self) -> aiohttp.ClientSession:
        """The session of this event loop; proxies are those of the environment."""
        import aiohttp

        if self._session is None:
            secure = self._endpoint.base_url.startswith("https:")
            connector = aiohttp.TCPConnector(limit=0, ssl=_tls() if secure else True, keepalive_timeout=IDLE_S)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)  # the rest is asyncio.timeout's
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar, trust_env=True)
        return self._session


def _head(endpoint: Endpoint, path: str, model: str) -> tuple[str, dict[str, str]]:
    """URL and headers. Azure has a path for each model, and a header of its own for the key."""
    headers, key = {"Content-Type": "application/json"}, endpoint.api_key
    if not endpoint.preset.api_version:
        return f"{endpoint.base_url}{path}", headers | ({"Authorization": f"Bearer {key}"} if key else {})
    url = f"{endpoint.base_url}/openai/deployments/{quote(model, safe='')}{path}"
    return f"{url}?api-version={endpoint.preset.api_version}", headers | ({"api-key": key} if key else {})


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients of a process: reading the certificates takes 50 ms."""
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusal(status: int, headers: Mapping[str, str], content: bytes, key: str | None) -> CallFailed:
    """The failure that a status other than 2xx stands for."""
    code, parameter, message = _error_fields(content)
    reason = _reason(status, code, message)
    if parameter is None and reason is FailureReason.REFUSED:  # Anthropic and others name it in the sentence alone
        parameter = match.group() if (match := OPTIONAL_NAME.search(message)) else None
    return CallFailed(
        reason,
        status=status,
        retry_after_s=retry_after_s(headers, datetime.now(UTC)),
        parameter=parameter,
        message=without_keys(message, key),
    )


def _error_fields(content: bytes) -> tuple[str | None, str | None, str]:
    """Code, parameter and message of an error, which most servers put under "error", Google in a list."""
    try:
        body = json.loads(content[:LARGE_BYTES])
    except (ValueError, RecursionError):
        return None, None, ""
    body = body[0] if isinstance(body, list) and body else body
    body = body.get("error", body) if isinstance(body, dict) else None
    body = body if isinstance(body, dict) else {"message": body}
    message = body.get("message") or body.get("detail") or ""
    code, parameter = (each if isinstance(each, str) else None for each in (body.get("code"), body.get("param")))
    return code, parameter, message if isinstance(message, str) else json.dumps(message)


def without_keys(message: str, key: str | None) -> str:
    """A server's sentence on one line, without our key or any other secret, at most MESSAGE_CHARS long."""
    from service.redaction import detection  # only here: a process whose model answers does without

    message = one_line(message[: 4 * MESSAGE_CHARS])
    message = message.replace(key, "[key]") if key and len(key) >= SECRET_CHARS else message
    return detection.redact(message).text[:MESSAGE_CHARS]


def _reason(status: int, code: str | None, message: str) -> FailureReason:
    if status == 429:
        return FailureReason.QUOTA if code == QUOTA_CODE else FailureReason.RATE_LIMIT
    if status >= 500:
        return FailureReason.SERVER
    if code == FILTER_CODE:
        return FailureReason.FILTERED
    if status == 413 or code == TOO_LONG_CODE or TOO_LONG.search(message):
        return FailureReason.TOO_LONG
    return {401: FailureReason.UNAUTHORISED, 403: FailureReason.UNAUTHORISED, 408: FailureReason.TIMEOUT}.get(
        status, FailureReason.REFUSED
    )

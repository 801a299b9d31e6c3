"""HTTP client for OpenAI-compatible servers: addressing, retries, and fields a model does not accept.

The border to the openai SDK: nothing above sees its types. The SDK makes URL and headers (Azure's paths included) once
per path and model, since they are the same for every request. Sending a request through the SDK costs 1.4 ms of CPU,
0.8 with aiohttp below it; aiohttp alone takes 0.35. Answers are validated with models of ours; `retry.py` repeats
failed calls within the deadline.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from service import tracing
from service.fair_gate import outside
from service.providers.presets import Endpoint
from service.providers.retry import LASTING, CallFailed, FailureReason, RetryPolicy, retry_after_s, run

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import httpx2
    import openai

T = TypeVar("T")
Answer = TypeVar("Answer", bound=BaseModel)

CONNECT_TIMEOUT_S = 5.0
LARGE_BYTES = 64_000  # 1 to 2 ms of parsing; more is read in a thread
NO_KEY = "none"  # the SDK insists on a key; servers that need none ignore it
IDLE_S = 4.0
"""Seconds after which an idle connection is not used again: uvicorn, so vLLM and many others, closes it after 5."""
QUOTA_CODE = "insufficient_quota"  # OpenAI's other 429: waiting does not help
TOO_LONG_CODE = "context_length_exceeded"
TOO_LONG = re.compile(r"context (length|size|window)|prompt is too long", re.IGNORECASE)
"""What servers say of a prompt that their model has no room for: vLLM, llama.cpp and others have no code for it."""

RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
OPTIONAL = frozenset({"temperature", "response_format", "dimensions", "encoding_format", *RENAMED})
"""Fields that a request can do without: it still means the same, though it may be answered less well."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """`timeout_s` bounds one attempt, a caller's deadline all of them; `concurrency`: requests in flight."""

    timeout_s: float = 20.0
    concurrency: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """URL and headers, the same for all requests to one path and model."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RawResponse:
    """The server's response, whatever its status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


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
    """Posts JSON to one endpoint, with retries. Open it with `OpenAiClient.open`, close it with `close`."""

    def __init__(self, endpoint: Endpoint, options: ClientOptions) -> None:
        self._endpoint = endpoint
        self._options = options
        self._fields = AcceptedFields()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._heads: dict[tuple[str, str], RequestHead] = {}
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def open(cls, endpoint: Endpoint, options: ClientOptions | None = None) -> OpenAiClient:
        """A client of `endpoint`; sends nothing yet. The first call in a process takes 0.7 s: it imports the SDK."""
        import aiohttp  # noqa: F401 - now rather than within the first request
        import openai  # noqa: F401

        return cls(endpoint, options or ClientOptions())

    async def post(self, path: str, body: Mapping[str, object], answer: type[Answer], *, deadline_s: float) -> Answer:
        """The answer to `body`; fields that its "model" does not accept are left out.

        Raises CallFailed within `deadline_s`, the wait for a free slot included.
        """

        async def call() -> Answer:
            return await self._fields.send(body, lambda reduced: self._post(path, reduced, answer))

        async with outside():
            return await run(call, self._options.retries, deadline_s=deadline_s)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _post(self, path: str, body: dict[str, object], answer: type[Answer]) -> Answer:
        async with self._slots:
            response = await self._exchange(path, body)
        if not 200 <= response.status < 300:
            raise _refusal(response)
        try:
            if len(response.content) > LARGE_BYTES:
                return await asyncio.to_thread(answer.model_validate_json, response.content)
            return answer.model_validate_json(response.content)
        except ValidationError:
            raise CallFailed(FailureReason.UNREADABLE) from None  # the error quotes the answer, which no log may hold

    async def _exchange(self, path: str, body: dict[str, object]) -> RawResponse:
        import aiohttp

        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with asyncio.timeout(self._options.timeout_s):
                head = await self._head(path, str(body.get("model")))
                headers = {**head.headers, **tracing.headers()}
                async with self._open_session().post(head.url, data=content, headers=headers) as got:
                    return RawResponse(got.status, got.headers, await got.read())
        except TimeoutError as exc:
            raise CallFailed(FailureReason.TIMEOUT) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise CallFailed(FailureReason.UNREACHABLE) from exc

    async def _head(self, path: str, model: str) -> RequestHead:
        known = self._heads.get((path, model))
        if known is None:
            known = self._heads[path, model] = await _compose_head(self._endpoint, path, model)
        return known

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


async def _compose_head(endpoint: Endpoint, path: str, model: str) -> RequestHead:
    """URL and headers as the SDK makes them; the request itself is not sent."""
    import httpx2

    made: list[httpx2.Request] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        made.append(request)
        return httpx2.Response(200)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(keep)) as offline:
        await _sdk_client(endpoint, offline).post(path, cast_to=httpx2.Response, body={"model": model})
    [request] = made
    per_connection = {"host", "content-length", "accept-encoding", "connection"}
    headers = {name: value for name, value in request.headers.items() if name.lower() not in per_connection}
    return RequestHead(str(request.url), headers)


def _sdk_client(endpoint: Endpoint, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
    import openai

    logging.getLogger("openai").setLevel(logging.WARNING)  # its debug lines quote requests, memory text and all
    key = endpoint.api_key or NO_KEY
    client: openai.AsyncOpenAI
    if endpoint.preset.model_in_path:
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint.base_url,
            api_version=endpoint.preset.query["api-version"],
            api_key=key,
            http_client=http,
            max_retries=0,
        )
    else:
        client = openai.AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=key,
            default_query=dict(endpoint.preset.query),
            http_client=http,
            max_retries=0,
        )
    # The SDK fills these from the environment, which only settings.py may read; they would go to every vendor.
    client.organization = client.project = client.admin_api_key = None
    return client


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients of a process: reading the certificates takes 50 ms."""
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusal(response: RawResponse) -> CallFailed:
    """The failure that a status other than 2xx stands for."""
    code, parameter, told = _error_fields(response.content)
    return CallFailed(
        _reason(response.status, code, told),
        status=response.status,
        retry_after_s=retry_after_s(response.headers, datetime.now(UTC)),
        parameter=parameter,
    )


def _error_fields(content: bytes) -> tuple[str | None, str | None, str]:
    """Code, parameter and message of an error, which most servers put under "error"."""
    try:
        error = json.loads(content)
    except ValueError:
        return None, None, ""
    inner = error.get("error", error) if isinstance(error, dict) else None
    found = [inner.get(name) if isinstance(inner, dict) else None for name in ("code", "param", "message")]
    code, parameter, told = (each if isinstance(each, str) else None for each in found)
    return code, parameter, told or ""


def _reason(status: int, code: str | None, told: str) -> FailureReason:
    if status == 429:
        return FailureReason.QUOTA if code == QUOTA_CODE else FailureReason.RATE_LIMIT
    if status >= 500:
        return FailureReason.SERVER
    if status == 413 or code == TOO_LONG_CODE or TOO_LONG.search(told):
        return FailureReason.TOO_LONG
    return {401: FailureReason.UNAUTHORISED, 403: FailureReason.UNAUTHORISED, 408: FailureReason.TIMEOUT}.get(
        status, FailureReason.REFUSED
    )

"""How does one request reach a server that speaks the OpenAI wire, and what do its failures mean to us?

The border to the openai SDK: nothing above sees its types. The SDK addresses and signs (Azure's paths included), once
per path and model: the head that it makes is the same for every question. Sending one through it costs 1.4 ms of CPU,
0.8 with aiohttp below it; aiohttp alone takes 0.35. Answers are read with models of ours, retries are `retry.py`'s,
which has the deadline in view.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from service.providers.dialect import Dialect
from service.providers.presets import Endpoint
from service.providers.retry import CallFailed, Reason, RetryPolicy, retry_after_s, run

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import httpx2
    import openai

Answered = TypeVar("Answered", bound=BaseModel)

CONNECT_TIMEOUT_S = 5.0
LARGE_BYTES = 64_000  # 1 to 2 ms of parsing; more is read in a thread
NO_KEY = "none"  # the SDK insists on a key; servers that need none ignore it
IDLE_S = 4.0
"""Seconds after which an idle connection is not used again: uvicorn, so vLLM and many others, closes it after 5."""
QUOTA_CODE = "insufficient_quota"  # OpenAI's other 429: waiting does not help


@dataclass(frozen=True, slots=True)
class WireOptions:
    """`timeout_s` bounds one attempt, a caller's deadline all of them; `concurrency`: requests in flight."""

    timeout_s: float = 20.0
    concurrency: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True)
class Head:
    """What is the same for all questions to one path and model: where they go, and their headers."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said, whatever its status."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class OpenAiWire:
    """Posts JSON to one endpoint, with retries. Open it with `OpenAiWire.open`, close it with `close`."""

    def __init__(self, endpoint: Endpoint, options: WireOptions) -> None:
        self._endpoint = endpoint
        self._options = options
        self._dialect = Dialect()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._heads: dict[tuple[str, str], Head] = {}
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def open(cls, endpoint: Endpoint, options: WireOptions | None = None) -> OpenAiWire:
        """A wire to `endpoint`; nothing is sent yet. The first call in a process takes 0.7 s: it imports the SDK."""
        import aiohttp  # noqa: F401 - now rather than within the first question
        import openai  # noqa: F401

        return cls(endpoint, options or WireOptions())

    async def post(
        self, path: str, body: Mapping[str, object], answer: type[Answered], *, deadline_s: float
    ) -> Answered:
        """The answer to `body`, whose "model" says what to leave out of it.

        Raises CallFailed within `deadline_s`, the wait for a free slot included.
        """

        async def call() -> Answered:
            return await self._dialect.ask(body, lambda spoken: self._post(path, spoken, answer))

        return await run(call, self._options.retries, deadline_s=deadline_s)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _post(self, path: str, body: dict[str, object], answer: type[Answered]) -> Answered:
        async with self._slots:
            told = await self._exchange(path, body)
        if not 200 <= told.status < 300:
            raise _refusal(told)
        try:
            if len(told.content) > LARGE_BYTES:
                return await asyncio.to_thread(answer.model_validate_json, told.content)
            return answer.model_validate_json(told.content)
        except ValidationError:
            raise CallFailed(Reason.UNREADABLE) from None  # the error quotes the answer, which no log may hold

    async def _exchange(self, path: str, body: dict[str, object]) -> Answer:
        import aiohttp

        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with asyncio.timeout(self._options.timeout_s):
                head = await self._head(path, str(body.get("model")))
                async with self._opened().post(head.url, data=content, headers=head.headers) as told:
                    return Answer(told.status, told.headers, await told.read())
        except TimeoutError as exc:
            raise CallFailed(Reason.TIMEOUT) from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise CallFailed(Reason.UNREACHABLE) from exc

    async def _head(self, path: str, model: str) -> Head:
        known = self._heads.get((path, model))
        if known is None:
            known = self._heads[path, model] = await _composed(self._endpoint, path, model)
        return known

    def _opened(self) -> aiohttp.ClientSession:
        """The session of this event loop; proxies are those of the environment."""
        import aiohttp

        if self._session is None:
            secure = self._endpoint.base_url.startswith("https:")
            connector = aiohttp.TCPConnector(limit=0, ssl=_tls() if secure else True, keepalive_timeout=IDLE_S)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)  # the rest is asyncio.timeout's
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=jar, trust_env=True)
        return self._session


async def _composed(endpoint: Endpoint, path: str, model: str) -> Head:
    """The head that the SDK makes for a question; the question itself goes nowhere."""
    import httpx2

    made: list[httpx2.Request] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        made.append(request)
        return httpx2.Response(200)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(keep)) as nowhere:
        await _client(endpoint, nowhere).post(path, cast_to=httpx2.Response, body={"model": model})
    [request] = made
    own = {"host", "content-length", "accept-encoding", "connection"}
    headers = {name: value for name, value in request.headers.items() if name.lower() not in own}
    return Head(str(request.url), headers)


def _client(endpoint: Endpoint, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
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
    """One for all wires of a process: reading the certificates takes 50 ms."""
    import httpx2

    context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusal(told: Answer) -> CallFailed:
    """What a status other than 2xx means."""
    code, parameter = _named(told.content)
    return CallFailed(
        _reason(told.status, code),
        status=told.status,
        retry_after_s=retry_after_s(told.headers, datetime.now(UTC)),
        parameter=parameter,
    )


def _named(content: bytes) -> tuple[str | None, str | None]:
    """Code and parameter of an error, which most servers put under "error"."""
    try:
        told = json.loads(content)
    except ValueError:
        return None, None
    inner = told.get("error", told) if isinstance(told, dict) else None
    found = [inner.get(name) if isinstance(inner, dict) else None for name in ("code", "param")]
    code, parameter = (each if isinstance(each, str) else None for each in found)
    return code, parameter


def _reason(status: int, code: str | None) -> Reason:
    if status == 429:
        return Reason.QUOTA if code == QUOTA_CODE else Reason.RATE_LIMIT
    if status >= 500:
        return Reason.SERVER
    return {401: Reason.UNAUTHORISED, 403: Reason.UNAUTHORISED, 408: Reason.TIMEOUT}.get(status, Reason.REFUSED)

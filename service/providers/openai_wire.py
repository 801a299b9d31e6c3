"""How does one request reach a server that speaks the OpenAI wire, and what do its failures mean to us?

The border to the openai SDK: nothing above sees its types. The SDK addresses and signs (Azure's paths included), once
per path and model: the head that it makes is the same for every question. Sending one through it cost 1.3 ms of CPU,
so the questions go over connections of ours; through a general client only past a proxy or a redirect. Answers are
read with models of ours, retries are `retry.py`'s, which has the deadline in view.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import BaseModel, ValidationError

from service.providers.connections import Answer, Broken, Connections
from service.providers.dialect import Dialect
from service.providers.presets import Endpoint
from service.providers.retry import CallFailed, Reason, RetryPolicy, retry_after_s, run

if TYPE_CHECKING:
    import ssl

    import httpx2
    import openai

Answered = TypeVar("Answered", bound=BaseModel)

CONNECT_TIMEOUT_S = 5.0
LARGE_BYTES = 64_000  # 1 to 2 ms of parsing; more is read in a thread
NO_KEY = "none"  # the SDK insists on a key; servers that need none ignore it
REDIRECTS = frozenset({301, 302, 303, 307, 308})
QUOTA_CODE = "insufficient_quota"  # OpenAI's other 429: waiting does not help


@dataclass(frozen=True, slots=True)
class WireOptions:
    """`timeout_s` bounds one attempt, a caller's deadline all of them; `concurrency`: requests in flight."""

    timeout_s: float = 20.0
    concurrency: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True)
class Head:
    """What is the same for all questions to one path and model: where they go, and the headers but the length."""

    url: str
    headers: Sequence[tuple[str, str]]
    encoded: bytes

    def before(self, content: bytes) -> bytes:
        """The whole request."""
        return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (self.encoded, len(content), content)


class OpenAiWire:
    """Posts JSON to one endpoint, with retries. Open it with `OpenAiWire.open`, close it with `close`."""

    def __init__(self, endpoint: Endpoint, options: WireOptions) -> None:
        self._endpoint = endpoint
        self._options = options
        self._dialect = Dialect()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._heads: dict[tuple[str, str], Head] = {}
        self._direct = _direct(endpoint.base_url)
        self._roundabout: httpx2.AsyncClient | None = None

    @classmethod
    def open(cls, endpoint: Endpoint, options: WireOptions | None = None) -> OpenAiWire:
        """A wire to `endpoint`; nothing is sent yet. The first call in a process takes 0.7 s: it imports the SDK."""
        import openai  # noqa: F401 - now rather than within the first question

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
        if self._direct is not None:
            await self._direct.close()
        if self._roundabout is not None:
            await self._roundabout.aclose()

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
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            async with asyncio.timeout(self._options.timeout_s):
                head = await self._head(path, str(body.get("model")))
                direct = self._direct
                if direct is not None:
                    told = await direct.exchange(head.before(content))
                    if told.status not in REDIRECTS:
                        return told
                    self._direct = None
                    await direct.close()
                return await self._past_others(head, content)
        except TimeoutError as exc:
            raise CallFailed(Reason.TIMEOUT) from exc
        except Broken as exc:
            raise CallFailed(Reason.UNREACHABLE) from exc

    async def _head(self, path: str, model: str) -> Head:
        known = self._heads.get((path, model))
        if known is None:
            known = self._heads[path, model] = await _composed(self._endpoint, path, model)
        return known

    async def _past_others(self, head: Head, content: bytes) -> Answer:
        """Through what stands between: a proxy that the environment names, or a server that sends elsewhere."""
        import httpx2

        if self._roundabout is None:
            timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)  # the rest is asyncio.timeout's
            self._roundabout = httpx2.AsyncClient(verify=_tls(), timeout=timeout, follow_redirects=True)
        try:
            told = await self._roundabout.post(head.url, headers=list(head.headers), content=content)
        except httpx2.TimeoutException as exc:
            raise TimeoutError from exc
        except httpx2.HTTPError as exc:
            raise Broken("The server cannot be reached.") from exc
        return Answer(told.status_code, told.headers, told.content)


def _direct(url: str) -> Connections | None:
    """Connections to the server itself; None where a proxy stands before it."""
    parts = urlsplit(url)
    proxies = getproxies()
    if parts.hostname is None or ({parts.scheme, "all"} & proxies.keys() and not proxy_bypass(parts.hostname)):
        return None
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    return Connections(parts.hostname, port, _tls() if secure else None, connect_timeout_s=CONNECT_TIMEOUT_S)


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
    own = {"content-length", "accept-encoding", "connection"}
    headers = [(name, value) for name, value in request.headers.multi_items() if name.lower() not in own]
    plain = [*headers, ("accept-encoding", "identity")]
    lines = [f"POST {request.url.raw_path.decode('ascii')} HTTP/1.1", *(f"{name}: {value}" for name, value in plain)]
    return Head(str(request.url), headers, "\r\n".join(lines).encode("latin-1"))


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

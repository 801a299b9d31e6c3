"""How does one request reach a server that speaks the OpenAI wire, and what do its failures mean to us?

The border to the openai SDK: nothing above sees its types. The SDK opens connections, signs and addresses requests
(Azure's paths included); its own retries are off, because `retry.py` has the deadline in view. Answers are read with
models of ours, since the SDK builds its objects without checking them.
"""

from __future__ import annotations

import asyncio
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

    import httpx2
    import openai

Answer = TypeVar("Answer", bound=BaseModel)

CONNECT_TIMEOUT_S = 5.0
LARGE_BYTES = 64_000  # 1 to 2 ms of parsing; more is read in a thread
NO_KEY = "none"  # the SDK insists on a key; servers that need none ignore it
QUOTA_CODE = "insufficient_quota"  # OpenAI's other 429: waiting does not help


@dataclass(frozen=True, slots=True)
class WireOptions:
    """`timeout_s` bounds one attempt, a caller's deadline all of them; `concurrency`: requests in flight."""

    timeout_s: float = 20.0
    concurrency: int = 8
    retries: RetryPolicy = field(default_factory=RetryPolicy)


class OpenAiWire:
    """Posts JSON to one endpoint, with retries. Open it with `OpenAiWire.open`, close it with `close`."""

    def __init__(self, client: openai.AsyncOpenAI, options: WireOptions) -> None:
        self._client = client
        self._options = options
        self._dialect = Dialect()
        self._slots = asyncio.Semaphore(options.concurrency)

    @classmethod
    def open(cls, endpoint: Endpoint, options: WireOptions | None = None) -> OpenAiWire:
        """A wire to `endpoint`; nothing is sent yet. The first call in a process takes 0.7 s: it imports the SDK."""
        return cls(_client(endpoint), options or WireOptions())

    async def post(self, path: str, body: Mapping[str, object], answer: type[Answer], *, deadline_s: float) -> Answer:
        """The answer to `body`, whose "model" says what to leave out of it.

        Raises CallFailed within `deadline_s`, the wait for a free slot included.
        """

        async def call() -> Answer:
            return await self._dialect.ask(body, lambda spoken: self._post(path, spoken, answer))

        return await run(call, self._options.retries, deadline_s=deadline_s)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, path: str, body: dict[str, object], answer: type[Answer]) -> Answer:
        async with self._slots:
            content = await self._exchange(path, body)
        try:
            if len(content) > LARGE_BYTES:
                return await asyncio.to_thread(answer.model_validate_json, content)
            return answer.model_validate_json(content)
        except ValidationError:
            raise CallFailed(Reason.UNREADABLE) from None  # the error quotes the answer, which no log may hold

    async def _exchange(self, path: str, body: dict[str, object]) -> bytes:
        import httpx2
        import openai

        try:
            async with asyncio.timeout(self._options.timeout_s):
                response = await self._client.post(path, cast_to=httpx2.Response, body=body)
        except (TimeoutError, openai.APITimeoutError) as exc:
            raise CallFailed(Reason.TIMEOUT) from exc
        except openai.APIStatusError as exc:
            raise _refusal(exc) from exc
        except openai.APIConnectionError as exc:
            raise CallFailed(Reason.UNREACHABLE) from exc
        except openai.OpenAIError as exc:
            raise CallFailed(Reason.UNREADABLE) from exc
        return response.content


def _client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    logging.getLogger("openai").setLevel(logging.WARNING)  # its debug lines quote requests, memory text and all
    key = endpoint.api_key or NO_KEY
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S)  # the rest is asyncio.timeout's: it also ends a drip
    http = openai.DefaultAsyncHttpxClient(verify=_tls(), timeout=timeout)
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

    return httpx2.create_ssl_context()


def _refusal(exc: openai.APIStatusError) -> CallFailed:
    """What a status other than 2xx means."""
    return CallFailed(
        _reason(exc.status_code, exc.code),
        status=exc.status_code,
        retry_after_s=_wait_s(exc.response),
        parameter=exc.param if isinstance(exc.param, str) else None,
    )


def _wait_s(response: httpx2.Response) -> float | None:
    return retry_after_s(response.headers, datetime.now(UTC))


def _reason(status: int, code: str | None) -> Reason:
    if status == 429:
        return Reason.QUOTA if code == QUOTA_CODE else Reason.RATE_LIMIT
    if status >= 500:
        return Reason.SERVER
    return {401: Reason.UNAUTHORISED, 403: Reason.UNAUTHORISED, 408: Reason.TIMEOUT}.get(status, Reason.REFUSED)

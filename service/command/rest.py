"""The REST API as commands call it: the server of LOXODON_URL with the key of LOXODON_API_KEY.

Without LOXODON_URL it is the service on this machine; then the first key, which `run` keeps in the data folder, does
where no other is named. `loxodon mcp` is such a client too, so it starts in a second and holds no database.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import httpx2

from service.command.terminal import CommandError, settings
from service.kit.settings import Settings
from service.launch import data_dir
from service.launch.listener import reachable_url
from service.mcp.requests import Ask, FixedIds, RestAnswer, RestRequest
from service.observability import logs
from service.providers.presets import secret

URL, KEY = "LOXODON_URL", "LOXODON_API_KEY"
POSITION = "X-Loxodon-Position"
TIMEOUT_S = 60.0
"""A time-out longer than any request takes: the service ends longer ones itself, and says so."""

BUSY = frozenset({429, 503})
REFUSED = frozenset({400, 404, 409, 413, 422})
TRIES, WAIT_S = 30, 1.0
"""Number of attempts of a command that sends much; between them it waits as long as the server says, or a second."""


class Refused(CommandError):
    """A request that the server refuses for what it holds; the next may go through."""


class Api:
    """Calls of one server with one key. Every call raises CommandError with the server's own sentence."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        headers = {"Authorization": f"Bearer {key}", "User-Agent": "loxodon"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT_S)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._call("GET", path, params=params)

    def post(self, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._call("POST", path, json=body, params=params)

    def send(self, method: str, path: str, body: Any, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Sends a request, waiting while the server is busy."""
        # lone surrogates and NaN too: the server says where they are
        headers = {"Content-Type": "application/json"}
        headers |= {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._call(method, path, tries=TRIES, content=json.dumps(body), headers=headers)

    def pages(self, path: str, params: Mapping[str, Any], *, limit: int) -> Iterator[dict[str, Any]]:
        """The results of all pages, at most `limit`."""
        cursor: str | None = None
        while limit > 0:
            page = self.get(path, {**params, "limit": min(limit, 1_000), **({"cursor": cursor} if cursor else {})})
            yield from page["results"]
            limit -= len(page["results"])
            cursor = page.get("next_cursor")
            if cursor is None:
                return

    def _call(self, method: str, path: str, *, tries: int = 1, **request: Any) -> dict[str, Any]:
        if params := request.get("params"):
            request["params"] = {name: value for name, value in params.items() if value is not None}
        try:
            answer = self._client.request(method, path, **request)
        except UnicodeEncodeError as exc:
            raise CommandError("An argument is not valid UTF-8.") from exc
        except httpx2.HTTPError as exc:
            detail = f"No Loxodon answers at {self.url} ({exc or type(exc).__name__}). Start it, or set {URL}."
            raise CommandError(detail) from exc
        _note_position(self._client.headers, answer.headers)
        if answer.status_code in BUSY and tries > 1:
            time.sleep(min(float(answer.headers.get("Retry-After", WAIT_S)), 10.0))
            return self._call(method, path, tries=tries - 1, **request)
        if answer.is_success:
            return answer.json() if answer.content else {}
        kind = Refused if answer.status_code in REFUSED else CommandError
        raise kind(_sentence(answer))

    def close(self) -> None:
        self._client.close()


def _sentence(answer: httpx2.Response) -> str:
    """The server's error as a sentence: its `detail`, and what to do about a key."""
    try:
        body = answer.json()
        detail, code = str(body["detail"]), body.get("code")
    except (ValueError, KeyError, TypeError):
        return f"{answer.request.url} answered {answer.status_code}, not as Loxodon does: is {URL} right?"
    return f"{detail} ({code}; set {KEY} to another key)" if answer.status_code in (401, 403) else f"{detail} ({code})"


def open_api() -> Api:
    """The configured server. Raises CommandError where no key is known."""
    return Api(*_server(settings()))


def _server(configured: Settings) -> tuple[str, str]:
    """URL and key. On this machine the key is the first one where no other is named: it opens everything, and so goes
    nowhere else. Raises CommandError where no key is known, LaunchError where it cannot be read."""
    server, client = configured.server, configured.client
    url = _checked_url(client.url) if client.url else reachable_url(server.host, server.port)
    key = secret(client.api_key)
    if key is None and not client.url:
        key = secret(server.bootstrap_api_key)
        key = key or data_dir.read_first_key(server.data_dir, secret(configured.database.url))
    if not key:
        far = f" to a key of {url}." if client.url else f", and {URL} if it is far."
        raise CommandError(f"No API key: set {KEY}{far}")
    if not (key := key.strip()).isascii() or not key.isprintable():
        raise CommandError(f"{KEY} holds characters that no key has. A key is one line of ASCII.")
    return url, key


def _checked_url(given: str) -> str:
    """Raises CommandError for what is no address of a service."""
    with suppress(httpx2.InvalidURL):
        url = httpx2.URL(given.strip().rstrip("/"))
        if url.scheme in ("http", "https") and url.host and not (url.query or url.fragment):
            return str(url)
    raise CommandError(f"{URL} is not the address of a service, such as http://127.0.0.1:8080: {given!r}.")


def _note_position(sent: httpx2.Headers, answered: httpx2.Headers) -> None:
    """Keeps the greatest position that came with an answer among the headers that are sent, so that this process reads
    what it wrote from whatever server."""
    if POSITION in answered:
        sent[POSITION] = max(answered[POSITION], sent.get(POSITION, ""))


# -- the tools of agents -----------------------------------------------------------------------------------------------


def serve_mcp(ids: FixedIds) -> None:
    """Serves the Model Context Protocol on standard input and output, until the input ends."""
    configured = settings()
    logs.set_up(configured)
    asyncio.run(_serve_mcp(*_server(configured), ids))


async def _serve_mcp(url: str, key: str, ids: FixedIds) -> None:
    from service.mcp.server import over_stdio

    headers = {"Authorization": f"Bearer {key}", "User-Agent": "loxodon-mcp"}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S) as client:
        await over_stdio(_asking(client, url), ids)


def _asking(client: httpx2.AsyncClient, url: str) -> Ask:
    """Asks the service at the URL; a service that is not there is an answer, too."""

    async def ask(request: RestRequest) -> RestAnswer:
        target = f"{url}{request.path}" + (f"?{request.query_string}" if request.query else "")
        try:
            response = await client.request(request.method, target, json=request.body)
        except httpx2.HTTPError as exc:
            detail = f"The memory service at {url} cannot be reached ({type(exc).__name__}). Is it running?"
            return RestAnswer(503, {"code": "unavailable", "detail": detail})
        _note_position(client.headers, response.headers)
        try:
            return RestAnswer(response.status_code, response.json())
        except ValueError:
            detail = f"The server at {url} is not Loxodon: it did not send JSON."
            return RestAnswer(502, {"code": "http_error", "detail": detail})

    return ask

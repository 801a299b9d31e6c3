"""The REST API as commands call it: the server of LOXODON_URL with the key of LOXODON_API_KEY.

Without LOXODON_URL it is the service on this machine; then the first key, which `run` keeps in the data folder, does
where no other is named.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2

from service.command.problems import CommandError, settings
from service.launch.listener import note_position, service_key, service_url

URL, KEY = "LOXODON_URL", "LOXODON_API_KEY"
TIMEOUT_S = 60.0
BUSY = frozenset({429, 503})
TRIES, WAIT_S = 30, 1.0
"""Number of attempts of a command that sends much; between them it waits as long as the server says, or a second."""


class Api:
    """Calls of one server with one key. Every call raises CommandError with the server's own sentence."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.answered = False  # whether the last request reached a server that answered
        headers = {"Authorization": f"Bearer {key}", "User-Agent": "loxodon"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT_S)

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._call("GET", path, params=params)

    def post(self, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._call("POST", path, json=body, params=params)

    def send(self, method: str, path: str, body: Any, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Sends a request, waiting while the server is busy."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        return self._call(method, path, tries=TRIES, json=body, headers=headers)

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
        self.answered = False
        if params := request.get("params"):
            request["params"] = {name: value for name, value in params.items() if value is not None}
        try:
            answer = self._client.request(
                method, path, **{name: value for name, value in request.items() if value is not None}
            )
        except httpx2.HTTPError as exc:
            raise CommandError(
                f"No Loxodon answers at {self.url} ({exc or type(exc).__name__}). Start it, or set {URL}."
            ) from exc
        note_position(self._client.headers, answer.headers)
        if answer.status_code in BUSY and tries > 1:
            time.sleep(min(float(answer.headers.get("Retry-After", WAIT_S)), 10.0))
            return self._call(method, path, tries=tries - 1, **request)
        self.answered = True
        if answer.is_success:
            return answer.json() if answer.content else {}
        raise CommandError(_sentence(answer))

    def close(self) -> None:
        self._client.close()


def _sentence(answer: httpx2.Response) -> str:
    """The server's error as a sentence: its `detail`, and what to do about a key."""
    try:
        body = answer.json()
        said, code = str(body["detail"]), body.get("code")
    except (ValueError, KeyError, TypeError):
        return f"{answer.request.url} answered {answer.status_code}, not as Loxodon does: is {URL} right?"
    return f"{said} ({code}; set {KEY} to another key)" if answer.status_code in (401, 403) else f"{said} ({code})"


def open_api() -> Api:
    """The configured server. Raises CommandError where no key is known."""
    configured = settings()
    url, key = service_url(configured), service_key(configured)
    if not key:
        far = f" to a key of {url}." if configured.client.url else f", and {URL} if it is far."
        raise CommandError(f"No API key: set {KEY}{far}")
    return Api(url, key)

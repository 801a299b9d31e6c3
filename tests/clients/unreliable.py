"""A proxy before the service that does badly what it is told to: refuses, drops the request, or loses the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx

from tests.fakes.http_server import Cut, HttpRequest, HttpServer, ScriptedAnswer

Fault = Callable[[HttpRequest, Callable[[HttpRequest], ScriptedAnswer]], ScriptedAnswer]


class UnreliableProxy(HttpServer):
    """The next requests meet `faults`, in order; the others pass. `requests` holds all that came."""

    def __init__(self, url: str) -> None:
        super().__init__(self._route)
        self.faults: deque[Fault] = deque()
        self.requests: list[HttpRequest] = []
        self._upstream = httpx.Client(base_url=url, timeout=30)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._upstream.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _route(self, request: HttpRequest) -> ScriptedAnswer:
        self.requests.append(request)
        return self.faults.popleft()(request, self._passed) if self.faults else self._passed(request)

    def _passed(self, request: HttpRequest) -> ScriptedAnswer:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        answer = self._upstream.request(
            request.method, request.path, params=request.query, content=request.body, headers=headers
        )
        kept = {name: value for name, value in answer.headers.items() if name in ("etag", "retry-after")}
        return ScriptedAnswer(answer.status_code, answer.content, kept)


def dropped(request: HttpRequest, passed: Callable[[HttpRequest], ScriptedAnswer]) -> ScriptedAnswer:
    """The connection ends before the service has seen the request."""
    return ScriptedAnswer(cut=Cut.BEFORE_ANSWER)


def answer_lost(request: HttpRequest, passed: Callable[[HttpRequest], ScriptedAnswer]) -> ScriptedAnswer:
    """The service has done it, and its answer never arrives."""
    passed(request)
    return ScriptedAnswer(cut=Cut.BEFORE_ANSWER)


def answer_cut(request: HttpRequest, passed: Callable[[HttpRequest], ScriptedAnswer]) -> ScriptedAnswer:
    """The service has done it, and half of its answer arrives."""
    return replace(passed(request), cut=Cut.IN_BODY)


def refused(status: int, retry_after: str | None = None, code: str | None = None) -> Fault:
    """The service, or what stands before it, refuses."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = b"" if code is None else f'{{"code": "{code}", "detail": "Busy.", "status": {status}}}'.encode()
    return lambda request, passed: ScriptedAnswer(status, body, headers)

"""Load in a closed loop, which finds how much a service can do, and in an open one, which does not wait for it.

Generator and service share the machine, so it is light: plain streams (bench/clients.py), one connection for each
request in flight, bodies made as they are sent. It takes some 3 % of a core at 100 requests a second. Latencies of an
open loop count from the moment at which a request was due, so that a generator that is late hides nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from bench.clients import LOST, Client, TimedResponse
from bench.numbers import percentile

ACCEPTED = range(200, 300)
REFUSED = (429, 503)
NO_ANSWER = 0
PATIENCE_S = 60.0
STALE_S = 3.0
"""A connection unused for longer is opened anew: the server closes it after 5 s, maybe as a request is on its way."""


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """What is to be sent; `key`: whose it is, `kind`: for the one who planned it."""

    key: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PacedAnswer:
    """When a request was due (seconds on the monotonic clock), its status (0: none came) and its milliseconds."""

    request: PlannedRequest
    due_s: float
    status: int
    ms: float
    answer: TimedResponse | None

    @property
    def ends_s(self) -> float:
        return self.due_s + self.ms / 1000


class LoadClient(Protocol):
    """What sends one request at a time. Raises one of LOST when there is no answer."""

    async def request(self, method: str, path: str, body: bytes, headers: Mapping[str, str], /) -> TimedResponse: ...

    async def close(self) -> None: ...


def plain_client(url: str, key: str) -> LoadClient:
    """Sends each request once."""
    return Client(url, key, timeout_s=PATIENCE_S)


class PacedLoad:
    """Sends what `plan` gives, each time another request, and tells `heard` of the answers. `client_of`: makes a client
    for a URL and a key."""

    def __init__(
        self,
        url: str,
        plan: Callable[[], PlannedRequest],
        heard: Callable[[PacedAnswer], None] | None = None,
        client_of: Callable[[str, str], LoadClient] = plain_client,
    ) -> None:
        self._url, self._plan, self._heard, self._client_of = url, plan, heard, client_of
        self._idle: dict[str, list[tuple[float, LoadClient]]] = {}

    async def closed(self, *, clients: int, seconds: float) -> list[PacedAnswer]:
        """Each client sends its next request when it has the answer to its last; one that is refused waits first."""
        found: list[PacedAnswer] = []
        ends = time.monotonic() + seconds

        async def client() -> None:
            while time.monotonic() < ends:
                found.append(got := await self._send(self._plan(), time.monotonic()))
                if got.answer is not None and got.answer.retry_after is not None:
                    await asyncio.sleep(float(got.answer.retry_after))

        await asyncio.gather(*(client() for _ in range(clients)))
        return found

    async def open(self, *, per_s: float, seconds: float = inf, stop: asyncio.Event | None = None) -> list[PacedAnswer]:
        """Requests evenly spaced, however many are still on their way, until time is up or `stop` is set. Returns when
        all are answered."""
        began, sending = time.monotonic(), []
        for number in itertools.count():
            if number >= per_s * seconds or (stop is not None and stop.is_set()):
                break
            due_s = began + number / per_s
            if (wait_s := due_s - time.monotonic()) > 0:
                await asyncio.sleep(wait_s)
            sending.append(asyncio.create_task(self._send(self._plan(), due_s)))
        return list(await asyncio.gather(*sending))

    async def close(self) -> None:
        for _, client in (each for idle in self._idle.values() for each in idle):
            await client.close()
        self._idle.clear()

    async def _send(self, request: PlannedRequest, due_s: float) -> PacedAnswer:
        idle = self._idle.setdefault(request.key, [])
        used_s, client = idle.pop() if idle else (0.0, self._client_of(self._url, request.key))
        if time.monotonic() - used_s > STALE_S:
            await client.close()
        answer = None
        try:
            answer = await client.request(request.method, request.path, request.body, request.headers)
        except LOST:
            pass
        finally:
            idle.append((time.monotonic(), client))
        status = NO_ANSWER if answer is None else answer.status
        found = PacedAnswer(request, due_s, status, (time.monotonic() - due_s) * 1000, answer)
        if self._heard is not None:
            self._heard(found)
        return found


def accepted_ms(answers: Sequence[PacedAnswer]) -> list[float]:
    return [each.ms for each in answers if each.status in ACCEPTED]


def p99(answers: Sequence[PacedAnswer]) -> float:
    """Of the accepted ones, in milliseconds; nan for none."""
    return percentile(accepted_ms(answers), 0.99)

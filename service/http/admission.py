"""Limits of this process: requests and bodies at once, with a fair share for each workspace; requests of a key, and
wrong keys of an address, in a second."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from uuid import UUID

from starlette.types import Scope

from service.domain import sizes
from service.domain.errors import RateLimited, TooManyRequests, Unavailable
from service.kit.fair_gate import RETRY_AFTER_S, FairGate, RequestSlots
from service.kit.settings import Settings

WAITING = 57
"""Requests that wait for a place; one more gets 429 or 503. With the 7 places of a workspace by default, 64
of its clients are not refused."""

PATIENCE_S = 10.0
"""The longest wait for a place."""

SHARE = 0.75
"""Share of the places that one workspace may use, even when it is alone: others could not wait for it to leave one."""

LARGE_BYTES = 64 * 1024
LARGE_AT_ONCE = 2
"""Requests with larger bodies that run at once, one per workspace: each keeps a core busy for a second."""

BODIES = 16
"""Bodies of the maximum size in memory at once, half of them of one workspace: 64 MB in all."""


class Admission:
    """The gates that requests with a valid key pass."""

    def __init__(self, settings: Settings) -> None:
        at_once = settings.database.pool_size
        self._gate = FairGate(at_once, share=max(1, int(at_once * SHARE)), waiting=WAITING)
        self._large = FairGate(LARGE_AT_ONCE, share=1, waiting=WAITING)
        self._most_bytes = BODIES * sizes.MAX_BODY_BYTES
        self._bytes: Counter[UUID] = Counter()

    async def take_slots(self, workspace: UUID, body_bytes: int) -> RequestSlots:
        """Waits for the slots to run; raises TooManyRequests or Unavailable."""
        gates = (self._large, self._gate) if body_bytes > LARGE_BYTES else (self._gate,)
        slots = RequestSlots(workspace, gates)
        await slots.take(patience_s=PATIENCE_S)
        return slots

    @property
    def waiting(self) -> int:
        """Number of requests waiting for a place."""
        return self._gate.waiting + self._large.waiting

    @contextmanager
    def holding(self, workspace: UUID, size: int) -> Iterator[None]:
        """Counts a body of this size within the block; raises TooManyRequests or Unavailable above the limit."""
        if self._bytes[workspace] + size > self._most_bytes // 2:
            raise TooManyRequests("Too many large requests from this workspace at once.", retry_after_s=RETRY_AFTER_S)
        if self._bytes.total() + size > self._most_bytes:
            raise Unavailable("The service is busy with large requests.", retry_after_s=RETRY_AFTER_S)
        self._bytes[workspace] += size
        try:
            yield
        finally:
            self._bytes[workspace] -= size
            if not self._bytes[workspace]:
                del self._bytes[workspace]


REMEMBERED = 10_000

BURST_S = 10.0
"""The budget of this many seconds may be spent at once: clients work in bursts."""


class Buckets:
    """Tokens left, by owner: `burst` at first, then `per_s` more a second. 0: unlimited."""

    def __init__(self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_s, self.burst = per_s, burst
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, owner: Hashable) -> float:
        """Takes a token; returns 0, or the seconds until one is available."""
        if (wait_s := self.wait_s(owner)) > 0 or not self.per_s:
            return wait_s
        self._left[owner] = (self._now_left(owner) - 1, self._clock())
        self._left.move_to_end(owner)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0

    def wait_s(self, owner: Hashable) -> float:
        """Seconds until a token is available, without taking it."""
        return max(0.0, (1 - self._now_left(owner)) / self.per_s) if self.per_s else 0.0

    def _now_left(self, owner: Hashable) -> float:
        now = self._clock()
        left, at = self._left.get(owner, (float(self.burst), now))
        return min(float(self.burst), left + (now - at) * self.per_s)


def key_budgets(per_s: float) -> Buckets:
    """The budgets of keys, each of `per_s` requests a second."""
    return Buckets(per_s, max(1, int(per_s * BURST_S)))


def spend_budget(budgets: Buckets, key_id: UUID) -> None:
    """Counts a request of the key. Raises RateLimited if its budget is used up."""
    if (wait_s := budgets.take(key_id)) > 0:
        detail = f"The key has used up its budget: {budgets.per_s:g} requests a second, {budgets.burst} at once."
        raise RateLimited(detail, retry_after_s=math.ceil(wait_s))


def address_of(scope: Scope) -> str:
    """The client's address as given by the server and its trusted proxies; for IPv6 the network, as a client owns all
    its addresses."""
    host = scope["client"][0] if scope.get("client") else ""
    if ":" not in host:
        return str(host)
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    return str(IPv6Address(int(address) >> 64 << 64)) if isinstance(address, IPv6Address) else str(address)

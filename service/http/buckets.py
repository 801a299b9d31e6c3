"""Token buckets of this process: requests of keys, and wrong keys."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address
from uuid import UUID

from starlette.types import Scope

from service.domain.errors import RateLimited

REMEMBERED = 10_000

BURST_S = 10.0
"""The budget of this many seconds may be spent at once: clients work in bursts."""


class Buckets:
    """Tokens left, by owner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, owner: Hashable, *, per_s: float, burst: int) -> float:
        """Takes a token; returns 0, or the seconds until one is available."""
        left = self._now_left(owner, per_s, burst)
        taken = left >= 1
        self._left[owner] = (left - 1 if taken else left, self._clock())
        self._left.move_to_end(owner)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / per_s

    def wait_s(self, owner: Hashable, *, per_s: float, burst: int) -> float:
        """Seconds until a token is available, without taking it."""
        return max(0.0, (1 - self._now_left(owner, per_s, burst)) / per_s)

    def _now_left(self, owner: Hashable, per_s: float, burst: int) -> float:
        now = self._clock()
        left, at = self._left.get(owner, (float(burst), now))
        return min(float(burst), left + (now - at) * per_s)


class RequestBudgets:
    """Limits the requests of each key in this process to `per_s` a second; 0 is no limit."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._buckets = Buckets()

    def spend(self, key_id: UUID) -> None:
        """Counts a request. Raises RateLimited if the budget is used up."""
        if not self._per_s:
            return
        burst = max(1, int(self._per_s * BURST_S))
        if (wait_s := self._buckets.take(key_id, per_s=self._per_s, burst=burst)) > 0:
            detail = f"The budget of the key is used up: {self._per_s:g} requests a second, {burst} at once."
            raise RateLimited(detail, retry_after_s=math.ceil(wait_s))


class FailedAttempts:
    """Limits wrong keys by address to `per_min` a minute; 0 is no limit."""

    def __init__(self, per_min: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_min = per_min
        self._buckets = Buckets(clock)

    def wait_s(self, address: str) -> float:
        """Seconds until the address may try another key."""
        if not self._per_min:
            return 0.0
        return self._buckets.wait_s(address, per_s=self._per_min / 60, burst=self._per_min)

    def failed(self, address: str) -> None:
        if self._per_min:
            self._buckets.take(address, per_s=self._per_min / 60, burst=self._per_min)


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

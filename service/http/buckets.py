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


def of_keys(per_s: float) -> Buckets:
    """The budgets of keys, each of `per_s` requests a second."""
    return Buckets(per_s, max(1, int(per_s * BURST_S)))


def spend(budgets: Buckets, key_id: UUID) -> None:
    """Counts a request of the key. Raises RateLimited if its budget is used up."""
    if (wait_s := budgets.take(key_id)) > 0:
        detail = f"The budget of the key is used up: {budgets.per_s:g} requests a second, {budgets.burst} at once."
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

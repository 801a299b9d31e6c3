"""Token buckets of this process: so many at once, and then so many a second."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

REMEMBERED = 10_000


class Buckets:
    """Tokens left by owner, and when they were counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, owner: Hashable, *, per_s: float, burst: int) -> float:
        """Takes a token; returns 0, or the seconds until there is one."""
        left = self._now_left(owner, per_s, burst)
        taken = left >= 1
        self._left[owner] = (left - 1 if taken else left, self._clock())
        self._left.move_to_end(owner)
        if len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / per_s

    def wait_s(self, owner: Hashable, *, per_s: float, burst: int) -> float:
        """The seconds until there is a token, 0 where there is one. None is taken."""
        return max(0.0, (1 - self._now_left(owner, per_s, burst)) / per_s)

    def _now_left(self, owner: Hashable, per_s: float, burst: int) -> float:
        now = self._clock()
        left, at = self._left.get(owner, (float(burst), now))
        return min(float(burst), left + (now - at) * per_s)


class FailedAttempts:
    """How many wrong keys came from each address. `per_min`: so many at once, and as many in each minute; 0 is no
    limit."""

    def __init__(self, per_min: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_min = per_min
        self._buckets = Buckets(clock)

    def wait_s(self, address: str) -> float:
        """The seconds until the address may try another key, 0 when it may now."""
        if not self._per_min:
            return 0.0
        return self._buckets.wait_s(address, per_s=self._per_min / 60, burst=self._per_min)

    def failed(self, address: str) -> None:
        if self._per_min:
            self._buckets.take(address, per_s=self._per_min / 60, burst=self._per_min)


def address_of(scope: Scope) -> str:
    """The client's address, as the server and its trusted proxies give it; of IPv6 the network, of which a client has
    all addresses."""
    host = scope["client"][0] if scope.get("client") else ""
    if ":" not in host:
        return str(host)
    try:
        found = ip_address(host)
    except ValueError:
        return str(host)
    return str(IPv6Address(int(found) >> 64 << 64)) if isinstance(found, IPv6Address) else str(found)

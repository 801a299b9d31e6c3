"""Token buckets of this process: requests of keys and workspaces, and wrong keys."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

from service.domain.access import Caller
from service.domain.errors import RateLimited
from service.domain.model_budget import lower
from service.kit.settings import GRANTED, Settings

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
    """Limits the requests of keys and workspaces in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = Buckets(clock)

    def spend(self, caller: Caller, settings: Settings) -> None:
        """Counts a request. Raises RateLimited if a budget is used up, and then counts for none. `settings`: of the
        service."""
        per_s = {"key": _of_key(caller, settings), "workspace": settings.server.workspace_requests_per_s}
        owners = {"key": caller.key_id, "workspace": caller.workspace_id}
        in_force = [(whose, rate, max(1, int(rate * BURST_S))) for whose, rate in per_s.items() if rate > 0]
        for whose, rate, burst in in_force:
            if (wait_s := self._buckets.wait_s(owners[whose], per_s=rate, burst=burst)) > 0:
                detail = f"The budget of the {whose} is used up: {rate:g} requests a second, {burst} at once."
                raise RateLimited(detail, retry_after_s=math.ceil(wait_s))
        for whose, rate, burst in in_force:
            self._buckets.take(owners[whose], per_s=rate, burst=burst)


def _of_key(caller: Caller, settings: Settings) -> float:
    """Requests a second of the key; 0 is no limit. A workspace may set a lower one for its keys."""
    own, name = caller.settings, "key_requests_per_s"
    granted = own.get(GRANTED) or {}
    return lower(own.get(name), granted.get(name, settings.server.key_requests_per_s)) or 0.0


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

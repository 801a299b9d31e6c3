"""How many questions may a key ask, and for how much at once? A bucket of tokens per key and process (R17.04).

Each search, recall or context takes a token; they come back at the rate of the settings, up to the burst. Several
processes have a bucket each, so the rate of a deployment is the rate times its processes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from uuid import UUID

from fastapi import Depends, Request

from service.api.deps import ResourcesOf
from service.domain.access import Caller
from service.errors import InvalidInput, TooManyRequests
from service.resources import Resources

REMEMBERED_KEYS = 10_000


class Buckets:
    """Tokens left by key, and when they were counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[UUID, tuple[float, float]] = OrderedDict()

    def take(self, key: UUID, *, per_s: float, burst: int) -> float:
        """Takes a token; returns 0, or the seconds until there is one."""
        now = self._clock()
        left, at = self._left.pop(key, (float(burst), now))
        left = min(float(burst), left + (now - at) * per_s)
        taken = left >= 1
        self._left[key] = (left - 1 if taken else left, now)
        if len(self._left) > REMEMBERED_KEYS:
            self._left.popitem(last=False)
        return 0.0 if taken else (1 - left) / per_s


async def searches(request: Request, res: ResourcesOf) -> None:
    """A dependency that lets a search through or raises TooManyRequests."""
    who: Caller = request.state.caller
    per_s = res.settings.search_rate_per_s
    if per_s <= 0:
        return
    buckets: Buckets = request.app.state.search_buckets
    wait_s = buckets.take(who.key_id, per_s=per_s, burst=res.settings.search_burst)
    if wait_s > 0:
        raise TooManyRequests("This key searches faster than it may.", retry_after_s=wait_s)


LIMITED = [Depends(searches)]


def of_page(limit: int, res: Resources, *, given: bool) -> int:
    """`limit`; raises InvalidInput where the caller asks for more than a page may hold. A default is cut to it."""
    most = res.settings.max_page_size
    if given and limit > most:
        raise InvalidInput(f"limit: at most {most} are given at once.", field="limit")
    return min(limit, most)

"""Concurrency limiter, round-robin by tenant, so that none waits for the many requests of another.

Used for requests (service/http/admission.py), the local embedder and the threads for CPU work. A request that waits for
an external service, such as a language model, gives its slot to others. See docs/decisions/047-admission.md.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from service.domain.errors import TooManyRequests, Unavailable

Waiter = asyncio.Future[None]

RETRY_AFTER_S = 1.0

RECENT_S = 1.0
"""For this long after a tenant's request, others have at most half of the places: their work slows it down, too."""

REMEMBERED = 100
"""The number of tenants whose last request is remembered; a few would do."""


class FairGate:
    """Not for several threads.

    - `at_once` are inside, of one tenant at most `share`, and at most half while other tenants come
    - the rest wait in a queue for each tenant, and tenants are taken in turn
    - at most `waiting` wait in all (None: no limit); beyond that, the last of the longest queue is refused
    """

    def __init__(self, at_once: int, *, share: int | None = None, waiting: int | None = None) -> None:
        self._at_once = at_once
        self._share = at_once if share is None else share
        self._half = max(1, at_once // 2)
        self._came: OrderedDict[Hashable, float] = OrderedDict()
        self._most_waiting = waiting
        self._inside: Counter[Hashable] = Counter()
        self._free = at_once
        self._queues: OrderedDict[Hashable, deque[Waiter]] = OrderedDict()
        self._returning: set[Waiter] = set()
        self._waiting = 0

    async def enter(self, tenant: Hashable, *, patience_s: float | None = None, again: bool = False) -> None:
        """Returns once the tenant has a place, which `leave` gives back. Raises TooManyRequests if the tenant has
        too many requests, Unavailable if all tenants together have. `again`: it comes back after `leave`, before new
        ones, and is not refused."""
        self._came[tenant] = time.monotonic()
        self._came.move_to_end(tenant)
        if len(self._came) > REMEMBERED:
            self._came.popitem(last=False)
        if self._free > 0 and not self._has_its_share(tenant):
            self._admit(tenant)
            return
        if not again:
            self._make_room(tenant)
        queue = self._queues.setdefault(tenant, deque())
        waiter: Waiter = asyncio.get_running_loop().create_future()
        (queue.appendleft if again else queue.append)(waiter)
        self._waiting += 1
        if again:
            self._returning.add(waiter)
        try:
            async with asyncio.timeout(patience_s):
                await waiter
        except BaseException as exc:
            self._give_up(tenant, waiter)
            if isinstance(exc, TimeoutError):
                raise self._refusal(own=self._has_its_share(tenant)) from None
            raise

    @property
    def waiting(self) -> int:
        """The number of requests waiting to be let in."""
        return self._waiting

    def leave(self, tenant: Hashable) -> None:
        self._free += 1
        self._inside[tenant] -= 1
        if not self._inside[tenant]:
            del self._inside[tenant]
        if self._queues:
            self._let_in()

    def _let_in(self) -> None:
        """Gives free places to those who wait: the oldest of each tenant in turn."""
        for tenant in list(self._queues):
            if self._free <= 0:
                return
            if self._has_its_share(tenant):
                continue
            waiter = self._queues[tenant][0]
            self._forget(tenant, waiter)
            if not waiter.done():  # one that was cancelled just now is done
                self._admit(tenant)
                waiter.set_result(None)
            if tenant in self._queues:
                self._queues.move_to_end(tenant)

    def _forget(self, tenant: Hashable, waiter: Waiter) -> None:
        queue = self._queues.get(tenant, deque())
        if waiter in queue:
            queue.remove(waiter)
            self._returning.discard(waiter)
            self._waiting -= 1
            if not queue:
                del self._queues[tenant]

    def _has_its_share(self, tenant: Hashable) -> bool:
        inside = self._inside[tenant]
        return inside >= self._share or (inside >= self._half and self._others_came(tenant))

    def _others_came(self, tenant: Hashable) -> bool:
        """Whether another tenant came within the last second."""
        latest = next((other for other in reversed(self._came) if other != tenant), None)
        return latest is not None and time.monotonic() - self._came[latest] < RECENT_S

    def _admit(self, tenant: Hashable) -> None:
        self._free -= 1
        self._inside[tenant] += 1

    def _give_up(self, tenant: Hashable, waiter: Waiter) -> None:
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:  # let in at the same moment
            self.leave(tenant)
        self._forget(tenant, waiter)

    def _make_room(self, tenant: Hashable) -> None:
        """Refuses the last of the longest queue where too many wait; raises that refusal if it is this tenant's."""
        if self._most_waiting is None or self._waiting < self._most_waiting:
            return
        own = len(self._queues.get(tenant, ()))
        longest = max(self._queues, key=lambda each: len(self._queues[each]))
        waiter, length = self._queues[longest][-1], len(self._queues[longest])
        if length <= own + 1 or waiter in self._returning:
            raise self._refusal(own=own >= self._most_waiting // 2)
        self._forget(longest, waiter)
        if not waiter.done():
            waiter.set_exception(self._refusal(own=length >= self._most_waiting // 2))

    def _refusal(self, *, own: bool) -> TooManyRequests | Unavailable:
        if own:
            return TooManyRequests("Too many of your requests at once; try again shortly.", retry_after_s=RETRY_AFTER_S)
        return Unavailable("The service is busy; try again shortly.", retry_after_s=RETRY_AFTER_S)


class RequestSlots:
    """The slots of one request in the gates it passes."""

    def __init__(self, tenant: Hashable, gates: Sequence[FairGate]) -> None:
        self.tenant = tenant
        self._gates = gates
        self._taken: list[FairGate] = []
        self._away = 0
        self._ended = False

    async def take(self, *, patience_s: float | None = None, again: bool = False) -> None:
        try:
            for gate in self._gates:
                await gate.enter(self.tenant, patience_s=patience_s, again=again)
                self._taken.append(gate)
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        while self._taken:
            self._taken.pop().leave(self.tenant)

    def end(self) -> None:
        self._ended = True
        self.give_back()

    @asynccontextmanager
    async def left(self) -> AsyncIterator[None]:
        """Within the block others have the slots. A request whose tasks wait at once leaves with the first and comes
        back with the last."""
        self._away += 1
        if self._away == 1:
            self.give_back()
        try:
            yield
        except asyncio.CancelledError:  # it ends now, without its slots
            self._away -= 1
            raise
        except BaseException:
            await self._come_back()
            raise
        else:
            await self._come_back()

    async def _come_back(self) -> None:
        self._away -= 1
        if self._away or self._ended or self._taken:
            return
        await self.take(again=True)
        if self._ended:
            self.give_back()


_slots: ContextVar[RequestSlots | None] = ContextVar("slots", default=None)
"""The slots of the running request. Ambient, because the clients of other services give them back and know no request;
they decide who waits, never who may."""


def tenant() -> Hashable:
    """Whose request is running; None outside of requests."""
    slots = _slots.get()
    return None if slots is None else slots.tenant


@contextmanager
def inside(slots: RequestSlots) -> Iterator[None]:
    """Within the block, and in tasks started inside it, the running request has these slots, taken before."""
    token = _slots.set(slots)
    try:
        yield
    finally:
        _slots.reset(token)
        slots.end()


def leave() -> None:
    """Gives up the slots of the running request for good: from here on it mostly waits."""
    slots = _slots.get()
    if slots is not None:
        slots.end()


@asynccontextmanager
async def outside() -> AsyncIterator[None]:
    """Gives the slots to others while waiting for another service."""
    slots = _slots.get()
    if slots is None:
        yield
        return
    async with slots.left():
        yield


P = ParamSpec("P")
T = TypeVar("T")

# -- threads for the rules that read long texts, so that they do not block the event loop -----------------------------

# A rule needs some milliseconds of CPU for 1,000 characters, whatever they are (`make hostile`), so nothing has to be
# stopped (docs/decisions/049-rules-in-threads.md).
LONG_CHARS = 1_000
"""The rules for importance, type and words need some 2 ms of CPU per 1,000 characters."""


class RuleThreads:
    """Threads for rules that take long. `threads` calls run at once, at most all but one of them of one workspace.
    `waiting` others may wait; more are refused with Unavailable or TooManyRequests."""

    def __init__(self, threads: int = 2, waiting: int = 128) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="rules")
        self._gate = FairGate(threads, share=max(1, threads - 1), waiting=waiting)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in a thread. A caller that gives up does not stop it, so it keeps its place until it ends."""
        whose = tenant() or object()  # jobs have no share: each counts for itself
        await self._gate.enter(whose)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))
        call.add_done_callback(lambda _: self._gate.leave(whose))
        return await asyncio.shield(call)

    async def run_if_long(self, chars: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in place when it reads few characters: handing it over would cost more than the work."""
        if chars > LONG_CHARS:
            return await self.run(work, *args, **kwargs)
        result = work(*args, **kwargs)
        await asyncio.sleep(0)  # many short texts one after the other must not hold up other requests
        return result

    def close(self) -> None:
        """Lets running calls end and starts no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

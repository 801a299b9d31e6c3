"""Threads for the rules that read long texts, so that they do not block the event loop.

A rule needs some milliseconds of CPU for 1,000 characters, whatever they are (`make hostile`), so nothing has to be
stopped. docs/decisions/049-rules-in-threads.md
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from service.kit import fair_gate
from service.kit.fair_gate import FairGate

P = ParamSpec("P")
T = TypeVar("T")

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
        tenant = fair_gate.tenant() or object()  # jobs have no share: each counts for itself
        await self._gate.enter(tenant)
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))
        call.add_done_callback(lambda _: self._gate.leave(tenant))
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

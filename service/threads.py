"""A few threads with a bounded queue, for work that burns CPU (docs/decisions/032-no-cpu-on-the-event-loop.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from service.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")


LONG_CHARS = 1_000
"""The rules for importance, type and words need some 2 ms of CPU per 1,000 characters."""


class Threads:
    """`workers` threads; more than `waiting` unfinished calls are refused with Unavailable."""

    def __init__(self, workers: int = 2, waiting: int = 128) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="cpu")
        self._limit = waiting
        self._unfinished = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in a thread. A caller that gives up (time-out) does not stop the thread, so it still counts."""
        if self._unfinished >= self._limit:
            raise Unavailable("The service is busy; try again shortly.", retry_after_s=1.0)
        self._unfinished += 1
        future = self._pool.submit(work, *args, **kwargs)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _call_soon(loop, self._done))
        return await asyncio.wrap_future(future)

    async def run_if_long(self, text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in place when `text` is short: handing it over would cost more than the work."""
        return await self.run(work, *args, **kwargs) if len(text) > LONG_CHARS else work(*args, **kwargs)

    def _done(self) -> None:
        self._unfinished -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)

"""How is something written behind the requests, without any of them waiting for it?

Taken at once, written a little later in batches, tried again while the database is away, and to the end at shutdown.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, TypeVar

import structlog

from service.errors import ServiceError

log = structlog.get_logger(__name__)

FAREWELL_S = 5.0  # for the rest, at shutdown


class Behind(ABC):
    """What waits to be written; who adds to it sets `news`. `pause_s`: between two writes."""

    what: ClassVar[str]
    """Its name in the log."""

    def __init__(self, *, pause_s: float) -> None:
        self._pause_s = pause_s
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()  # who flushes before an erasure also waits for what is under way
        self.dropped = 0

    @abstractmethod
    async def write(self) -> None:
        """Writes all that waits. Raises ServiceError and keeps what is not written when the database is away."""

    @abstractmethod
    def clear(self) -> int:
        """Throws away what waits; returns how much it was."""

    async def flush(self) -> None:
        """The same as `write`, one at a time."""
        async with self._writing:
            await self.write()

    async def run(self) -> None:
        """Writes until it is cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(self._pause_s)  # more may come: one transaction for all
            self._news.clear()
            try:
                await self.flush()
            except ServiceError as exc:
                self._news.set()
                log.warning("write_behind_waits", what=self.what, code=exc.code, dropped=self.dropped)
            except Exception as exc:  # a bug here must not end the writing, nor repeat for ever with the same
                log.error("write_behind_failed", what=self.what, kind=type(exc).__name__, lost=self.clear())


Kind = TypeVar("Kind", bound=Behind)


@asynccontextmanager
async def in_background(found: Kind) -> AsyncIterator[Kind]:
    """It is written while the block runs, and to its end when the block is left."""
    writing = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        try:
            await asyncio.wait_for(found.flush(), FAREWELL_S)
        except (ServiceError, TimeoutError):
            log.warning("write_behind_cut_short", what=found.what, dropped=found.dropped)

"""What a process gives back while nobody asks for anything: connections, a process, free memory of the allocator.

After a burst each of ten connections holds 7 to 15 MB of Postgres. What is closed here comes again with the next burst,
in milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from service.kit import garbage
from service.postgres.engine import Database

log = structlog.get_logger(__name__)

IDLE_S = 30.0
"""How long something is unused until it is given back."""

LOOK_S = 5.0

EndIdle = Callable[[float], Awaitable[int]]
"""Ends the processes that were unused for so many seconds, and returns how many there were."""


@asynccontextmanager
async def given_back(database: Database, end_idle: EndIdle, *, keep: int) -> AsyncIterator[None]:
    """Within the block a task looks every few seconds for what is unused. `keep`: connections that stay."""
    task = asyncio.create_task(_keep_looking(database, end_idle, keep))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def look(database: Database, end_idle: EndIdle, *, keep: int, idle_s: float = IDLE_S) -> int:
    """Gives back what was unused for `idle_s`, and returns how many connections and processes those were."""
    ended = await database.close_idle(idle_s, keep=keep) + await end_idle(idle_s)
    if ended:
        await asyncio.to_thread(garbage.trim)
    return ended


async def _keep_looking(database: Database, end_idle: EndIdle, keep: int) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            await look(database, end_idle, keep=keep)
        except Exception as exc:  # memory stays where it is until the next look
            log.warning("idle_not_given_back", kind=type(exc).__name__)

"""The moment by which a request is answered, as long as nothing of it was written.

A request is cut off while it reads texts, waits for a model or a lock, or has a transaction open; then nothing is left
of it. From its first COMMIT on it runs to its end, and so does one whose answer has begun. A batch is not cut off as a
whole: each of its items is. See docs/decisions/047-admission.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.domain.errors import DeadlineExceeded

RETRY_AFTER_S = 1.0


class Deadline:
    """Cuts a request, or an item of a batch, off at a moment unless it is lifted; without a limit it never does."""

    def __init__(self, limit: asyncio.Timeout | None = None) -> None:
        self._limit = limit

    def lift(self) -> float | None:
        """Lets the request run to its end, and returns the moment that was its deadline. Raises DeadlineExceeded when
        that has passed."""
        if self._limit is None:
            return None
        if self._limit.expired():  # another task of the request, about to be cancelled
            raise _exceeded()
        moment = self._limit.when()
        if moment is not None:
            self._limit.reschedule(None)
        return moment


NEVER = Deadline()


def after(seconds: float) -> float:
    """A moment on the clock of the event loop."""
    return asyncio.get_running_loop().time() + seconds


@asynccontextmanager
async def ends_at(moment: float | None) -> AsyncIterator[Deadline]:
    """Ends the block at the moment, unless the deadline is lifted; None never does. Raises DeadlineExceeded."""
    try:
        async with asyncio.timeout_at(moment) as limit:
            yield Deadline(limit)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _exceeded() from None


def _exceeded() -> DeadlineExceeded:
    return DeadlineExceeded(
        "The request was not completed in time (LOXODON_REQUEST_DEADLINE_S), and nothing was written. Send less at "
        "once, or store with Prefer: respond-async.",
        retry_after_s=RETRY_AFTER_S,
    )

"""Concurrency limits of this process for requests and request bodies, with a fair share for each workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from service.domain import sizes
from service.domain.errors import TooManyRequests, Unavailable
from service.kit.fair_gate import RETRY_AFTER_S, FairGate, RequestSlots
from service.kit.settings import Settings

WAITING = 57
"""Requests that wait for a place; one more gets 429 or 503. With the 7 places of a workspace by default, 64
of its clients are not refused."""

PATIENCE_S = 10.0
"""The longest wait for a place."""

SHARE = 0.75
"""Share of the places that one workspace may use, even when it is alone: others could not wait for it to leave one."""

LARGE_BYTES = 64 * 1024
LARGE_AT_ONCE = 2
"""Requests with larger bodies that run at once, one per workspace: each keeps a core busy for a second."""

BODIES = 16
"""Bodies of the maximum size in memory at once, half of them of one workspace: 64 MB in all."""


class Admission:
    """The gates that requests with a valid key pass."""

    def __init__(self, settings: Settings) -> None:
        at_once = settings.database.pool_size
        self._gate = FairGate(at_once, share=max(1, int(at_once * SHARE)), waiting=WAITING)
        self._large = FairGate(LARGE_AT_ONCE, share=1, waiting=WAITING)
        self._most_bytes = BODIES * sizes.MAX_BODY_BYTES
        self._bytes: Counter[UUID] = Counter()

    async def take_slots(self, workspace: UUID, body_bytes: int) -> RequestSlots:
        """Waits for the slots to run; raises TooManyRequests or Unavailable."""
        gates = (self._large, self._gate) if body_bytes > LARGE_BYTES else (self._gate,)
        slots = RequestSlots(workspace, gates)
        await slots.take(patience_s=PATIENCE_S)
        return slots

    @property
    def waiting(self) -> int:
        """Number of requests waiting for a place."""
        return self._gate.waiting + self._large.waiting

    @contextmanager
    def holding(self, workspace: UUID, size: int) -> Iterator[None]:
        """Counts a body of this size within the block; raises TooManyRequests or Unavailable above the limit."""
        if self._bytes[workspace] + size > self._most_bytes // 2:
            raise TooManyRequests("Too many large requests of this workspace at once.", retry_after_s=RETRY_AFTER_S)
        if self._bytes.total() + size > self._most_bytes:
            raise Unavailable("The service is busy with large requests.", retry_after_s=RETRY_AFTER_S)
        self._bytes[workspace] += size
        try:
            yield
        finally:
            self._bytes[workspace] -= size
            if not self._bytes[workspace]:
                del self._bytes[workspace]

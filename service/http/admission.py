"""How many requests run, wait and hold a body at once in this process, with a fair share for each workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from service.domain.errors import TooManyRequests, Unavailable
from service.kit.fair_gate import RETRY_AFTER_S, FairGate, RequestPlace
from service.kit.settings import Settings

SHARE = 0.75
"""How much of the places one workspace may have, also when it is alone: a place it leaves is too late for others."""

LARGE_BYTES = 64 * 1024
LARGE_AT_ONCE = 2
"""Requests with larger bodies that run at once, one of each workspace: each of them keeps a core busy for a second."""

BODIES = 16
"""Bodies of the largest size that are held at once, half of them of one workspace: 64 MB. Smaller ones are more."""


class Admission:
    """The gates that requests with a good key pass."""

    def __init__(self, settings: Settings) -> None:
        at_once, waiting = settings.requests_at_once, settings.requests_waiting
        self._patience_s = settings.queue_timeout_s
        self._gate = FairGate(at_once, share=max(1, int(at_once * SHARE)), waiting=waiting)
        self._large = FairGate(LARGE_AT_ONCE, share=1, waiting=waiting)
        self._most_bytes = BODIES * settings.max_body_bytes
        self._bytes: Counter[UUID] = Counter()

    async def place(self, workspace: UUID, body_bytes: int) -> RequestPlace:
        """A place to run in; raises TooManyRequests or Unavailable."""
        gates = (self._large, self._gate) if body_bytes > LARGE_BYTES else (self._gate,)
        place = RequestPlace(workspace, gates)
        await place.take(patience_s=self._patience_s)
        return place

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return self._gate.waiting + self._large.waiting

    @contextmanager
    def holding(self, workspace: UUID, size: int) -> Iterator[None]:
        """Within the block a body of this size is held; raises TooManyRequests or Unavailable where they are too
        many."""
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

"""How do reads leave their mark on what they found? (R6.20, R7.24)

Counted in this process at once, written a little later in batches: a search never waits for it and never fails by it.
Uses of the same memory add up before they are written, so a memory that is read a thousand times is one update. What
is counted and not yet written is lost with the process; it is a habit, not a fact.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from service.db.engine import Database
from service.db.memories import stats
from service.db.memories.stats import Use
from service.memory.behind import Behind

CAPACITY = 50_000  # memories and entities with uses to be written; more are not counted
BATCH = 500
PAUSE_S = 1.0  # between two writes

Key = tuple[UUID, str, UUID]
"""Workspace, "memory" or "entity", and its id."""


class Reinforcement(Behind):
    """Uses on their way to the counters."""

    what = "uses"

    def __init__(self, database: Database, *, capacity: int = CAPACITY, pause_s: float = PAUSE_S) -> None:
        super().__init__(pause_s=pause_s)
        self._database = database
        self._capacity = capacity
        self._waiting: dict[Key, Use] = {}

    def add(self, workspace_id: UUID, memories: Iterable[UUID], at: datetime, *, entities: Iterable[UUID] = ()) -> None:
        """Counts one use of each; never waits."""
        for kind, ids in (("memory", memories), ("entity", entities)):
            for each in ids:
                self._count((workspace_id, kind, each), Use(1, at))
        if self._waiting:
            self._news.set()

    def _count(self, key: Key, use: Use) -> None:
        known = self._waiting.get(key)
        if known is None and len(self._waiting) >= self._capacity:
            self.dropped += use.times
            return
        self._waiting[key] = use if known is None else Use(known.times + use.times, max(known.at, use.at))

    async def write(self) -> None:
        """A transaction per workspace and batch."""
        while self._waiting:
            workspace_id = next(iter(self._waiting))[0]
            batch = [key for key in self._waiting if key[0] == workspace_id][:BATCH]
            taken = {key: self._waiting.pop(key) for key in batch}
            try:
                async with self._database.begin(workspace_id) as session:
                    await stats.count_uses(
                        session,
                        workspace_id,
                        {key[2]: use for key, use in taken.items() if key[1] == "memory"},
                        {key[2]: use for key, use in taken.items() if key[1] == "entity"},
                    )
            except BaseException:
                for key, use in taken.items():
                    self._count(key, use)
                raise

    def clear(self) -> int:
        lost = len(self._waiting)
        self._waiting.clear()
        return lost

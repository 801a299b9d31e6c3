"""Who read what? Noted at once, written a little later, in batches, beside the requests (R13.07).

A read never waits for its entry and never fails because of it: the buffer is bounded, the oldest entries give way when
the database stays away, and how many did is logged.
"""

from __future__ import annotations

from collections import deque

from service.db import writes
from service.db.engine import Database
from service.db.writes import AuditEntry
from service.memory.behind import Behind

CAPACITY = 10_000  # entries of about 1 kB
BATCH = 500
PAUSE_S = 0.5  # between two writes


class ReadLog(Behind):
    """Entries on their way to the audit log."""

    what = "read log"

    def __init__(self, database: Database, *, capacity: int = CAPACITY, pause_s: float = PAUSE_S) -> None:
        super().__init__(pause_s=pause_s)
        self._database = database
        self._waiting: deque[AuditEntry] = deque(maxlen=capacity)

    def add(self, entry: AuditEntry) -> None:
        """Takes an entry; never waits. The oldest one goes when there are too many."""
        if len(self._waiting) == self._waiting.maxlen:
            self.dropped += 1
        self._waiting.append(entry)
        self._news.set()

    async def write(self) -> None:
        """A transaction per workspace and batch."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            while batch:
                workspace_id = batch[0].scope.workspace_id
                own = [entry for entry in batch if entry.scope.workspace_id == workspace_id]
                try:
                    async with self._database.begin(workspace_id) as session:
                        await writes.append_audit(session, own)
                except BaseException:
                    self._put_back(batch)
                    raise
                batch = [entry for entry in batch if entry.scope.workspace_id != workspace_id]

    def _put_back(self, batch: list[AuditEntry]) -> None:
        room = (self._waiting.maxlen or 0) - len(self._waiting)
        self.dropped += max(0, len(batch) - room)
        self._waiting.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))

    def clear(self) -> int:
        lost = len(self._waiting)
        self._waiting.clear()
        return lost

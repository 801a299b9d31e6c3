"""The last use of each key, written in the background."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from service.access.statements import keys
from service.postgres.engine import Database
from service.runtime.write_behind import USES_CAPACITY, WriteBehind

KEY_USE_EVERY = timedelta(minutes=1)


class KeyUses(WriteBehind):
    """The last use of keys, written at most once a minute for each key."""

    what = "key uses"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._noted: dict[UUID, datetime] = {}
        self._buffer: dict[tuple[UUID, UUID], datetime] = {}

    def add(self, workspace_id: UUID, key_id: UUID, at: datetime) -> None:
        """Notes a use; never waits."""
        noted = self._noted.get(key_id)
        if noted is not None and at - noted < KEY_USE_EVERY:
            return
        if len(self._noted) >= USES_CAPACITY:
            self._noted.clear()
        self._noted[key_id] = self._buffer[workspace_id, key_id] = at
        self._pending.set()

    async def write(self) -> None:
        """Writes the buffered uses, one transaction per workspace."""
        while self._buffer:
            workspace_id = next(iter(self._buffer))[0]
            taken = {key: self._buffer.pop(key) for key in list(self._buffer) if key[0] == workspace_id}
            try:
                async with self._database.begin(workspace_id) as session:
                    await keys.note_uses(session, {key[1]: at for key, at in taken.items()})
            except BaseException:
                self._buffer = taken | self._buffer
                raise

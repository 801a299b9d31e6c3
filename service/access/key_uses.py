"""The last use of each key, written in the background."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from service.access.statements import keys
from service.postgres.engine import Database, Session
from service.runtime.background import CAPACITY, WriteBehind

KEY_USE_EVERY = timedelta(minutes=1)


class KeyUses(WriteBehind[UUID, datetime]):
    """The last use of keys, written at most once a minute for each key."""

    what = "key uses"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._noted: dict[UUID, datetime] = {}

    def add(self, workspace_id: UUID, key_id: UUID, at: datetime) -> None:
        """Notes a use; never waits."""
        noted = self._noted.get(key_id)
        if noted is not None and at - noted < KEY_USE_EVERY:
            return
        if len(self._noted) >= CAPACITY:
            self._noted.clear()
        self._noted[key_id] = at
        self.put(workspace_id, key_id, at)

    async def write(self, session: Session, values: Mapping[UUID, datetime]) -> None:
        await keys.note_uses(session, values)

"""Verbs called directly on the real database, and what they leave in history, audit and queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

from service.domain.draft import CallerFields, Draft, Options, Speech
from service.domain.memory import Memory
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.memories.statements import history, memories
from service.memories.store import store_text
from service.runtime.resources import Resources

CALL = WriteContext("test-request")


class Verbs:
    """The workspace of one test: makes drafts and memories, and reads back what a verb left."""

    def __init__(self, res: Resources, workspace_id: UUID) -> None:
        self.res = res
        self.workspace_id = workspace_id

    def scope(self, user_id: str = "ann", **ids: Any) -> Scope:
        return Scope(self.workspace_id, user_id, **ids)

    def draft(self, content: str, *, scope: Scope | None = None, role: str | None = None, **given: Any) -> Draft:
        """A draft of Ann's; with a `role` it is a message that is kept word for word."""
        options = Options(record=role is not None)
        speech = Speech(role) if role else None
        return Draft(scope or self.scope(), content, CallerFields(**given), options, self.res.clock(), speech)

    async def stored(self, content: str, *, scope: Scope | None = None, **given: Any) -> UUID:
        outcome = await store_text(self.draft(content, scope=scope, **given), self.res, CALL)
        assert outcome.memory_id is not None
        return outcome.memory_id

    async def memory(self, memory_id: UUID) -> Memory | None:
        async with self.res.db.read(self.workspace_id) as session:
            return await memories.get(session, self.workspace_id, memory_id)

    async def history(self, memory_id: UUID) -> list[tuple[str, str | None, str | None]]:
        """Action, old text and new text of every change, oldest first."""
        async with self.res.db.read(self.workspace_id) as session:
            entries = await history.of_memory(session, self.workspace_id, memory_id, limit=1_000)
        return [(str(each.event), each.old_memory, each.new_memory) for each in entries]

    async def audited(self) -> list[str]:
        """The operations in the audit log, oldest first."""
        return [row.operation for row in await self.rows("SELECT operation FROM audit_log ORDER BY recorded_at, id")]

    async def jobs(self, memory_id: UUID) -> list[str]:
        found = await self.rows("SELECT kind FROM job WHERE memory_id = :id ORDER BY id", id=memory_id)
        return [row.kind for row in found]

    async def rows(self, sql: str, **values: object) -> list[Any]:
        async with self.res.db.read(self.workspace_id) as session:
            return list((await session.execute(text(sql), values)).all())

    async def change(self, sql: str, **values: object) -> None:
        async with self.res.db.begin(self.workspace_id) as session:
            await session.execute(text(sql), values)


@pytest.fixture
def verbs(resources: Resources, workspace: UUID) -> Verbs:
    return Verbs(resources, workspace)

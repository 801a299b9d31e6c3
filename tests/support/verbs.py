"""Verbs called directly on the real database, and what they leave in history."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from service.domain.draft import CallerFields, Draft, Options
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.scope import Scope
from service.memories.statements import history, memories
from service.memories.store import store_text
from service.runtime.resources import Resources
from tests.support.databases import of_workspace

CALL = Call("test-request")


class Verbs:
    """The workspace of one test: makes drafts and memories, and reads back what a verb left."""

    def __init__(self, res: Resources, workspace_id: UUID) -> None:
        self.res = res
        self.workspace_id = workspace_id

    def scope(self) -> Scope:
        return Scope(self.workspace_id, "ann")

    def draft(self, content: str, **given: Any) -> Draft:
        return Draft(self.scope(), content, CallerFields(**given), Options(), self.res.clock())

    async def stored(self, content: str, **given: Any) -> UUID:
        outcome = await store_text(self.draft(content, **given), self.res, CALL)
        assert outcome.memory_id is not None
        return outcome.memory_id

    async def memory(self, memory_id: UUID) -> Memory | None:
        async with self.res.db.read(self.workspace_id) as session:
            return await memories.get(session, memory_id)

    async def history(self, memory_id: UUID) -> list[tuple[str, str | None, str | None]]:
        """Action, old text and new text of every change, oldest first."""
        async with self.res.db.read(self.workspace_id) as session:
            entries = await history.of_memory(session, memory_id, limit=1_000)
        return [(str(each.event), each.old_memory, each.new_memory) for each in entries]

    async def rows(self, sql: str, **values: object) -> list[Any]:
        async with self.res.db.read(self.workspace_id) as session:
            return list((await session.execute(of_workspace(sql, self.workspace_id), values)).all())

    async def change(self, sql: str, **values: object) -> None:
        async with self.res.db.begin(self.workspace_id) as session:
            await session.execute(of_workspace(sql, self.workspace_id), values)


@pytest.fixture
def verbs(resources: Resources, workspace: UUID) -> Verbs:
    return Verbs(resources, workspace)

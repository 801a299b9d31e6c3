"""Archives faded memories and removes faded entities that nothing mentions.

An archived memory can be read by id and restored. Everything is recorded in history and in the audit log.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from service.domain.memory import Memory
from service.domain.request import WriteContext
from service.domain.scope import Scope
from service.episodes.statements import conversations
from service.memories import write
from service.memories.statements import memories
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit, plain_transaction, write_transaction
from service.upkeep.statements import fading

ARCHIVED_AT_ONCE = 100  # in one transaction, under the lock of their scope: some 100 ms


async def archive_faded(
    workspace_id: UUID, after: UUID, res: Resources, request: WriteContext
) -> tuple[int, UUID | None]:
    """Archives the next faded memories; returns how many, and the id to continue after, None at the end."""
    async with res.db.read(workspace_id) as session:
        ids = await fading.list_faded(session, workspace_id, after=after, batch=ARCHIVED_AT_ONCE)
        by_id = await memories.get_many(session, workspace_id, ids)
    count = 0
    for scope, group in groupby(sorted(by_id.values(), key=_owner), key=lambda each: each.scope):
        count += await _archive(scope, sorted(memory.id for memory in group), res, request)
    return count, ids[-1] if len(ids) == ARCHIVED_AT_ONCE else None


def _owner(memory: Memory) -> tuple[str, ...]:
    scope = memory.scope
    return tuple(repr(each) for each in (scope.user_id, scope.agent_id, scope.run_id, scope.channel))


async def _archive(scope: Scope, ids: Sequence[UUID], res: Resources, request: WriteContext) -> int:
    """Archives memories under the lock of the scope, so that no store treats one of them as a live duplicate."""
    async with write_transaction(scope, res, request) as session:
        archived = [key for key in ids if await write.archive(session, scope, key, res)]
        if archived:
            await append_audit(session, "archive", scope, archived, request, res, why="faded")
    return len(archived)


async def remove_forgotten_entities(workspace_id: UUID, res: Resources, request: WriteContext, *, batch: int) -> int:
    """Removes the next faded entities that no memory or relation names and no caller wrote; returns how many."""
    async with plain_transaction(workspace_id, res, request) as session:
        gone = await fading.remove_forgotten(session, workspace_id, now=res.clock(), batch=batch)
        if gone:
            await append_audit(session, "delete_entity", Scope(workspace_id), gone, request, res, why="faded")
    return len(gone)


async def archive_idle_conversations(workspace_id: UUID, res: Resources, request: WriteContext, *, batch: int) -> int:
    """Archives the next idle conversations; returns how many."""
    before = res.clock() - timedelta(days=res.settings.jobs.ageing.conversation_archive_days)
    async with plain_transaction(workspace_id, res, request) as session:
        idle = await conversations.archive_idle(session, workspace_id, before=before, batch=batch)
        if idle:
            scope = Scope(workspace_id)
            await append_audit(session, "archive", scope, idle, request, res, kind="episodic", why="idle")
    return len(idle)

"""Deletes one memory, several, or those that have expired. Their history stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from service.access.statements.keys import workspace
from service.domain.errors import NotFound
from service.domain.request import Call, Expected, check_version
from service.domain.scope import NIL_WORKSPACE, Scope
from service.memories.statements import deletion, memories
from service.memories.statements.deletion import BATCH
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction, write_transaction


@dataclass(frozen=True, slots=True)
class ForgottenMemory:
    """The outcome for one id: deleted now, deleted before, or (neither) never seen."""

    id: UUID
    deleted: bool = False
    already_deleted: bool = False


async def forget(
    workspace_id: UUID, memory_id: UUID, res: Resources, call: Call, *, expected: Expected | None = None
) -> ForgottenMemory:
    """Deletes one memory; may be repeated. Raises NotFound for an id that was never seen, or PreconditionFailed."""
    async with res.db.read(workspace_id) as session:
        memory = await memories.get(session, memory_id)
    if memory is None:
        return await _find_deleted(workspace_id, memory_id, res, call)
    async with write_transaction(memory.scope, res, call) as write:
        current = await memories.get(write.session, memory_id)
        if current is not None:
            check_version(current.version, expected)
        deleted = await deletion.delete_memories(write.session, [memory_id], generation=res.generation)
        if deleted:
            await write.audit("delete", memory.scope, deleted)
        return await write.answer(ForgottenMemory(memory_id, bool(deleted), not deleted))


async def _find_deleted(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> ForgottenMemory:
    async with plain_transaction(workspace_id, res, call) as write:
        if not await deletion.find_deleted(write.session, [memory_id]):
            raise NotFound.of("memory")
        return await write.answer(ForgottenMemory(memory_id, already_deleted=True))


async def forget_many(workspace_id: UUID, ids: Sequence[UUID], res: Resources, call: Call) -> list[ForgottenMemory]:
    """The outcome for each id, in order; all in one transaction. Unknown ids do not prevent the others from being
    deleted; a shared memory does, if the request may not write shared memories."""
    async with plain_transaction(workspace_id, res, call) as write:
        await write.check_share_of(ids)
        deleted: set[UUID] = set()
        for part in parts(sorted(set(ids))):
            deleted.update(await deletion.delete_memories(write.session, part, generation=res.generation))
        before = await deletion.find_deleted(write.session, [each for each in ids if each not in deleted])
        if deleted:
            await write.audit("delete", Scope(workspace_id), sorted(deleted))
        outcomes = [ForgottenMemory(memory_id, memory_id in deleted, memory_id in before) for memory_id in ids]
        return await write.answer(outcomes)


def parts(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    return (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))


async def remove_outlived(res: Resources) -> int:
    """Deletes memories that are past their `expires_at` or the retention of their workspace, in batches until none is
    left. Returns their number in all workspaces; each has a DELETE in its history."""
    removed = 0
    while True:
        async with res.db.read(NIL_WORKSPACE) as session:
            outlived = await deletion.list_outlived(
                session, res.clock(), retention_days=res.settings.memories.retention_days, limit=BATCH
            )
        batch = 0
        for workspace_id, group in groupby(sorted(outlived), key=itemgetter(0)):
            batch += await _remove_expired(workspace_id, [memory_id for _, memory_id in group], res)
        removed += batch
        if not batch:  # nothing left, or other workers were faster
            return removed


async def _remove_expired(workspace_id: UUID, ids: list[UUID], res: Resources) -> int:
    async with res.db.begin(workspace_id) as session:
        settings = res.of_workspace(dict((await workspace(session)).settings))
        deleted = await deletion.delete_memories(session, ids, generation=res.generation, withdraws="expired")
        if deleted:
            write = Write(session, settings, Call("job:cleanup"))
            await write.audit("delete", Scope(workspace_id), deleted, reason="outlived")
    return len(deleted)

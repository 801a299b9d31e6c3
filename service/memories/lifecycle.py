"""Archives and deletes memories, and brings them back.

The history of a deleted memory stays, and with it everything that is needed to restore it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from service.access.statements.keys import workspace
from service.conversations.statements import withdrawn
from service.domain.decision import Action
from service.domain.errors import NotFound
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText, content_hash
from service.memories import reading, writing
from service.memories.revise import refuse_past
from service.memories.statements import deletion, history, memories, undo, updates
from service.memories.statements.deletion import BATCH
from service.memories.statements.history import Change
from service.memories.statements.undo import DeletedMemory
from service.memories.writing import ChangeContext
from service.postgres.engine import Session
from service.postgres.tables import MEMORY_STAT
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, plain_transaction, write_transaction


@dataclass(frozen=True, slots=True)
class ForgottenMemory:
    """The outcome for one id: deleted now, deleted before, or (neither) never seen."""

    id: UUID
    deleted: bool = False
    already_deleted: bool = False


async def find_also_deleted(session: Session, memory_id: UUID) -> Memory | DeletedMemory | None:
    """A memory, deleted or not."""
    known = await memories.get(session, memory_id)
    return known or next(iter(await undo.find_deleted(session, memory_id)), None)


async def archive(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> Memory:
    """The memory, archived; one that is archived already stays as it is. Raises NotFound or PreconditionFailed."""
    known = await reading.get(workspace_id, memory_id, res)
    async with write_transaction(known.scope, res, call) as write:
        memory = await _alive(write.session, memory_id, res)
        write.check_version(memory.version)
        if await writing.archive(ChangeContext(write, memory.scope), [memory_id]):
            await write.audit("archive", memory.scope, [memory_id])
            memory = await memories.get(write.session, memory_id) or memory
        return await write.answer(memory)


async def restore(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> Memory:
    """The memory, active, or as it was when it was deleted; an active one stays as it is. Raises NotFound,
    PreconditionFailed, or Conflict when the scope has a live memory with this text."""
    async with res.db.read(workspace_id) as session:
        known = await find_also_deleted(session, memory_id)
    if known is None:
        raise NotFound.of("memory")
    async with write_transaction(known.scope, res, call) as write:
        session = write.session
        deleted = await undo.find_deleted(session, memory_id)
        for each in deleted:
            await _bring_back(write, each)
            await withdrawn.take_back(session, each.memory_id, entry=None)
        memory = await _alive(session, memory_id, res)
        write.check_version(memory.version - 1 if deleted else memory.version)
        if deleted:
            await writing.rewrite_contexts(session, memory)
        elif memory.archived:
            await _activate(write, memory)
        if deleted or memory.archived:
            await write.audit("restore", memory.scope, [memory_id])
            memory = await memories.get(session, memory_id) or memory
        return await write.answer(memory)


async def _bring_back(write: Write, deleted: DeletedMemory) -> None:
    """Restores a deleted memory as its history has it. Raises Conflict when the scope has a live memory with this
    text."""
    session, now = write.session, write.res.clock()
    memory_id, text = deleted.memory_id, deleted.text
    await memories.release_expired(session, [content_hash(CleanText(text))], now=now)
    await undo.recreate(session, memory_id, deleted.entry)
    await undo.restore(session, memory_id, deleted.entry, text, generation=write.res.generation, now=now)
    await history.append(session, [Change(memory_id, Action.ADD)], generation=write.res.generation)
    no_vector, _ = await undo.lacks(session, memory_id)
    jobs = writing.follow_up(memory_id, embed=no_vector, enrich=not deleted.is_past)  # its entities may be gone
    await queue.enqueue(session, jobs)


async def _activate(write: Write, archived: Memory) -> None:
    session, memory_id, now = write.session, archived.id, write.res.clock()
    await memories.release_expired(session, [archived.hash], now=now)
    columns: dict[str, Any] = {"archived": False}
    retirement = await undo.find_retirement(session, memory_id)
    if retirement is not None:  # it is true again: its past version goes, which has the id of the entry
        past, columns["t_invalid"] = retirement
        await deletion.delete_memories(session, [past], generation=write.res.generation, withdraws=None)
    await writing.set_columns(ChangeContext(write, archived.scope), memory_id, columns)
    # as fresh as a new one; else the next forgetting run would archive it again
    fresh = {"relevance": 1.0, "salience": MEMORY_STAT.c.base_salience, "last_accessed": now, "stale_at": None}
    await updates.set_stat(session, memory_id, fresh)
    await withdrawn.take_back(session, memory_id, entry=None, everything=True)


async def _alive(session: Session, memory_id: UUID, res: Resources) -> Memory:
    """The memory, locked until the transaction ends."""
    await history.lock(session, [memory_id])
    memory = await memories.get(session, memory_id, alive_at=res.clock())
    if memory is None:
        raise NotFound.of("memory")
    refuse_past(memory)
    return memory


async def forget(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> ForgottenMemory:
    """Deletes one memory; may be repeated. Raises NotFound for an id that was never seen, or PreconditionFailed."""
    async with res.db.read(workspace_id) as session:
        memory = await memories.get(session, memory_id)
    if memory is None:
        return await _find_deleted(workspace_id, memory_id, res, call)
    async with write_transaction(memory.scope, res, call) as write:
        current = await memories.get(write.session, memory_id)
        if current is not None:
            write.check_version(current.version)
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
        for part in in_batches(sorted(set(ids))):
            deleted.update(await deletion.delete_memories(write.session, part, generation=res.generation))
        before = await deletion.find_deleted(write.session, [each for each in ids if each not in deleted])
        if deleted:
            await write.audit("delete", Scope(workspace_id), sorted(deleted))
        outcomes = [ForgottenMemory(memory_id, memory_id in deleted, memory_id in before) for memory_id in ids]
        return await write.answer(outcomes)


def in_batches(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
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

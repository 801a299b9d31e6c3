"""Takes a memory out of searches, and brings back what was archived or deleted."""

from __future__ import annotations

from uuid import UUID

from service.domain.decision import Action
from service.domain.errors import NotFound
from service.domain.memory import Memory
from service.domain.request import Expected, WriteContext, check_version
from service.domain.text import CleanText, content_hash
from service.episodes.statements import withdrawn
from service.memories import reading, write
from service.memories.revise import refuse_past
from service.memories.statements import history, memories, undo, updates
from service.memories.statements.history import Change
from service.memories.statements.undo import DeletedMemory
from service.memories.write import ChangeContext
from service.postgres.engine import Session
from service.postgres.tables import MEMORY_STAT
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit, store_answer, write_transaction


async def find(session: Session, memory_id: UUID) -> Memory | DeletedMemory | None:
    """A memory, deleted or not."""
    known = await memories.get(session, memory_id)
    return known or next(iter(await undo.find_deleted(session, memory_id)), None)


async def archive(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> Memory:
    """The memory, archived; one that is archived already stays as it is. Raises NotFound or PreconditionFailed."""
    known = await reading.get(workspace_id, memory_id, res)
    async with write_transaction(known.scope, res, request) as session:
        memory = await _alive(session, memory_id, res)
        check_version(memory.version, expected)
        if await write.archive(ChangeContext(session, memory.scope, res), memory_id):
            await append_audit(session, "archive", memory.scope, [memory_id], request, res)
            memory = await memories.get(session, memory_id) or memory
        await store_answer(session, memory, request)
    return memory


async def restore(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> Memory:
    """The memory, active, or as it was when it was deleted; an active one stays as it is. Raises NotFound,
    PreconditionFailed, or Conflict when the scope has a live memory with this text."""
    async with res.db.read(workspace_id) as session:
        known = await find(session, memory_id)
    if known is None:
        raise NotFound.of("memory")
    async with write_transaction(known.scope, res, request) as session:
        deleted = await undo.find_deleted(session, memory_id)
        for each in deleted:
            await _bring_back(session, each, res)
            await withdrawn.take_back(session, each.memory_id, entry=None)
        memory = await _alive(session, memory_id, res)
        check_version(memory.version - 1 if deleted else memory.version, expected)
        if deleted:
            await write.rewrite_contexts(session, memory)
        elif memory.archived:
            await _activate(session, memory, res)
        if deleted or memory.archived:
            await append_audit(session, "restore", memory.scope, [memory_id], request, res)
            memory = await memories.get(session, memory_id) or memory
        await store_answer(session, memory, request)
    return memory


async def _bring_back(session: Session, deleted: DeletedMemory, res: Resources) -> None:
    """Restores a deleted memory as its history has it. Raises Conflict when the scope has a live memory with this
    text."""
    memory_id, text, now = deleted.memory_id, deleted.text, res.clock()
    await memories.release_expired(session, [content_hash(CleanText(text))], now=now)
    await undo.recreate(session, memory_id, deleted.entry)
    await undo.restore(session, memory_id, deleted.entry, text, generation=res.generation, now=now)
    await history.append(session, [Change(memory_id, Action.ADD, deleted.scope, None, text)])
    no_vector, _ = await undo.lacks(session, memory_id)
    jobs = write.follow_up(memory_id, embed=no_vector, enrich=not deleted.is_past)  # its entities may be gone
    await queue.enqueue(session, jobs)


async def _activate(session: Session, archived: Memory, res: Resources) -> None:
    memory_id, now = archived.id, res.clock()
    await memories.release_expired(session, [archived.hash], now=now)
    await write.set_columns(ChangeContext(session, archived.scope, res), memory_id, {"archived": False})
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

"""Promotion: makes what was learned in one channel known in all channels.

The memory stays where it is; a copy in `_global` for the same user is connected to it by a PROMOTED_FROM edge, which
also makes promoting twice harmless. A copy is not compared with similar memories: only a live memory of `_global` with
exactly this text is used instead of a copy. The copy is a decision that can be undone, and it is deleted with its
original. The scheduled job promotes a memory once: a copy that somebody undid or deleted does not come back by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Evidence, Reason
from service.domain.draft import EmbeddingStatus
from service.domain.errors import Conflict, NotFound
from service.domain.memory import Memory
from service.domain.relation import Relation, RelationType
from service.domain.request import Call
from service.domain.scope import GLOBAL_CHANNEL
from service.graph.statements import edges
from service.memories import reading, writing
from service.memories.statements import history, memories, near_memories, promotable, sources, updates
from service.memories.statements.history import Change
from service.memories.writing import ChangeContext
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime import pii
from service.runtime.resources import Resources
from service.runtime.statements.audit import Promotion
from service.runtime.transactions import Write, write_transaction


@dataclass(frozen=True, slots=True)
class PromotedMemory:
    """The memory in `_global`, and whether this call made it."""

    memory: Memory
    original_id: UUID
    is_new: bool


async def promote(
    workspace_id: UUID, memory_id: UUID, reason: str | None, res: Resources, call: Call
) -> PromotedMemory:
    """Copies a memory to `_global` and ties the copy to it; the second time the copy is the existing one. Raises
    NotFound, or Conflict for a memory that is archived or in `_global` already."""
    because, _ = await pii.clean(reason, "reason", res) if reason else (None, ())
    memory = await reading.get(workspace_id, memory_id, res)
    if memory.scope.channel == GLOBAL_CHANNEL:
        raise Conflict("The memory is already in _global.", field="id")
    async with write_transaction(memory.scope, res, call) as write:
        ends = await edges.lock_ends(write.session, [memory_id], now=res.clock())
        original = await memories.get(write.session, memory_id)
        if not ends or original is None:
            raise NotFound.of("memory")
        if original.archived:
            raise Conflict("The memory is archived: restore it first.", field="id")
        return await write.answer(await _promote(write, original, reason=because))


async def promote_if_worthy(workspace_id: UUID, memory_id: UUID, res: Resources, call: Call) -> PromotedMemory | None:
    """Promotes a memory if it still meets all conditions of the scheduled job (promotable.list_worthy), and returns the
    copy; else None."""
    async with res.db.read(workspace_id) as session:
        memory = await memories.get(session, memory_id, alive_at=res.clock())
    if memory is None or memory.scope.channel == GLOBAL_CHANNEL:
        return None
    async with write_transaction(memory.scope, res, call) as write:
        await edges.lock_ends(write.session, [memory_id], now=res.clock())
        rules = res.settings.jobs.promoting
        if not await promotable.list_worthy(write.session, rules, now=res.clock(), batch=1, only=memory_id):
            return None
        original = await memories.get(write.session, memory_id)
        assert original is not None, "it is locked"
        return await _promote(write, original, by="job")


async def archive_stale_copy(workspace_id: UUID, copy_id: UUID, res: Resources, call: Call) -> bool:
    """Archives a copy whose originals have all changed since, or are no longer valid; they may then be promoted again.
    False for a copy that was deleted or changed by hand."""
    async with res.db.read(workspace_id) as session:
        copy = await memories.get(session, copy_id)
    if copy is None:
        return False
    async with write_transaction(copy.scope, res, call) as write:
        still = await promotable.list_stale_copies(write.session, now=res.clock(), batch=1, only=copy_id)
        if not still or not await writing.archive(ChangeContext(write, copy.scope), [copy_id]):
            return False
        await promotable.free_originals(write.session, copy_id)
        await write.audit("archive", copy.scope, [copy_id], why="original_changed")
    return True


async def _promote(write: Write, original: Memory, *, reason: str | None = None, by: str = "request") -> PromotedMemory:
    """The memory of `_global`, linked to the original, noted and audited unless it was before."""
    session, res = write.session, write.res
    known = await _find_copy(session, original, res)
    if known is not None:
        return PromotedMemory(known, original.id, is_new=False)
    everywhere = replace(original.scope, channel=GLOBAL_CHANNEL)
    twin = await near_memories.with_hash(session, everywhere, original.hash, now=res.clock())
    existing = await memories.get(session, twin.id) if twin else None
    copy = existing or await _copy(write, original)
    if existing is not None:
        is_copy = await promotable.is_copy(session, existing.id)
        tie = Relation(existing.id, RelationType.PROMOTED_FROM, original.id, properties={edges.COPIED: is_copy})
        await edges.put(session, tie)
    figures = await _figures(session, original)
    # the scheduled job does not promote it again
    await updates.set_stat(session, original.id, {"promoted_at": res.clock()})
    why: dict[str, Any] = {"promotion": figures, "reason": reason, "by": by, "copied": existing is None}
    await write.audit("promote", original.scope, [original.id, copy.id], **why)
    return PromotedMemory(copy, original.id, is_new=existing is None)


async def _find_copy(session: Session, original: Memory, res: Resources) -> Memory | None:
    """The copy of an earlier promotion."""
    for copy_id in await edges.copies_of(session, original.id):
        copy = await memories.get(session, copy_id, alive_at=res.clock())
        if copy is not None and not copy.archived:
            return copy
    return None


async def _copy(write: Write, original: Memory) -> Memory:
    """The copy, with its edge, its history and the jobs that it needs."""
    session, res = write.session, write.res
    new_id, now = uuid7(), res.clock()
    await memories.release_expired(session, [original.hash], now=now)
    await updates.copy_to_global(session, original.id, new_id, generation=res.generation, now=now)
    await sources.copy(session, original.id, new_id)
    made = Relation(new_id, RelationType.PROMOTED_FROM, original.id, properties={edges.COPIED: True})
    await edges.put(session, made)
    copy = await memories.get(session, new_id)
    assert copy is not None, "it has just been written"
    change = Change(new_id, Action.ADD)
    await history.append(session, [change], generation=res.generation)
    evidence = Evidence("rules", "promotion", "ADD", Reason.PROMOTED, ())
    await ChangeContext(write, copy.scope, evidence).keep_evidence(new_id, Action.ADD, change.id)
    embed = copy.embedding_status is not EmbeddingStatus.STORED
    await queue.enqueue(session, writing.follow_up(new_id, embed=embed))
    return copy


async def _figures(session: Session, original: Memory) -> Promotion:
    """The figures that justify the promotion."""
    seen = await promotable.count_seen(session, original.id)
    left = original.current_confidence
    confidence = original.kind.confidence if left is None else left
    return Promotion(original.scope.channel, confidence, original.access_count, seen)

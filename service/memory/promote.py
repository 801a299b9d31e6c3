"""Promotion: what was learned in one channel becomes known in all of them, or to the whole workspace.

The memory stays where it is; a copy in `_global` for the same user leads back to it by a PROMOTED_FROM edge, which also
makes promoting twice harmless. A copy is not compared with what lies near it: only a live memory of `_global` with
exactly this text is taken instead of a second one.

What is shared with the workspace knows nothing of where it comes from: no edge, no turns, no words of its neighbours.
It is a memory of its own, and outlives the original.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.db import writes
from service.db.engine import Session
from service.db.graph import edges
from service.db.jobs import queue
from service.db.memories import history, memories, sources, updates
from service.db.memories.history import Change
from service.db.search import deduplication
from service.db.writes import Promotion
from service.domain.decision import Action
from service.domain.draft import EmbeddingStatus
from service.domain.memory import Memory
from service.domain.relation import Relation, RelationType
from service.domain.request import WriteContext
from service.domain.revision import Expected
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.errors import Conflict
from service.memory import write
from service.memory.transactions import append_audit, check, missing, store_answer, write_transaction
from service.pipeline import pii
from service.resources import Resources


@dataclass(frozen=True, slots=True)
class PromotedMemory:
    """The memory in `_global`, and whether this call made it."""

    memory: Memory
    original_id: UUID
    is_new: bool


async def promote(
    workspace_id: UUID,
    memory_id: UUID,
    reason: str | None,
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> PromotedMemory:
    """Raises NotFound, PreconditionFailed, or Conflict for a memory that is archived or in `_global` already."""
    because, _ = await pii.clean(reason, "reason", res) if reason else (None, ())
    async with res.db.read(workspace_id) as session:
        memory = await memories.get(session, workspace_id, memory_id, alive_at=res.clock())
    if memory is None:
        raise missing()
    if memory.scope.channel == GLOBAL_CHANNEL:
        raise Conflict("The memory is in _global already.", field="id")
    async with write_transaction(memory.scope, res, request) as session:
        original = await _locked(session, workspace_id, memory_id, res)
        check(original.version, expected)
        if original.archived:
            raise Conflict("The memory is archived: restore it first.", field="id")
        found = await _known(session, original, res)
        if found is None:
            found = PromotedMemory(await _copy(session, original, res), memory_id, is_new=True)
            await _note(session, original, found.memory, because, request, res)
        await store_answer(session, workspace_id, found, request)
    return found


async def share(
    workspace_id: UUID,
    memory_id: UUID,
    reason: str | None,
    res: Resources,
    request: WriteContext,
    *,
    expected: Expected | None = None,
) -> PromotedMemory:
    """The copy for the whole workspace. Raises Forbidden, NotFound, PreconditionFailed, or Conflict for a memory that
    is archived or shared already."""
    because, _ = await pii.clean(reason, "reason", res) if reason else (None, ())
    everyone = Scope(workspace_id)
    async with write_transaction(everyone, res, request) as session:
        original = await _locked(session, workspace_id, memory_id, res)
        if original.scope.is_shared:
            raise Conflict("The memory is shared already.", field="id")
        check(original.version, expected)
        if original.archived:
            raise Conflict("The memory is archived: restore it first.", field="id")
        twin = await deduplication.with_hash(session, everyone, original.hash, now=res.clock())
        copy = await memories.get(session, workspace_id, twin.id) if twin else None
        is_new = copy is None
        found = PromotedMemory(copy or await _shared_copy(session, original, res), memory_id, is_new)
        if is_new:
            await _note(session, original, found.memory, because, request, res, shared=True)
        await store_answer(session, workspace_id, found, request)
    return found


async def _locked(session: Session, workspace_id: UUID, memory_id: UUID, res: Resources) -> Memory:
    """The memory, with the lock of an end of edges."""
    ends = await edges.lock_ends(session, workspace_id, [memory_id], now=res.clock())
    original = await memories.get(session, workspace_id, memory_id)
    if not ends or original is None:
        raise missing()
    return original


async def _known(session: Session, original: Memory, res: Resources) -> PromotedMemory | None:
    """The copy of an earlier promotion, or a memory of `_global` that says the same, with the edge it lacked."""
    workspace_id = original.scope.workspace_id
    for copy_id in await edges.sources_of(session, workspace_id, RelationType.PROMOTED_FROM, target_id=original.id):
        copy = await memories.get(session, workspace_id, copy_id, alive_at=res.clock())
        if copy is not None and not copy.archived:
            return PromotedMemory(copy, original.id, is_new=False)
    everywhere = replace(original.scope, channel=GLOBAL_CHANNEL)
    twin = await deduplication.with_hash(session, everywhere, original.hash, now=res.clock())
    if twin is None:
        return None
    await edges.put(session, workspace_id, Relation(twin.id, RelationType.PROMOTED_FROM, original.id))
    found = await memories.get(session, workspace_id, twin.id)
    assert found is not None, "the scope is locked"
    return PromotedMemory(found, original.id, is_new=False)


async def _copy(session: Session, original: Memory, res: Resources) -> Memory:
    workspace_id, new_id, now = original.scope.workspace_id, uuid7(), res.clock()
    await writes.release_expired(session, workspace_id, [original.hash], now=now)
    await updates.copy_to_global(session, workspace_id, original.id, new_id, generation=res.generation, now=now)
    await sources.copy(session, workspace_id, original.id, new_id)
    await edges.put(session, workspace_id, Relation(new_id, RelationType.PROMOTED_FROM, original.id))
    return await _written(session, workspace_id, new_id, res)


async def _shared_copy(session: Session, original: Memory, res: Resources) -> Memory:
    workspace_id, new_id, now = original.scope.workspace_id, uuid7(), res.clock()
    await writes.release_expired(session, workspace_id, [original.hash], now=now)
    await updates.copy_to_everyone(session, workspace_id, original.id, new_id, generation=res.generation, now=now)
    return await _written(session, workspace_id, new_id, res)


async def _written(session: Session, workspace_id: UUID, new_id: UUID, res: Resources) -> Memory:
    """The copy, with its history and the jobs that it needs."""
    copy = await memories.get(session, workspace_id, new_id)
    assert copy is not None, "it has just been written"
    await history.append(session, workspace_id, [Change(new_id, Action.ADD, copy.scope, None, copy.text)])
    embed = copy.embedding_status is not EmbeddingStatus.STORED
    await queue.enqueue(session, workspace_id, write.follow_up(new_id, res, embed=embed))
    return copy


async def _note(
    session: Session,
    original: Memory,
    copy: Memory,
    reason: str | None,
    request: WriteContext,
    res: Resources,
    *,
    shared: bool = False,
) -> None:
    seen = await sources.count_conversations(session, original.scope.workspace_id, original.id)
    confidence = original.kind.confidence if original.fact_confidence is None else original.fact_confidence
    promotion = Promotion(original.scope.channel, confidence, original.access_count, seen)
    ids = [original.id, copy.id]
    details: dict[str, Any] = {"reason": reason, "by": "request", **({"shared": True} if shared else {})}
    await append_audit(session, "promote", original.scope, ids, request, res, promotion=promotion, **details)

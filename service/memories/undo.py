"""Undo of a decision, with all that was decided together with it.

The last edit is undone first, and only if every memory it changed is still as it left it. The memory is restored as it
was: text, vector, validity, tags, sources, entities and edges. An undo has its own entries in the history, and may be
repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from service.domain.decision import Action, StoredDecision
from service.domain.errors import Conflict, NotFound
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.text import CleanText, content_hash
from service.episodes.statements import withdrawn
from service.memories import writing
from service.memories.statements import decisions, deletion, history, memories, reviews, undo
from service.memories.statements.history import Change
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, scopes_transaction

ERASED = "The memory has been erased and cannot be restored."
CHANGED = "The memory has changed since this decision: undo the later change first, or change it by hand."
NOTHING = "This decision changed nothing, so there is nothing to undo."


@dataclass(frozen=True, slots=True)
class UndoneDecision:
    """The decisions made together, the memories they changed, as they are now, and the ids of those that are gone."""

    decision: StoredDecision
    together: tuple[UUID, ...]
    memories: tuple[Memory, ...]
    removed: tuple[UUID, ...]


async def take_back(workspace_id: UUID, decision_id: UUID, res: Resources, call: Call) -> UndoneDecision:
    """Takes a decision back, with those made together with it. Raises NotFound, or Conflict with the reason."""
    async with res.db.read(workspace_id) as session:
        decision = await decisions.get(session, decision_id)
        together = await decisions.of_ruling(session, decision) if decision else []
    if decision is None:
        raise NotFound.of("decision")
    scopes = {decision.scope, *(stored_decision.scope for stored_decision in together)}
    async with scopes_transaction(workspace_id, scopes, res, call, owner=decision.scope) as write:
        session = write.session
        await undo.lock(session, decision_id, decision.ruling_id)
        group = await decisions.of_ruling(session, decision)
        if not group:
            raise NotFound.of("decision")  # purged in the meantime
        ours = [
            stored_decision
            for stored_decision in group
            if stored_decision.history_id is not None and stored_decision.memory_id is not None
        ]
        open_ones = [stored_decision for stored_decision in ours if stored_decision.undone_at is None]
        if open_ones:
            await _take_back(write, open_ones)
            ids = sorted({stored_decision.memory_id for stored_decision in open_ones if stored_decision.memory_id})
            await write.audit("undo", decision.scope, ids, decision_id=str(decision_id))
        elif not ours:
            raise Conflict(NOTHING, field="id")
        return await write.answer(await _answer(session, decision_id, ours))


async def _take_back(write: Write, group: Sequence[StoredDecision]) -> None:
    session, res = write.session, write.res
    await history.lock(session, [decision.memory_id for decision in group if decision.memory_id])
    now = res.clock()
    for taken in reversed(group):
        memory_id, changed_by, before = taken.memory_id, taken.history_id, taken.before
        assert memory_id is not None, "only changes are taken back"
        assert changed_by is not None, "only changes are taken back"
        was = await history.snapshot(session, memory_id, generation=res.generation)
        if was is None or (taken.event != Action.ADD and before is None):  # deleted, or blanked by a purge
            raise Conflict(ERASED, field="id")
        if not await undo.is_current(session, memory_id, changed_by):
            raise Conflict(CHANGED, field="id")
        entry = None
        if taken.event == Action.ADD:
            going = [memory_id]
            await deletion.delete_memories(session, going, generation=res.generation, withdraws=None)
        else:
            entry = await _restore(write, taken, was, now)
        await withdrawn.take_back(session, memory_id, entry=changed_by)
        await undo.mark_undone(session, taken.id, entry, now=now)


async def _restore(write: Write, taken: StoredDecision, was: history.Snapshot, now: datetime) -> UUID:
    """Puts the memory back as it was before the decision; returns the id of the history entry."""
    session, generation = write.session, write.res.generation
    assert taken.memory_id is not None, "only changes are taken back"
    assert taken.history_id is not None, "only changes are taken back"
    then, text_now = taken.before or "", str(was.before["content"])
    await memories.release_expired(session, [content_hash(CleanText(then))], now=now)
    text = then if then != text_now else None
    await undo.restore(session, taken.memory_id, taken.history_id, text, generation=generation, now=now)
    # the past version that the decision kept has the id of its entry
    await deletion.delete_memories(session, [taken.history_id], generation=generation, withdraws=None)
    await reviews.reopen(session, taken.memory_id)
    memory = await memories.get(session, taken.memory_id)
    assert memory is not None, "the row is locked"
    change = Change(taken.memory_id, Action.UPDATE, memory.scope, text_now, then, was)
    await history.append(session, [change])
    # jobs queued before the decision were skipped, because the text had changed
    no_vector, not_enriched = await undo.lacks(session, taken.memory_id)
    jobs = writing.follow_up(taken.memory_id, embed=no_vector, enrich=not_enriched)
    await queue.enqueue(session, jobs)
    return change.id


async def _answer(session: Session, decision_id: UUID, group: Sequence[StoredDecision]) -> UndoneDecision:
    decision = await decisions.get(session, decision_id)
    assert decision is not None, "it is locked"
    ids = [stored_decision.memory_id for stored_decision in group if stored_decision.memory_id is not None]
    by_id = await memories.get_many(session, ids)
    return UndoneDecision(
        decision,
        tuple(stored_decision.id for stored_decision in group),
        tuple(by_id[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in by_id),
        tuple(memory_id for memory_id in dict.fromkeys(ids) if memory_id not in by_id),
    )

"""What a person does about decisions: accepts or rejects a flagged fact, or undoes a decision.

An accepted fact becomes valid, and the memories that it contradicts are archived. That is a separate decision, so it
can be undone. A rejected fact is removed.

An undo takes back all that was decided together, the last edit first, and only if every memory it changed is still as
it left it. The memory is restored as it was: text, vector, validity, tags, sources, entities and edges. An undo has its
own entries in the history, and may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from service.conversations.statements import withdrawn
from service.domain.decision import Action, Evidence
from service.domain.errors import Conflict, NotFound
from service.domain.memory import Memory
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.domain.text import CleanText, content_hash
from service.domain.version import begins
from service.memories import writing
from service.memories.statements import decisions, deletion, history, memories, undo
from service.memories.statements.decisions import Review
from service.memories.statements.history import Change
from service.memories.values import StoredDecision
from service.memories.writing import ChangeContext
from service.postgres import direct
from service.postgres.engine import Session
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import Write, scopes_transaction, write_transaction

Resolved = Literal["accepted", "rejected"]
OPERATION: Mapping[Resolved, Operation] = {"accepted": "review_accepted", "rejected": "review_rejected"}

ERASED = "The memory has been erased and cannot be restored."
CHANGED = "The memory has changed since this decision: undo the later change first, or change it by hand."
NOTHING = "This decision changed nothing, so there is nothing to undo."


@dataclass(frozen=True, slots=True)
class ReviewWithMemories:
    """A review with the waiting memory (None if deleted) and those that it contradicts, as they are now."""

    review: Review
    memory: Memory | None
    contradicts: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class UndoneDecision:
    """The decisions made together, the memories they changed, as they are now, and the ids of those that are gone."""

    decision: StoredDecision
    together: tuple[UUID, ...]
    memories: tuple[Memory, ...]
    removed: tuple[UUID, ...]


async def pending(
    scope: Scope, res: Resources, *, after: tuple[datetime, UUID] | None, limit: int
) -> tuple[list[ReviewWithMemories], bool]:
    """The pending reviews of the scope after a place, oldest first, about as many as fit a response; and whether more
    follow."""
    async with res.db.read(scope.workspace_id) as session:
        waiting = await decisions.pending_reviews(session, scope, after=after, limit=limit + 1, now=res.clock())
        by_id = {review.id: review for review in waiting[:limit]}

        async def read(ids: Sequence[UUID]) -> dict[UUID, ReviewWithMemories]:
            return dict(zip(ids, await _with_memories(session, [by_id[review_id] for review_id in ids]), strict=True))

        reviews, count = await direct.page_of_ids(list(by_id), read)
    return list(reviews.values()), count < len(waiting)


async def _with_memories(session: Session, waiting: list[Review]) -> list[ReviewWithMemories]:
    """The reviews with their memories."""
    ids = {memory_id for review in waiting for memory_id in (review.memory_id, *review.contradicts)}
    by_id = await memories.get_many(session, sorted(ids))
    return [
        ReviewWithMemories(
            review,
            by_id.get(review.memory_id),
            tuple(by_id[memory_id] for memory_id in review.contradicts if memory_id in by_id),
        )
        for review in waiting
    ]


async def resolve(
    workspace_id: UUID, review_id: UUID, wanted: Resolved, res: Resources, call: Call
) -> ReviewWithMemories:
    """Accepts the flagged memory, or removes it; may be repeated. Raises NotFound, or Conflict when the opposite was
    decided before or the memory was deleted."""
    async with res.db.read(workspace_id) as session:
        review = await decisions.get_review(session, review_id)
        waiting = await memories.get(session, review.memory_id) if review else None
        if review is None:
            raise NotFound.of("review")
        if review.state == wanted:
            return (await _with_memories(session, [review]))[0]
    if review.state != "pending":
        raise Conflict(f"This review was already {review.state}.", field="id")
    if waiting is None:
        raise NotFound.of("review")
    async with write_transaction(waiting.scope, res, call) as write:
        current = await decisions.get_review(write.session, review_id, lock=True)
        if current is None:
            raise NotFound.of("review")
        if current.state not in ("pending", wanted):
            raise Conflict(f"This review was already {current.state}.", field="id")
        if current.state == "pending":
            current = await _resolve(write, waiting, current, wanted)
            ids = [current.memory_id, *current.contradicts]
            await write.audit(OPERATION[wanted], waiting.scope, ids, review_id=str(review_id))
        return await write.answer((await _with_memories(write.session, [current]))[0])


async def _resolve(write: Write, waiting: Memory, review: Review, wanted: Resolved) -> Review:
    session, now = write.session, write.res.clock()
    await history.lock(session, [waiting.id, *review.contradicts])
    await decisions.resolve_review(session, review.id, wanted, now=now)
    if wanted == "rejected":
        await deletion.delete_memories(session, [waiting.id], generation=write.res.generation)
    else:
        await _accept(write, waiting, review)
    return replace(review, state=wanted, resolved_at=now)


async def _accept(write: Write, waiting: Memory, review: Review) -> None:
    """Archives what the memory contradicts, unless it was deleted or archived since, and makes the memory valid."""
    session, now = write.session, write.res.clock()
    known = await memories.get_many(session, review.contradicts, alive_at=now)
    live = [memory.id for memory in known.values() if not memory.archived]
    evidence = Evidence("review", "person", "accept", "a person accepted it", tuple(sorted(live)))
    context = ChangeContext(write, waiting.scope, evidence, uuid7())
    at = begins(waiting.timestamp, waiting.t_valid, waiting.t_invalid)
    for memory_id in live:
        await writing.retire(context, memory_id, at=at)
    await memories.release_expired(session, [waiting.hash], now=now)
    await writing.set_columns(context, waiting.id, {"archived": False, "review_status": None})


async def undo_decision(workspace_id: UUID, decision_id: UUID, res: Resources, call: Call) -> UndoneDecision:
    """Takes a decision back, with those made together with it. Raises NotFound, or Conflict with the reason."""
    async with res.db.read(workspace_id) as session:
        together = await decisions.made_together(session, decision_id)
    owner = _scope_of(decision_id, together)
    async with scopes_transaction(
        workspace_id, {decision.scope for decision in together}, res, call, owner=owner
    ) as write:
        session = write.session
        together = await decisions.made_together(session, decision_id, lock=True)
        _scope_of(decision_id, together)  # they may have been purged in the meantime
        changes = [decision for decision in together if decision.history_id and decision.memory_id]
        if not changes:
            raise Conflict(NOTHING, field="id")
        left = [decision for decision in changes if decision.undone_at is None]
        if left:
            await _undo(write, left)
            ids = sorted({decision.memory_id for decision in left if decision.memory_id})
            await write.audit("undo", owner, ids, decision_id=str(decision_id))
            together = await decisions.made_together(session, decision_id)
        return await write.answer(await _describe(session, decision_id, together))


def _scope_of(decision_id: UUID, together: Sequence[StoredDecision]) -> Scope:
    for decision in together:
        if decision.id == decision_id:
            return decision.scope
    raise NotFound.of("decision")


async def _undo(write: Write, changes: Sequence[StoredDecision]) -> None:
    session, res = write.session, write.res
    await history.lock(session, [change.memory_id for change in changes if change.memory_id])
    now = res.clock()
    for change in reversed(changes):
        memory_id, entry_id = change.memory_id, change.history_id
        assert memory_id is not None, "only changes are undone"
        assert entry_id is not None, "only changes are undone"
        memory = await memories.get(session, memory_id)
        if memory is None or (change.event != Action.ADD and change.before is None):  # deleted, or blanked by a purge
            raise Conflict(ERASED, field="id")
        if not await undo.is_current(session, memory_id, entry_id):
            raise Conflict(CHANGED, field="id")
        undone_by = None
        if change.event == Action.ADD:
            await deletion.delete_memories(session, [memory_id], generation=res.generation, withdraws=None)
        else:
            undone_by = await _restore(write, memory, entry_id, change.before or "", now)
        await withdrawn.take_back(session, memory_id, entry=entry_id)
        await decisions.mark_undone(session, change.id, undone_by, now=now)


async def _restore(write: Write, memory: Memory, entry_id: UUID, text_before: str, now: datetime) -> UUID:
    """Puts the memory back as it was before this entry of its history; returns the id of the new entry."""
    session, generation, memory_id = write.session, write.res.generation, memory.id
    entry = Change(memory_id, Action.UPDATE, text_before)
    await history.append(session, [entry], generation=generation)
    await memories.release_expired(session, [content_hash(CleanText(text_before))], now=now)
    changed = text_before if text_before != memory.text else None
    await undo.restore(session, memory_id, entry_id, changed, generation=generation, now=now)
    # the past version that the decision kept has the id of its entry
    await deletion.delete_memories(session, [entry_id], generation=generation, withdraws=None)
    await decisions.reopen_review(session, memory_id)
    # jobs queued before the decision were skipped, because the text had changed
    no_vector, not_enriched = await undo.lacks(session, memory_id)
    await queue.enqueue(session, writing.follow_up(memory_id, embed=no_vector, enrich=not_enriched))
    return entry.id


async def _describe(session: Session, decision_id: UUID, together: Sequence[StoredDecision]) -> UndoneDecision:
    changes = [decision for decision in together if decision.history_id and decision.memory_id]
    ids = list(dict.fromkeys(change.memory_id for change in changes if change.memory_id))
    by_id = await memories.get_many(session, ids)
    return UndoneDecision(
        next(decision for decision in together if decision.id == decision_id),
        tuple(change.id for change in changes),
        tuple(by_id[memory_id] for memory_id in ids if memory_id in by_id),
        tuple(memory_id for memory_id in ids if memory_id not in by_id),
    )

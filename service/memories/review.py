"""Reviews: a person accepts or rejects a new fact that contradicts what is known.

An accepted fact does what the curator wanted: it replaces the memory it contradicts, under the id of that memory. That
is a separate decision, so it can be undone. A rejected fact is removed.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain import sizes
from service.domain.decision import Action, Evidence
from service.domain.draft import EmbeddingStatus
from service.domain.errors import Conflict, NotFound
from service.domain.memory import Memory
from service.domain.request import Operation, WriteContext
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.domain.version import Expected, begins, check_version
from service.memories import write
from service.memories.statements import decisions, deletion, history, memories, reviews, updates
from service.memories.statements.decisions import NewDecision
from service.memories.statements.reviews import Review
from service.postgres import direct
from service.postgres.engine import Session
from service.queue import queue
from service.runtime.resources import Resources
from service.runtime.transactions import append_audit, store_answer, write_transaction

GONE = "The memory under review no longer exists."

Resolved = Literal["accepted", "rejected"]
OPERATION: Mapping[Resolved, Operation] = {"accepted": "review_accepted", "rejected": "review_rejected"}


@dataclass(frozen=True, slots=True)
class ReviewWithMemories:
    """A review with the waiting memory (None if deleted) and those that it contradicts, as they are now."""

    review: Review
    memory: Memory | None
    contradicts: tuple[Memory, ...]

    @property
    def version(self) -> int:
        """An opaque value that changes whenever one of the memories is changed or deleted."""
        involved = [self.memory, *self.contradicts] if self.memory else self.contradicts
        return zlib.crc32(" ".join(f"{memory.id}:{memory.version}" for memory in involved).encode())


async def pending(
    scope: Scope, res: Resources, *, after: tuple[datetime, UUID] | None, limit: int
) -> tuple[list[ReviewWithMemories], bool]:
    """The pending reviews of the scope after a place, oldest first, about as many as fit a response; and whether more
    follow."""
    read: list[ReviewWithMemories] = []
    async with res.db.read(scope.workspace_id) as session:
        waiting = await reviews.page(session, scope, after=after, limit=limit + 1, now=res.clock())
        for at in range(0, min(limit, len(waiting)), direct.PIECE):
            read += await with_memories(session, scope.workspace_id, waiting[at : min(at + direct.PIECE, limit)])
            if sizes.weight(read) >= sizes.PAGE_BYTES:
                break
    return read, len(read) < len(waiting)


async def with_memories(session: Session, workspace_id: UUID, waiting: list[Review]) -> list[ReviewWithMemories]:
    """The reviews with their memories."""
    ids = {review.memory_id for review in waiting} | {change.target_id for each in waiting for change in each.changes}
    by_id = await memories.get_many(session, workspace_id, sorted(ids))
    return [
        ReviewWithMemories(
            review,
            by_id.get(review.memory_id),
            tuple(by_id[change.target_id] for change in review.changes if change.target_id in by_id),
        )
        for review in waiting
    ]


async def accept(
    workspace_id: UUID, review_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> ReviewWithMemories:
    """Accepts the flagged memory. Raises NotFound, Conflict when it was rejected before or deleted, or
    PreconditionFailed when it or what it contradicts is not as `expected`."""
    return await _resolve(workspace_id, review_id, "accepted", res, request, expected)


async def reject(
    workspace_id: UUID, review_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> ReviewWithMemories:
    """Removes the flagged memory; the memory it contradicts stays. Raises NotFound, Conflict when it was accepted, or
    PreconditionFailed."""
    return await _resolve(workspace_id, review_id, "rejected", res, request, expected)


async def _resolve(
    workspace_id: UUID,
    review_id: UUID,
    wanted: Resolved,
    res: Resources,
    request: WriteContext,
    expected: Expected | None,
) -> ReviewWithMemories:
    for _ in range(2):  # once more if another request has resolved it by now
        async with res.db.read(workspace_id) as session:
            review = await reviews.get(session, workspace_id, review_id)
            pending = await memories.get(session, workspace_id, review.memory_id) if review else None
        if review is None:
            raise NotFound("There is no review with this id.", field="id")
        if review.state == wanted:
            return await _as_it_is(workspace_id, review, res)
        if review.state != "pending":
            raise Conflict(f"This review was already {review.state}.", field="id")
        if pending is not None:
            with contextlib.suppress(_ResolvedMeanwhile):
                return await _resolve_pending(pending, review_id, wanted, res, request, expected)
    raise Conflict(GONE, field="id")


class _ResolvedMeanwhile(Exception):
    """Another request resolved the review since it was read."""


async def _resolve_pending(
    pending: Memory,
    review_id: UUID,
    wanted: Resolved,
    res: Resources,
    request: WriteContext,
    expected: Expected | None,
) -> ReviewWithMemories:
    workspace_id = pending.scope.workspace_id
    async with write_transaction(pending.scope, res, request) as session:
        now = await reviews.get(session, workspace_id, review_id, lock=True)
        if now is None or now.state != "pending":
            raise _ResolvedMeanwhile
        await _lock(session, workspace_id, now)
        if expected is not None:
            check_version((await with_memories(session, workspace_id, [now]))[0].version, expected)
        await reviews.resolve(session, workspace_id, review_id, wanted, now=res.clock())
        if wanted == "accepted":
            await _carry_out(session, pending, now, res)
        else:
            await deletion.delete_memories(session, workspace_id, [pending.id], generation=res.generation)
        ids = [now.memory_id, *(change.target_id for change in now.changes)]
        await append_audit(session, OPERATION[wanted], pending.scope, ids, request, res, review_id=str(review_id))
        after = replace(now, state=wanted, resolved_at=res.clock())
        answer = (await with_memories(session, workspace_id, [after]))[0]
        await store_answer(session, workspace_id, answer, request)
    return answer


async def _as_it_is(workspace_id: UUID, review: Review, res: Resources) -> ReviewWithMemories:
    async with res.db.read(workspace_id) as session:
        return (await with_memories(session, workspace_id, [review]))[0]


async def _lock(session: Session, workspace_id: UUID, review: Review) -> None:
    ids = [review.memory_id, *(change.target_id for change in review.changes)]
    await history.lock(session, workspace_id, ids)


async def _carry_out(session: Session, pending: Memory, review: Review, res: Resources) -> None:
    """Makes the change in place. If the contradicted memory was deleted or archived since, the fact simply becomes
    valid."""
    workspace_id = pending.scope.workspace_id
    contradicted = await memories.get_many(
        session, workspace_id, [change.target_id for change in review.changes], alive_at=res.clock()
    )
    live = {memory.id for memory in contradicted.values() if not memory.archived}
    evidence = Evidence("review", "person", "accept", "a person accepted it", tuple(sorted(live)))
    ruling_id = uuid7()
    for change in review.changes:
        if change.verb == "DELETE" and change.target_id in live:
            await write.retire(
                session, pending.scope, change.target_id, evidence, res, at=_start(pending), ruling_id=ruling_id
            )
    place = next((change.target_id for change in review.changes if change.verb == "UPDATE"), None)
    if place in live and place is not None:
        await _take_place(session, pending, place, evidence, ruling_id, res)
    else:
        await _let_count(session, pending, evidence, ruling_id, res)


async def _take_place(
    session: Session, pending: Memory, target: UUID, evidence: Evidence, ruling_id: UUID, res: Resources
) -> None:
    workspace_id, now = pending.scope.workspace_id, res.clock()
    was = await history.snapshot(session, workspace_id, target, generation=res.generation)
    old = await memories.get(session, workspace_id, target)
    if was is None or old is None:
        raise Conflict("The memory to update no longer exists.")
    await memories.release_expired(session, workspace_id, [pending.hash], now=now)
    change_id, start = uuid7(), _start(pending)
    kept = await write.keep_past(session, workspace_id, target, change_id, start, res)
    since = pending.t_valid or (write.holds_since(start, pending.t_invalid, res) if kept else None)
    await updates.set_columns(session, workspace_id, target, {**_values(old, pending), "t_valid": since}, now=now)
    await updates.replace_vector(session, old.scope, target, None, kind="text", generation=res.generation)
    await write.withdraw_text(session, old, pending.text, change_id)
    await reviews.hand_over(session, workspace_id, pending.id, target)
    await deletion.delete_memories(session, workspace_id, [pending.id], generation=res.generation, withdraws=None)
    deleted = await history.last(session, workspace_id, pending.id)
    moved = replace(evidence, verdict=decisions.TAKEN_OVER, reason="its text is another memory's now", shown=(target,))
    removed = NewDecision(pending.id, moved, pending.scope, Action.DELETE, deleted, ruling_id)
    await decisions.append(session, workspace_id, [removed])
    text, why = pending.text, evidence
    await write.record(
        session, old.scope, target, old.text, text, was, evidence=why, ruling_id=ruling_id, entry=change_id
    )
    embed = pending.embedding_status is not EmbeddingStatus.STORED
    await queue.enqueue(session, workspace_id, write.follow_up(target, embed=embed))


def _start(pending: Memory) -> datetime:
    return begins(pending.timestamp, pending.t_valid, pending.t_invalid)


def _values(old: Memory, new: Memory) -> dict[str, Any]:
    """The values that an update takes over; tags, categories and metadata are merged, as in every update."""
    return {
        **updates.text_columns(CleanText(new.text)),
        "timestamp": new.timestamp,
        "said_at": None,
        "t_invalid": new.t_invalid,
        **memories.annotation_values(new),
        **updates.unite_columns(old, new),
    }


async def _let_count(session: Session, pending: Memory, evidence: Evidence, ruling_id: UUID, res: Resources) -> None:
    workspace_id, now = pending.scope.workspace_id, res.clock()
    was = await history.snapshot(session, workspace_id, pending.id, generation=res.generation)
    if was is None:
        raise Conflict(GONE, field="id")
    await memories.release_expired(session, workspace_id, [pending.hash], now=now)
    await updates.set_columns(session, workspace_id, pending.id, {"archived": False, "review_status": None}, now=now)
    await write.record(
        session, pending.scope, pending.id, pending.text, pending.text, was, evidence=evidence, ruling_id=ruling_id
    )

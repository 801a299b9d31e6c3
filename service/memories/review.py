"""Reviews: a person accepts or rejects a new fact that contradicts what is known.

An accepted fact becomes valid, and the memories that it contradicts are archived. That is a separate decision, so it
can be undone. A rejected fact is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain import sizes
from service.domain.decision import Evidence
from service.domain.errors import Conflict, NotFound
from service.domain.memory import Memory
from service.domain.request import Call, Operation
from service.domain.scope import Scope
from service.domain.version import begins
from service.memories import writing
from service.memories.statements import deletion, history, memories, reviews
from service.memories.statements.reviews import Review
from service.memories.writing import ChangeContext
from service.postgres import direct
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.transactions import Write, write_transaction

Resolved = Literal["accepted", "rejected"]
OPERATION: Mapping[Resolved, Operation] = {"accepted": "review_accepted", "rejected": "review_rejected"}


@dataclass(frozen=True, slots=True)
class ReviewWithMemories:
    """A review with the waiting memory (None if deleted) and those that it contradicts, as they are now."""

    review: Review
    memory: Memory | None
    contradicts: tuple[Memory, ...]


async def pending(
    scope: Scope, res: Resources, *, after: tuple[datetime, UUID] | None, limit: int
) -> tuple[list[ReviewWithMemories], bool]:
    """The pending reviews of the scope after a place, oldest first, about as many as fit a response; and whether more
    follow."""
    read: list[ReviewWithMemories] = []
    async with res.db.read(scope.workspace_id) as session:
        waiting = await reviews.page(session, scope, after=after, limit=limit + 1, now=res.clock())
        for at in range(0, min(limit, len(waiting)), direct.PIECE):
            read += await with_memories(session, waiting[at : min(at + direct.PIECE, limit)])
            if sizes.weight(read) >= sizes.PAGE_BYTES:
                break
    return read, len(read) < len(waiting)


async def with_memories(session: Session, waiting: list[Review]) -> list[ReviewWithMemories]:
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
        review = await reviews.get(session, review_id)
        waiting = await memories.get(session, review.memory_id) if review else None
        if review is None:
            raise NotFound.of("review")
        if review.state == wanted:
            return (await with_memories(session, [review]))[0]
    if review.state != "pending":
        raise Conflict(f"This review was already {review.state}.", field="id")
    if waiting is None:
        raise NotFound.of("review")
    async with write_transaction(waiting.scope, res, call) as write:
        current = await reviews.get(write.session, review_id, lock=True)
        if current is None:
            raise NotFound.of("review")
        if current.state not in ("pending", wanted):
            raise Conflict(f"This review was already {current.state}.", field="id")
        if current.state == "pending":
            current = await _resolve(write, waiting, current, wanted)
            ids = [current.memory_id, *current.contradicts]
            await write.audit(OPERATION[wanted], waiting.scope, ids, review_id=str(review_id))
        return await write.answer((await with_memories(write.session, [current]))[0])


async def _resolve(write: Write, waiting: Memory, review: Review, wanted: Resolved) -> Review:
    session, now = write.session, write.res.clock()
    await history.lock(session, [waiting.id, *review.contradicts])
    await reviews.resolve(session, review.id, wanted, now=now)
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

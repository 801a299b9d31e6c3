"""Reviews: memories that are flagged until a person accepts or rejects them.

A flagged memory is archived and has a `review_status`: the first keeps it out of deduplication, the second out of every
read. Its row in `review` names the memories that accepting it would archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import insert, select, text, update
from uuid_utils.compat import uuid7

from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, REVIEW

ReviewState = Literal["pending", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class Review:
    id: UUID
    memory_id: UUID
    contradicts: tuple[UUID, ...]
    state: ReviewState
    created_at: datetime
    resolved_at: datetime | None


_review = direct.reader(Review, contradicts=lambda row: tuple(row.contradicts))


async def flag(session: Session, memory_id: UUID, contradicts: Sequence[UUID]) -> None:
    """Archives and flags a new memory, with a review."""
    conditions = MEMORY.c.workspace_id == session.workspace_id, MEMORY.c.id == memory_id
    await session.execute(update(MEMORY).where(*conditions).values(archived=True, review_status="flagged"))
    row = {
        "workspace_id": session.workspace_id,
        "id": uuid7(),
        "memory_id": memory_id,
        "contradicts": list(contradicts),
    }
    await session.execute(insert(REVIEW), [row])


async def find_flagged(session: Session, scope: Scope, text_hash: str) -> UUID | None:
    """The flagged memory of exactly this scope with this hash. Uses ix_memory_hash."""
    in_scope = scopes.exact("memory", scope).clause
    flagged_id: UUID | None = await session.scalar(
        select(MEMORY.c.id).where(in_scope, MEMORY.c.hash == text_hash, MEMORY.c.review_status == "flagged").limit(1)
    )
    return flagged_id


async def page(
    session: Session, scope: Scope, *, after: tuple[datetime, UUID] | None, limit: int, now: datetime
) -> list[Review]:
    """Pending reviews of a scope, oldest first, after the key `after`."""
    flagged = (MEMORY.c.review_status == "flagged") & (MEMORY.c.expires_at.is_(None) | (MEMORY.c.expires_at > now))
    query = (
        select(*REVIEW.c)
        .join(MEMORY, (MEMORY.c.workspace_id == REVIEW.c.workspace_id) & (MEMORY.c.id == REVIEW.c.memory_id))
        .where(scopes.readable("memory", scope).clause, flagged, REVIEW.c.state == "pending")
    )
    if after is not None:
        at, last = after
        query = query.where((REVIEW.c.created_at > at) | ((REVIEW.c.created_at == at) & (REVIEW.c.id > last)))
    return await direct.page(session, query.order_by(REVIEW.c.created_at, REVIEW.c.id).limit(limit), None, _review)


async def get(session: Session, review_id: UUID, *, lock: bool = False) -> Review | None:
    """A review in any state; `lock` prevents others from resolving it."""
    query = select(*REVIEW.c).where(REVIEW.c.workspace_id == session.workspace_id, REVIEW.c.id == review_id)
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _review(row)


async def resolve(session: Session, review_id: UUID, state: ReviewState, *, now: datetime) -> None:
    conditions = REVIEW.c.workspace_id == session.workspace_id, REVIEW.c.id == review_id
    await session.execute(update(REVIEW).where(*conditions).values(state=state, resolved_at=now))


REOPEN = text("""
    UPDATE review r SET state = 'pending', resolved_at = NULL
    FROM memory m WHERE r.workspace_id = :workspace AND r.memory_id = :id AND m.workspace_id = r.workspace_id
        AND m.id = r.memory_id AND m.review_status = 'flagged'
""")


async def reopen(session: Session, memory_id: UUID) -> None:
    """After an undo, makes the review of a memory that is flagged again pending again."""
    await session.execute(REOPEN, {"id": memory_id})

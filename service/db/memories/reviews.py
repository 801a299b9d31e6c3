"""Which memories wait for a person's word?

A flagged memory is archived and `review_status` is set: the first keeps it out of deduplication, the second out of
every read. The row in `review` says what its acceptance would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import insert, select, text, update
from uuid_utils.compat import uuid7

from service.db import scopes
from service.db.engine import Session
from service.db.tables import MemoryRow, ReviewRow
from service.domain.scope import Scope

State = Literal["pending", "accepted", "rejected"]
Verb = Literal["UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class Change:
    """What acceptance does to a memory: give it the flagged text, or archive it."""

    verb: Verb
    target_id: UUID


@dataclass(frozen=True, slots=True)
class Review:
    id: UUID
    memory_id: UUID
    changes: tuple[Change, ...]
    state: State
    created_at: datetime
    resolved_at: datetime | None


async def flag(session: Session, workspace_id: UUID, memory_id: UUID, changes: Sequence[Change]) -> UUID:
    """Takes a new memory out of sight and returns the review's id."""
    here = MemoryRow.workspace_id == workspace_id, MemoryRow.id == memory_id
    await session.execute(update(MemoryRow).where(*here).values(archived=True, review_status="flagged"))
    review_id: UUID = uuid7()
    row = {
        "workspace_id": workspace_id,
        "id": review_id,
        "memory_id": memory_id,
        "changes": [{"verb": each.verb, "target_id": str(each.target_id)} for each in changes],
    }
    await session.execute(insert(ReviewRow), [row])
    return review_id


async def waiting_with(session: Session, scope: Scope, wanted: str) -> UUID | None:
    """The flagged memory of exactly this scope with this hash. Uses ix_memory_hash."""
    here = scopes.exactly("memory", scope).clause
    found: UUID | None = await session.scalar(
        select(MemoryRow.id).where(here, MemoryRow.hash == wanted, MemoryRow.review_status == "flagged").limit(1)
    )
    return found


async def page(
    session: Session, scope: Scope, *, after: tuple[datetime, UUID] | None, limit: int, now: datetime
) -> list[Review]:
    """Pending reviews of a scope, oldest first, behind the key `after`."""
    flagged = (MemoryRow.review_status == "flagged") & (MemoryRow.expires_at.is_(None) | (MemoryRow.expires_at > now))
    query = (
        select(*COLUMNS)
        .join(MemoryRow, (MemoryRow.workspace_id == ReviewRow.workspace_id) & (MemoryRow.id == ReviewRow.memory_id))
        .where(scopes.matching("memory", scope).clause, flagged, ReviewRow.state == "pending")
    )
    if after is not None:
        at, last = after
        query = query.where((ReviewRow.created_at > at) | ((ReviewRow.created_at == at) & (ReviewRow.id > last)))
    rows = await session.execute(query.order_by(ReviewRow.created_at, ReviewRow.id).limit(limit))
    return [_review(row) for row in rows]


async def get(session: Session, workspace_id: UUID, review_id: UUID, *, lock: bool = False) -> Review | None:
    """One review in whatever state; `lock` keeps others from resolving it."""
    query = select(*COLUMNS).where(ReviewRow.workspace_id == workspace_id, ReviewRow.id == review_id)
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _review(row)


async def resolve(session: Session, workspace_id: UUID, review_id: UUID, state: State, *, now: datetime) -> None:
    here = ReviewRow.workspace_id == workspace_id, ReviewRow.id == review_id
    await session.execute(update(ReviewRow).where(*here).values(state=state, resolved_at=now))


REOPEN = text("""
    UPDATE review r SET state = 'pending', resolved_at = NULL
    FROM memory m WHERE r.workspace_id = :workspace AND r.memory_id = :id AND m.workspace_id = r.workspace_id
        AND m.id = r.memory_id AND m.review_status = 'flagged'
""")

MOVE_VECTOR = text("""
    INSERT INTO memory_vector (workspace_id, memory_id, generation, kind, user_id, agent_id, run_id, channel, embedding)
    SELECT workspace_id, :target, generation, kind, user_id, agent_id, run_id, channel, embedding FROM memory_vector
    WHERE workspace_id = :workspace AND memory_id = :id AND kind <> 'context'
""")

MOVE_SOURCES = text("""
    INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
    SELECT workspace_id, :target, turn_id, start, "end" FROM memory_source
    WHERE workspace_id = :workspace AND memory_id = :id ON CONFLICT DO NOTHING
""")


async def reopen(session: Session, workspace_id: UUID, memory_id: UUID) -> None:
    """After an undo: what is flagged again waits again."""
    await session.execute(REOPEN, {"workspace": workspace_id, "id": memory_id})


async def hand_over(session: Session, workspace_id: UUID, memory_id: UUID, target: UUID) -> None:
    """Gives another memory the vectors and sources of this one."""
    values = {"workspace": workspace_id, "id": memory_id, "target": target}
    await session.execute(MOVE_VECTOR, values)
    await session.execute(MOVE_SOURCES, values)


COLUMNS = (
    ReviewRow.id,
    ReviewRow.memory_id,
    ReviewRow.changes,
    ReviewRow.state,
    ReviewRow.created_at,
    ReviewRow.resolved_at,
)


def _review(row: Any) -> Review:
    changes = tuple(Change(each["verb"], UUID(each["target_id"])) for each in row.changes)
    return Review(row.id, row.memory_id, changes, row.state, row.created_at, row.resolved_at)

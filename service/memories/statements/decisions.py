"""Decisions about memories: who decided what, on what evidence, and what it changed; and reviews of flagged facts.

A decision names the history entry that it caused, which has the memory as it was before. The edits of one decision
share a `ruling_id`, because they are undone together.

A flagged memory is archived and has a `review_status` until a person accepts or rejects it: the first keeps it out of
deduplication, the second out of every read. Its row in `review` names the memories that accepting it would archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import select, text, update
from uuid_utils.compat import uuid7

from service.domain.decision import Action, Evidence
from service.domain.scope import Scope
from service.memories.values import StoredDecision
from service.postgres import direct, scopes
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.tables import MEMORY, REVIEW, insert_into

INSERT = insert_into("decision", by_default=("created_at", "undone_at", "undo_history_id"))


@dataclass(frozen=True, slots=True)
class NewDecision:
    """An action on one memory with its evidence. `history_id`: the history entry it caused; None if it changed nothing.
    `ruling_id`: shared by the actions that are undone together."""

    memory_id: UUID | None
    evidence: Evidence
    scope: Scope
    event: Action
    history_id: UUID | None = None
    ruling_id: UUID | None = None


# Entries of history are found by their memory (ix_memory_history_memory): their key begins with a time.
DECISION = """
    SELECT d.workspace_id, d.id, d.memory_id, d.source, d.model, d.prompt_sha256, d.candidates, d.reply, d.state,
           coalesce(d.verdict ->> 'action', '') AS verdict, coalesce(d.verdict ->> 'reason', '') AS reason,
           coalesce((d.verdict ->> 'rejected')::boolean, d.state = 'rejected') AS rejected,
           d.created_at, d.user_id, d.agent_id, d.run_id, d.event, d.ruling_id, d.history_id, d.undone_at,
           h.old_memory AS before, h.new_memory AS after
    FROM decision d LEFT JOIN memory_history h
        ON h.workspace_id = d.workspace_id AND h.memory_id = d.memory_id AND h.id = d.history_id
"""

OF_MEMORY = text(
    f"{DECISION} WHERE d.workspace_id = :workspace AND d.memory_id = :id "
    "ORDER BY d.created_at, d.id OFFSET :skip LIMIT :limit"
)

# pk_decision, ix_decision_ruling
TOGETHER = """
    d.workspace_id = :workspace AND (d.id = :id OR d.ruling_id = (
        SELECT ruling_id FROM decision WHERE workspace_id = :workspace AND id = :id))
"""
MADE_TOGETHER = text(f"{DECISION} WHERE {TOGETHER} ORDER BY d.created_at, d.id")
LOCK = text(f"SELECT FROM decision d WHERE {TOGETHER} ORDER BY d.id FOR UPDATE")

MARK_UNDONE = text("""
    UPDATE decision SET state = 'undone', undone_at = :now, undo_history_id = :entry
    WHERE workspace_id = :workspace AND id = :id
""")

FIRST_OF_RULING = text("""
    SELECT id FROM decision WHERE workspace_id = :workspace AND ruling_id = :id ORDER BY created_at, id LIMIT 1
""")


async def of_memory(session: Session, memory_id: UUID, *, skip: int = 0, limit: int) -> list[StoredDecision]:
    """The decisions about a memory after the first `skip`, oldest first; also for a deleted memory."""
    values = {"id": memory_id, "skip": skip, "limit": limit}
    return await direct.page(session, OF_MEMORY, values, _decision)


async def made_together(session: Session, decision_id: UUID, *, lock: bool = False) -> list[StoredDecision]:
    """The decision and those with the same ruling_id, in order; none if it does not exist. With `lock` they are locked
    first: the second of two undo requests finds them undone."""
    values = {"id": decision_id}
    if lock:
        await session.execute(LOCK, values)
    return list(map(_decision, await session.execute(MADE_TOGETHER, values)))


async def first_of_ruling(session: Session, ruling_id: UUID) -> UUID | None:
    """A decision whose id can be used to undo the whole ruling."""
    decision_id: UUID | None = await session.scalar(FIRST_OF_RULING, {"id": ruling_id})
    return decision_id


async def mark_undone(session: Session, decision_id: UUID, entry: UUID | None, *, now: datetime) -> None:
    """Marks a decision as undone by this entry of history."""
    await session.execute(MARK_UNDONE, {"id": decision_id, "entry": entry, "now": now})


def _decision(row: Any) -> StoredDecision:
    return StoredDecision.of(row, scope=Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id))


def new_rows(decided: Sequence[NewDecision]) -> NewRows:
    return NewRows(INSERT, list(map(_values, decided)))


async def append(session: Session, decided: Sequence[NewDecision]) -> None:
    await direct.insert(session, new_rows(decided))


def _values(decided: NewDecision) -> dict[str, Any]:
    evidence = decided.evidence
    return {
        **decided.scope.columns,
        "id": uuid7(),
        "memory_id": decided.memory_id,
        "source": evidence.source,
        "model": evidence.model,
        "prompt_sha256": evidence.prompt_sha256,
        "candidates": [str(each) for each in evidence.shown],
        "reply": evidence.reply,
        "verdict": {"action": evidence.verdict, "reason": evidence.reason, "rejected": evidence.rejected},
        "state": "rejected" if evidence.rejected else "applied",
        "event": str(decided.event),
        "history_id": decided.history_id,
        "ruling_id": decided.ruling_id,
    }


# -- reviews ----------------------------------------------------------------------------------------------------------


ReviewState = Literal["pending", "accepted", "rejected"]

FLAG = text("""
    WITH flagged AS (
        UPDATE memory SET archived = true, review_status = 'flagged' WHERE workspace_id = :workspace AND id = :id
    )
    INSERT INTO review (workspace_id, id, memory_id, contradicts)
    VALUES (:workspace, :review, :id, CAST(:contradicts AS uuid[]))
""")

REOPEN_REVIEW = text("""
    UPDATE review r SET state = 'pending', resolved_at = NULL
    FROM memory m WHERE r.workspace_id = :workspace AND r.memory_id = :id AND m.workspace_id = r.workspace_id
        AND m.id = r.memory_id AND m.review_status = 'flagged'
""")


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
    await session.execute(FLAG, {"id": memory_id, "review": uuid7(), "contradicts": list(contradicts)})


async def find_flagged(session: Session, scope: Scope, text_hash: str) -> UUID | None:
    """The flagged memory of exactly this scope with this hash. Uses ix_memory_hash."""
    in_scope = scopes.exact("memory", scope).clause
    flagged_id: UUID | None = await session.scalar(
        select(MEMORY.c.id).where(in_scope, MEMORY.c.hash == text_hash, MEMORY.c.review_status == "flagged").limit(1)
    )
    return flagged_id


async def pending_reviews(
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


async def get_review(session: Session, review_id: UUID, *, lock: bool = False) -> Review | None:
    """A review in any state; `lock` prevents others from resolving it."""
    query = select(*REVIEW.c).where(REVIEW.c.workspace_id == session.workspace_id, REVIEW.c.id == review_id)
    row = (await session.execute(query.with_for_update() if lock else query)).one_or_none()
    return None if row is None else _review(row)


async def resolve_review(session: Session, review_id: UUID, state: ReviewState, *, now: datetime) -> None:
    conditions = REVIEW.c.workspace_id == session.workspace_id, REVIEW.c.id == review_id
    await session.execute(update(REVIEW).where(*conditions).values(state=state, resolved_at=now))


async def reopen_review(session: Session, memory_id: UUID) -> None:
    """After an undo, makes the review of a memory that is flagged again pending again."""
    await session.execute(REOPEN_REVIEW, {"id": memory_id})

"""What happened to a memory, in order, even after it is gone?

`recorded_at` is at least a microsecond after the last change of the same memory, also when the clock steps back, and
the last change is closed at that moment: so every memory's history is a chain of half-open intervals (B6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, text
from uuid_utils.compat import uuid7

from service.db.engine import Session
from service.db.memories import rows
from service.db.memories.rows import Rows
from service.db.tables import MemoryHistory as Table
from service.domain.decision import Action
from service.domain.memory import HistoryEntry
from service.domain.scope import Scope

# Closes the open entry of each changed memory and tells when the next one may begin. Uses ix_memory_history_memory.
CLOSE = text(
    """
    WITH last AS (
        SELECT memory_id, max(recorded_at) AS at FROM memory_history
        WHERE workspace_id = :workspace AND memory_id = ANY(:ids) GROUP BY memory_id
    ), next AS (
        SELECT memory_id, greatest(clock_timestamp(), at + interval '1 microsecond') AS at FROM last
    )
    UPDATE memory_history h SET recorded_to = next.at FROM next
    WHERE h.workspace_id = :workspace AND h.memory_id = ANY(:ids) AND h.memory_id = next.memory_id
      AND h.recorded_to IS NULL
    RETURNING h.memory_id, h.recorded_to
    """
)


@dataclass(frozen=True, slots=True)
class Change:
    """One entry to be: `before` is the memory as it was, None for an ADD."""

    memory_id: UUID
    event: Action
    scope: Scope
    old: str | None
    new: str | None
    before: Mapping[str, Any] | None = None
    before_vector: NDArray[np.float32] | None = None
    before_generation: int | None = None
    reused: bool = False  # an ADD under an id of the caller's, which may have been there before
    id: UUID = field(default_factory=uuid7)  # the entry's, so that a decision can name what it caused


def new_rows(changes: Sequence[Change]) -> Rows:
    """The entries of brand-new memories, whose ids have no history to close."""
    return Rows(Table, [_row(change) for change in changes])


async def append(session: Session, workspace_id: UUID, changes: Sequence[Change]) -> None:
    """Writes the entries in their order; an id that has history is closed first. A brand-new id costs no look-up."""
    known = [change.memory_id for change in changes if change.event is not Action.ADD or change.reused]
    begins: dict[UUID, Any] = {}
    if known:
        closed = await session.execute(CLOSE, {"workspace": workspace_id, "ids": known})
        begins = {row.memory_id: row.recorded_to for row in closed}
    fresh = [_row(change) for change in changes if change.memory_id not in begins]
    later = [
        {**_row(change), "recorded_at": begins[change.memory_id]} for change in changes if change.memory_id in begins
    ]
    for rows_of_a_shape in (fresh, later):
        await rows.insert(session, Rows(Table, rows_of_a_shape))


async def last(session: Session, workspace_id: UUID, memory_id: UUID) -> UUID | None:
    """The newest entry of a memory. Uses ix_memory_history_memory."""
    here = Table.workspace_id == workspace_id, Table.memory_id == memory_id
    newest = select(Table.id).where(*here).order_by(Table.recorded_at.desc(), Table.seq.desc()).limit(1)
    found: UUID | None = await session.scalar(newest)
    return found


def _row(change: Change) -> dict[str, Any]:
    return {
        "workspace_id": change.scope.workspace_id,
        "id": change.id,
        "memory_id": change.memory_id,
        "event": str(change.event),
        "old_memory": change.old,
        "new_memory": change.new,
        "before": change.before,
        "before_embedding": change.before_vector,
        "before_generation": change.before_generation,
        "is_deleted": change.event is Action.DELETE,
        "user_id": change.scope.user_id,
        "agent_id": change.scope.agent_id,
        "run_id": change.scope.run_id,
    }


async def of_memory(session: Session, workspace_id: UUID, memory_id: UUID) -> list[HistoryEntry]:
    """Every change, oldest first (R13.02); empty when the id was never seen."""
    found = await session.execute(
        select(
            Table.id,
            Table.memory_id,
            Table.event,
            Table.old_memory,
            Table.new_memory,
            Table.is_deleted,
            Table.user_id,
            Table.agent_id,
            Table.run_id,
            Table.recorded_at,
            Table.recorded_to,
        )
        .where(Table.workspace_id == workspace_id, Table.memory_id == memory_id)
        .order_by(Table.recorded_at, Table.seq)
    )
    return [HistoryEntry(row[0], row[1], Action(row[2]), *row[3:]) for row in found]

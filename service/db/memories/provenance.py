"""Where does a memory come from: which turn, and which characters of it?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.db.engine import Session

# Of a memory that is gone, history knows the sources it had last.
SOURCES = text("""
    WITH own AS (
        SELECT s.turn_id, s.start, s."end" FROM memory_source s
        WHERE s.workspace_id = :workspace AND s.memory_id = :id
    ), last AS (
        SELECT h.before FROM memory_history h
        WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.event = 'DELETE' AND h.is_deleted
          AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = :id)
        ORDER BY h.recorded_at DESC LIMIT 1
    ), told AS (
        SELECT * FROM own
        UNION ALL
        SELECT (s ->> 'turn_id')::uuid, (s ->> 'start')::integer, (s ->> 'end')::integer
        FROM last CROSS JOIN LATERAL jsonb_array_elements(coalesce(last.before -> 'sources', '[]')) s
    )
    SELECT t.id, t.conversation_id, c.external_id, t.turn_index, t.role, t.speaker, t."timestamp", told.start,
           told."end", substr(t.content, coalesce(told.start, 0) + 1,
                              coalesce(told."end", CAST(:most AS integer)) - coalesce(told.start, 0)) AS quote
    FROM told JOIN turn t ON t.workspace_id = :workspace AND t.id = told.turn_id
    JOIN conversation c ON c.workspace_id = t.workspace_id AND c.id = t.conversation_id
    ORDER BY t."timestamp", t.turn_index, t.id LIMIT :limit
""")

MOST_CHARS = 2_000  # of a turn that is quoted whole


@dataclass(frozen=True, slots=True)
class Source:
    """A turn that a memory was read from. `quote` is its text in the half-open span [start, end) of characters; without
    a span the beginning of the turn."""

    turn_id: UUID
    conversation_id: UUID
    external_id: str
    turn_index: int
    role: str
    speaker: str | None
    timestamp: datetime
    start: int | None
    end: int | None
    quote: str


async def sources(session: Session, workspace_id: UUID, memory_id: UUID, *, limit: int) -> list[Source]:
    """The turns that are still there, oldest first."""
    values = {"workspace": workspace_id, "id": memory_id, "most": MOST_CHARS, "limit": limit}
    return [Source(*row) for row in await session.execute(SOURCES, values)]

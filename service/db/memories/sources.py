"""Which turns does a memory come from?"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text

from service.db.engine import Session

COPY = text("""
    INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
    SELECT workspace_id, :new_id, turn_id, start, "end" FROM memory_source
    WHERE workspace_id = :workspace AND memory_id = :id
""")

CONVERSATIONS = text("""
    SELECT count(DISTINCT t.conversation_id) FROM memory_source s
    JOIN turn t ON t.workspace_id = s.workspace_id AND t.id = s.turn_id
    WHERE s.workspace_id = :workspace AND s.memory_id = :id
""")


async def copy(session: Session, workspace_id: UUID, memory_id: UUID, new_id: UUID) -> None:
    """Lets another memory come from the same turns."""
    await session.execute(COPY, {"workspace": workspace_id, "id": memory_id, "new_id": new_id})


async def conversations(session: Session, workspace_id: UUID, memory_id: UUID) -> int:
    """In how many conversations it was said."""
    return int(await session.scalar(CONVERSATIONS, {"workspace": workspace_id, "id": memory_id}) or 0)

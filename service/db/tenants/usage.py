"""Who has memories here: which users, agents and runs, how many, and when last?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sqlalchemy import TextClause, text

from service.db.engine import Session

Kind = Literal["user", "agent", "run"]
KINDS: tuple[Kind, ...] = ("user", "agent", "run")

# Walks ix_memory_user, _agent or _run in order, so a page costs as much as it shows.
COUNT = """
    SELECT m.{kind}_id AS id, count(*) AS memories, count(*) FILTER (WHERE m.archived) AS archived,
           min(m.created_at) AS first_used, max(greatest(m.updated_at, s.last_accessed)) AS last_used
    FROM memory m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
    WHERE m.workspace_id = :workspace AND m.{kind}_id IS NOT NULL
      AND (CAST(:after AS text) IS NULL OR m.{kind}_id > :after) AND (m.expires_at IS NULL OR m.expires_at > :now)
    GROUP BY m.{kind}_id ORDER BY m.{kind}_id LIMIT :limit
"""

STATEMENTS: dict[Kind, TextClause] = {kind: text(COUNT.format(kind=kind)) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Used:
    """One user, agent or run. `memories` counts the archived too; `last_used`: last change or retrieval."""

    kind: Kind
    id: str
    memories: int
    archived: int
    first_used: datetime
    last_used: datetime


async def page(
    session: Session, workspace_id: UUID, kind: Kind, *, after: str | None, limit: int, now: datetime
) -> list[Used]:
    """Those of one kind behind `after`, by name."""
    values = {"workspace": workspace_id, "after": after, "limit": limit, "now": now}
    return [Used(kind, *row) for row in await session.execute(STATEMENTS[kind], values)]

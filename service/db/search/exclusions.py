"""What keeps one memory out of a search?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text

from service.db.conditions import Condition, typed
from service.db.engine import Session

LOOK = """
SELECT m.archived, m.expires_at, m.review_status, m.t_valid, m.t_invalid, m."timestamp", m.embedding_status,
       ({rows}) AS passes, ({narrow}) AS wanted
FROM memory m WHERE m.workspace_id = :workspace AND m.id = :memory_id AND {scope}
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """A memory of the scope, as far as the rules of visibility read it; `passes`: all of them let it through;
    `wanted`: those do that the caller narrowed the search by, but for times."""

    archived: bool
    expires_at: datetime | None
    review_status: str | None
    t_valid: datetime | None
    t_invalid: datetime | None
    timestamp: datetime
    embedding_status: str
    passes: bool
    wanted: bool


async def look(
    session: Session, scope: Condition, rows: Condition, narrow: Condition, memory_id: UUID
) -> Standing | None:
    """How the memory stands to these rules, of which `narrow` are a part; None when the scope does not hold it."""
    values: Mapping[str, Any] = {**scope.values, **rows.values, **narrow.values, "memory_id": memory_id}
    row = (await session.execute(_look(scope.sql, rows.sql, narrow.sql), values)).one_or_none()
    return Standing(*row) if row is not None else None


@lru_cache(maxsize=64)
def _look(scope: str, rows: str, narrow: str) -> TextClause:
    return typed(text(LOOK.format(scope=scope, rows=rows, narrow=narrow)))

"""How is it counted that memories and entities were used?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.db.engine import Session

# Locked by ascending id, as everywhere; memory_stat has room in its pages and no other index, so the rows stay HOT.
MEMORIES = text("""
    WITH used AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[]), CAST(:at AS timestamptz[]))
            AS u (id, times, at)
    ), held AS (
        SELECT s.memory_id FROM memory_stat s
        WHERE s.workspace_id = :workspace AND s.memory_id = ANY (CAST(:ids AS uuid[]))
        ORDER BY s.memory_id FOR UPDATE
    )
    UPDATE memory_stat s
    SET access_count = s.access_count + used.times, last_accessed = greatest(s.last_accessed, used.at)
    FROM used JOIN held ON held.memory_id = used.id
    WHERE s.workspace_id = :workspace AND s.memory_id = used.id
""")

ENTITIES = text("""
    WITH used AS (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:counts AS integer[]), CAST(:at AS timestamptz[]))
            AS u (id, times, at)
    ), held AS (
        SELECT e.id FROM entity e WHERE e.workspace_id = :workspace AND e.id = ANY (CAST(:ids AS uuid[]))
        ORDER BY e.id FOR UPDATE
    )
    UPDATE entity e
    SET access_count = e.access_count + used.times, last_accessed = greatest(e.last_accessed, used.at)
    FROM used JOIN held ON held.id = used.id
    WHERE e.workspace_id = :workspace AND e.id = used.id
""")


@dataclass(frozen=True, slots=True)
class Use:
    """How often, and when last."""

    times: int
    at: datetime


async def count(
    session: Session, workspace_id: UUID, memories: Mapping[UUID, Use], entities: Mapping[UUID, Use]
) -> None:
    """Adds to the counters; what is gone meanwhile is passed over."""
    for statement, uses in ((MEMORIES, memories), (ENTITIES, entities)):
        if uses:
            ids = sorted(uses)
            await session.execute(
                statement,
                {
                    "workspace": workspace_id,
                    "ids": ids,
                    "counts": [uses[each].times for each in ids],
                    "at": [uses[each].at for each in ids],
                },
            )

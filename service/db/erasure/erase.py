"""How do memories go for good, and what stays to tell that they were there?

A batch is locked by ascending id, its edges in the order of their key: two bulk deletes that meet wait for each other
in one direction only. History is written from the rows themselves, in SQL: half a megabyte of vectors need not travel
to Python and back. Sources, links, edges, vectors and statistics go by foreign key, relations between entities with the
last memory that tells of them; entities that nobody names any more go as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, func, select, text, true

from service.db import scopes
from service.db.engine import Session
from service.db.episodes import contexts
from service.db.erasure import episodes
from service.db.graph import entity_links, entity_relations
from service.db.memories.history import BEFORE, TEXT_VECTOR
from service.db.tables import Memory as Table
from service.domain.scope import Scope

BATCH = 500  # A9: rows that one statement locks

LOCK = text("""
    SELECT id FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR UPDATE
""")

LOCK_EDGES = text("""
    SELECT FROM memory_edge
    WHERE workspace_id = :workspace
      AND (source_id = ANY (CAST(:ids AS uuid[])) OR target_id = ANY (CAST(:ids AS uuid[])))
    ORDER BY source_id, rel_type, target_id FOR UPDATE
""")

# The open entry of each memory is closed where the DELETE begins, a microsecond after the last one at the least (B6).
# The ids are said twice: without statistics the join alone was planned as a loop over all history of the workspace.
KEEP = text(
    f"""
    WITH last AS (
        SELECT memory_id, max(recorded_at) AS at FROM memory_history
        WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) GROUP BY memory_id
    ), next AS (
        SELECT memory_id, greatest(clock_timestamp(), at + interval '1 microsecond') AS at FROM last
    ), closed AS (
        UPDATE memory_history h SET recorded_to = next.at FROM next
        WHERE h.workspace_id = :workspace AND h.memory_id = ANY (CAST(:ids AS uuid[]))
          AND h.memory_id = next.memory_id AND h.recorded_to IS NULL
    )
    INSERT INTO memory_history (workspace_id, id, memory_id, event, old_memory, before, before_embedding,
                                before_generation, is_deleted, user_id, agent_id, run_id, recorded_at)
    SELECT m.workspace_id, gen_random_uuid(), m.id, 'DELETE', m.content, {BEFORE}, v.embedding, v.generation, true,
           m.user_id, m.agent_id, m.run_id, coalesce(next.at, clock_timestamp())
    FROM memory m {TEXT_VECTOR} LEFT JOIN next ON next.memory_id = m.id
    WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[])) ORDER BY m.id
    """  # noqa: S608 - both parts are constants of snapshots.py
)

# What waited for a person's word waits no more; a review that was settled keeps saying so. Uses ix_review_memory.
REMOVE = text("""
    WITH waiting AS (
        DELETE FROM review
        WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) AND state = 'pending'
    )
    DELETE FROM memory WHERE workspace_id = :workspace AND id = ANY (CAST(:ids AS uuid[]))
""")

WAS_DELETED = text("""
    SELECT DISTINCT memory_id FROM memory_history
    WHERE workspace_id = :workspace AND memory_id = ANY (CAST(:ids AS uuid[])) AND event = 'DELETE'
""")


@dataclass(frozen=True, slots=True)
class Extent:
    """What a bulk delete covers: a scope, one channel of it or (None) all, and rows made up to `upto`, the newest that
    was committed when it began; None for no such limit."""

    scope: Scope
    channel: str | None
    upto: datetime | None = None

    @property
    def rows(self) -> ColumnElement[bool]:
        found = scopes.owned("memory", self.scope, self.channel).clause
        return and_(found, true() if self.upto is None else Table.created_at <= self.upto)


async def measure(session: Session, extent: Extent) -> tuple[int, datetime | None]:
    """How many rows there are, and when the newest was made."""
    row = (await session.execute(select(func.count(), func.max(Table.created_at)).where(extent.rows))).one()
    return row[0], row[1]


async def next_ids(session: Session, extent: Extent, *, after: UUID | None, limit: int = BATCH) -> list[UUID]:
    """The next ids by ascending id."""
    query = select(Table.id).where(extent.rows).order_by(Table.id).limit(limit)
    if after is not None:
        query = query.where(Table.id > after)
    return list(await session.scalars(query))


async def erase(session: Session, workspace_id: UUID, ids: Sequence[UUID], *, generation: int) -> list[UUID]:
    """The ids among at most BATCH that were there and are gone now, each with a DELETE in its history."""
    # whose context holds words of what goes is locked with it: two deletes that are neighbours would wait in a circle
    beside = await contexts.holders(session, workspace_id, await contexts.places(session, workspace_id, ids))
    values = {"workspace": workspace_id, "ids": sorted({*ids, *beside})}
    locked = set(await session.scalars(LOCK, values))
    there = sorted(locked.intersection(ids))
    if not there:
        return []
    values["ids"] = there
    await session.execute(LOCK_EDGES, values)
    unnamed = await entity_links.lock_unnamed(session, workspace_id, there)
    await entity_relations.lock_said(session, workspace_id, there)
    await session.execute(KEEP, {**values, "generation": generation})
    await episodes.erase_of_memories(session, values)
    await session.execute(REMOVE, values)
    await entity_links.remove_unnamed(session, workspace_id, unnamed)
    await contexts.rewrite(session, workspace_id, sorted(locked.intersection(beside) - set(there)))
    return there


async def deleted_before(session: Session, workspace_id: UUID, ids: Sequence[UUID]) -> set[UUID]:
    """Those among `ids` whose history tells of a DELETE."""
    return set(await session.scalars(WAS_DELETED, {"workspace": workspace_id, "ids": list(ids)}))

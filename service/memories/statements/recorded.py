"""Memories as they were recorded at a moment, or when they were deleted.

A memory that has not changed since is read from its row; any other from `before` of its first history entry since then,
unless that entry, or one before it, is the ADD. A purge removes history, too, so purged memories are not found. Columns
that history does not keep (summary, use) are shown as they are now. See docs/time.md.

Takes a look-up in the history for each row of the scope, and reads everything that has changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from service.domain.memory import Memory
from service.domain.moments import END
from service.domain.scope import Scope
from service.memories.statements import memories, versions, visibility
from service.memories.statements.memories import COLUMNS
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition
from service.postgres.template import Template
from service.postgres.vectors import cosine

# ix_memory_history_memory, ix_memory_history_user, _agent or _run. `entry`: the entry whose `before` is the row.
RECORDED = """(
    SELECT l.*, CAST(NULL AS uuid) AS entry, CAST(NULL AS timestamptz) AS deleted_at, CAST(NULL AS jsonb) AS stat,
           (SELECT jsonb_agg(n.entity_id) FROM memory_entity n
            WHERE n.workspace_id = :workspace AND n.memory_id = l.id) AS entity_ids
    FROM memory l
    WHERE {rows} AND NOT EXISTS (
        SELECT FROM memory_history h
        WHERE h.workspace_id = :workspace AND h.memory_id = l.id AND h.recorded_at > :as_of)
    UNION ALL
    SELECT r.*, e.id, NULL, NULL, e.before -> 'entity_ids'
    FROM (
        SELECT DISTINCT ON (h.memory_id) h.memory_id, h.id, h.before, h.recorded_at, h.seq
        FROM (SELECT *, before ->> 'channel' AS channel FROM memory_history) h
        WHERE {changes} AND h.recorded_at > :as_of AND h.before IS NOT NULL
        ORDER BY h.memory_id, h.recorded_at, h.seq
    ) e CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memory), e.before) r
    WHERE NOT EXISTS (
        SELECT FROM memory_history a
        WHERE a.workspace_id = :workspace AND a.memory_id = e.memory_id AND a.recorded_at > :as_of
          AND (a.recorded_at, a.seq) < (e.recorded_at, e.seq))
) m"""

# The figures of a deleted memory are in history, and no edge leads to it. Deleted entities no longer have a name.
BY_IDS = Template(f"""
    SELECT {COLUMNS}, m.deleted_at, coalesce(s.relevance, 1.0) AS relevance,
           coalesce(s.salience, m.importance) AS salience, coalesce(s.access_count, 0) AS access_count,
           s.last_accessed, s.stale_at,
           coalesce(CAST(m.stat ->> 'confidence' AS float8), m.fact_confidence) AS current_confidence,
           ARRAY(SELECT ARRAY[n.type, n.name] FROM entity n
                WHERE n.workspace_id = :workspace AND n.id IN (
                    SELECT CAST(named.id AS uuid) FROM jsonb_array_elements_text(m.entity_ids) named (id))
                ORDER BY n.type, n.name) AS entities,
           ARRAY(SELECT g.source_id FROM memory_edge g
                 WHERE g.workspace_id = :workspace AND g.target_id = m.id AND g.rel_type = 'MAY_OUTDATE'
                   AND g.created_at <= :as_of ORDER BY g.created_at DESC, g.source_id) AS may_be_outdated_by,
           CASE WHEN m.t_invalid IS NOT NULL THEN ARRAY(
                SELECT g.source_id FROM memory_edge g
                WHERE g.workspace_id = :workspace AND g.target_id = m.id AND g.rel_type = 'SUPERSEDES'
                  AND g.created_at <= :as_of
           ) END AS superseded_by
    FROM {{recorded}} LEFT JOIN LATERAL (
        SELECT t.* FROM memory_stat t WHERE t.workspace_id = :workspace AND t.memory_id = m.id
        UNION ALL
        SELECT t.* FROM jsonb_populate_record(CAST(NULL AS memory_stat), m.stat) t WHERE m.stat IS NOT NULL
    ) s ON true
    WHERE {{rows}}
""")  # noqa: S608 - no user input

TEXTS = Template(
    """
    SELECT m.id, m.content, m.speaker, m.role, m."timestamp", NULLIF(m.mentions, '[]') AS mentions,
           m.tag_prefixes && CAST(:tags AS text[]) AS tagged, {ended} AS ended,
           m.temporal_tag, m.importance, {cosine} AS cosine
    FROM {recorded}
    LEFT JOIN memory_vector v ON m.entry IS NULL AND v.workspace_id = :workspace AND v.memory_id = m.id
        AND v.generation = {generation} AND v.kind = 'text'
    LEFT JOIN memory_history b ON b.workspace_id = :workspace AND b.memory_id = m.id AND b.id = m.entry
        AND b.before_generation = {generation}
    WHERE {rows}
    ORDER BY m.created_at DESC, m.id LIMIT :limit
""",
    cosine=cosine("coalesce(v.embedding, b.before_embedding)"),
    ended=visibility.ENDED,
)


# The last entry of a deleted memory is a DELETE, and no row has its id any more (after the curator's DELETE, which
# archives, one does). Reads all changes of the scope, by ix_memory_history_user, _agent or _run.
DELETED = """(
    SELECT r.*, h.recorded_at AS deleted_at, h.before -> 'stat' AS stat, h.before -> 'entity_ids' AS entity_ids
    FROM memory_history h CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memory), h.before) r
    WHERE {changes} AND h.is_deleted AND h.recorded_to IS NULL AND h.before IS NOT NULL
      AND NOT EXISTS (SELECT FROM memory l WHERE l.workspace_id = :workspace AND l.id = h.memory_id)
) m"""


@dataclass(frozen=True, slots=True)
class RecordedScope:
    """A scope at a moment, and the other conditions on its memories; `rows` is a condition on `memory m`."""

    scope: Scope
    moment: datetime
    rows: Condition
    channels: tuple[str, ...] = ()

    @property
    def recorded(self) -> str:
        rows, changes = (scopes.readable(alias, self.scope, self.channels).sql for alias in "lh")
        return RECORDED.format(rows=rows, changes=changes)

    @property
    def condition(self) -> Condition:
        """The other conditions, with the values that `recorded` needs."""
        in_scope = scopes.readable("m", self.scope, self.channels)
        return Condition(self.rows.sql, {**in_scope.values, **self.rows.values, "as_of": self.moment})


async def get_many(session: Session, ids: Sequence[UUID], moment: datetime) -> dict[UUID, Memory]:
    """The memories among `ids` that existed at that time, as they were."""
    return await _get_many(session, RECORDED, ids, moment) if ids else {}


async def get_deleted(session: Session, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """The deleted memories among `ids`, as they were."""
    return await _get_many(session, DELETED, ids, END)


async def _get_many(session: Session, source: str, ids: Sequence[UUID], moment: datetime) -> dict[UUID, Memory]:
    rows = "l.workspace_id = :workspace AND l.id = ANY (CAST(:ids AS uuid[]))"
    changes = "h.workspace_id = :workspace AND h.memory_id = ANY (CAST(:ids AS uuid[]))"
    values = {"ids": list(ids), "as_of": moment}
    statement = BY_IDS.fill(recorded=source.format(rows=rows, changes=changes), rows="m.review_status IS NULL")
    return {row.id: memories.of_row(row) for row in await direct.fetch(session, statement, values)}


async def get(
    session: Session, memory_id: UUID, *, valid_at: datetime | None, as_of: datetime | None, now: datetime
) -> Memory | None:
    """A memory, archived or not; with `as_of` as it was recorded then, with `valid_at` the version that was valid
    then."""
    ids = [memory_id]
    if valid_at is not None:
        ids = [version.id for version in await versions.read_line(session, memory_id, texts=False)]
        if not ids and as_of is not None:
            ids = [memory_id, *await versions.ever_of(session, [memory_id])]
    if as_of is not None:
        by_id = await get_many(session, ids, as_of)
        by_id = {key: memory for key, memory in by_id.items() if _is_alive(memory, as_of)}
    else:
        by_id = await memories.get_many(session, ids, alive_at=now)
    if valid_at is None:
        return by_id.get(memory_id)
    held = [old for old in by_id.values() if _is_valid(old, valid_at)]
    return max(held, key=lambda old: (old.t_valid is not None, old.t_valid, old.timestamp), default=None)


def _is_alive(memory: Memory, moment: datetime) -> bool:
    return memory.expires_at is None or memory.expires_at > moment


def _is_valid(memory: Memory, moment: datetime) -> bool:
    if memory.archived and memory.version_of is None:
        return False
    begun = memory.t_valid is None or memory.t_valid <= moment
    return begun and (memory.t_invalid is None or memory.t_invalid > moment)


async def list_texts(
    session: Session, scope: RecordedScope, vector: Any, tags: Sequence[str], *, generation: int, limit: int
) -> Sequence[Any]:
    """The columns that ranking needs, of at most `limit` memories, newest first."""
    values = {**scope.condition.values, "query_vector": vector, "tags": list(tags), "limit": limit}
    statement = TEXTS.fill(recorded=scope.recorded, rows=scope.rows.sql, generation=int(generation))
    return await direct.fetch(session, statement, values)


def deleted_source(scope: Scope, channels: Sequence[str]) -> str:
    """The FROM item of the deleted memories of a scope, named `m`."""
    changes = scopes.readable("h", scope, channels).sql.replace("h.channel", "h.before ->> 'channel'")
    return DELETED.format(changes=changes)

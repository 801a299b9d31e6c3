"""Deleted memories of a scope, as they were when they were deleted.

History keeps them: the last entry of such a memory is a DELETE, and no row has its id any more (after the curator's
DELETE, which archives, one does). A purge removes history, too, so purged memories are not found.

Reads all changes of the scope, by ix_memory_history_user, _agent or _run.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from service.domain.memory import Memory
from service.domain.scope import Scope
from service.memories.statements import memories
from service.memories.statements.memories import COLUMNS
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.template import typed_text

DELETED = """(
    SELECT r.*, h.recorded_at AS deleted_at, h.before -> 'stat' AS stat, h.before -> 'entity_ids' AS entity_ids
    FROM memory_history h CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memory), h.before) r
    WHERE {changes} AND h.is_deleted AND h.recorded_to IS NULL AND h.before IS NOT NULL
      AND NOT EXISTS (SELECT FROM memory l WHERE l.workspace_id = :workspace AND l.id = h.memory_id)
) m"""

# Deleted entities no longer have a name.
BY_IDS = typed_text(f"""
    SELECT {COLUMNS}, m.deleted_at, coalesce(CAST(m.stat ->> 'relevance' AS float8), 1.0) AS relevance,
           coalesce(CAST(m.stat ->> 'salience' AS float8), m.importance) AS salience,
           coalesce(CAST(m.stat ->> 'access_count' AS int), 0) AS access_count,
           CAST(m.stat ->> 'last_accessed' AS timestamptz) AS last_accessed,
           CAST(m.stat ->> 'stale_at' AS timestamptz) AS stale_at,
           coalesce(CAST(m.stat ->> 'confidence' AS float8), m.fact_confidence) AS current_confidence,
           ARRAY(SELECT ARRAY[e.type, e.name] FROM entity e
                 WHERE e.workspace_id = :workspace AND e.id IN (
                     SELECT CAST(named.id AS uuid) FROM jsonb_array_elements_text(m.entity_ids) named (id))
                 ORDER BY e.type, e.name) AS entities,
           CAST('{{}}' AS uuid[]) AS may_be_outdated_by, CAST(NULL AS uuid[]) AS superseded_by
    FROM {DELETED.format(changes="h.workspace_id = :workspace AND h.memory_id = ANY (CAST(:ids AS uuid[]))")}
""")  # noqa: S608 - our own columns


def source(scope: Scope, channels: Sequence[str]) -> str:
    """The FROM item, named `m`."""
    changes = scopes.readable("h", scope, channels).sql.replace("h.channel", "h.before ->> 'channel'")
    return DELETED.format(changes=changes)


async def get_many(session: Session, ids: Sequence[UUID]) -> dict[UUID, Memory]:
    """The deleted memories among `ids`, as they were."""
    rows = await direct.fetch(session, BY_IDS, {"ids": list(ids)})
    return {row.id: memories.of_row(row) for row in rows}

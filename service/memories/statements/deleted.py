"""Deleted memories of a scope, as they were when they were deleted.

History keeps them: the last entry of such a memory is a DELETE, and no row has its id any more (after the curator's
DELETE, which archives, one does). A purge removes history, too, so purged memories are not found.

Reads all changes of the scope, by ix_memory_history_user, _agent or _run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import TextClause, bindparam, text

from service.domain.memory import Memory
from service.domain.query import PageKey, SortOrder
from service.domain.scope import Scope
from service.memories.statements import memories
from service.memories.statements.memories import COLUMNS, COUNTED, SORT_TYPES, RowCount
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.scopes import Condition, type_parameters

DELETED = """(
    SELECT r.*, h.recorded_at AS deleted_at, h.before -> 'stat' AS stat, h.before -> 'entity_ids' AS entity_ids
    FROM memory_history h CROSS JOIN LATERAL jsonb_populate_record(CAST(NULL AS memory), h.before) r
    WHERE {changes} AND h.is_deleted AND h.recorded_to IS NULL AND h.before IS NOT NULL
      AND NOT EXISTS (SELECT FROM memory l WHERE l.workspace_id = :workspace AND l.id = h.memory_id)
) m"""

# Deleted entities no longer have a name.
PAGE = f"""
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
           CAST('{{{{}}}}' AS uuid[]) AS may_be_outdated_by, CAST(NULL AS uuid[]) AS superseded_by,
           m."{{sort}}" AS key
    FROM {{deleted}} WHERE {{rows}}
    ORDER BY m."{{sort}}" {{direction}}, m.id {{direction}} LIMIT :limit
"""  # noqa: S608 - our own columns
COUNT = "SELECT count(*) FROM (SELECT FROM {deleted} WHERE {rows} LIMIT :limit) counted"


def source(scope: Scope, channels: Sequence[str]) -> str:
    """The FROM item, named `m`."""
    changes = scopes.matching("h", scope, channels).sql.replace("h.channel", "h.before ->> 'channel'")
    return DELETED.format(changes=changes)


async def page(
    session: Session, source: str, rows: Condition, order: SortOrder, *, after: PageKey | None, limit: int
) -> tuple[list[PageKey], list[Memory]]:
    """At most `limit` of the memories after `after`, in order, and their places. `rows`: a condition on `m`, including
    the scope."""
    where, values = rows.sql, {**rows.values, "limit": limit}
    if after is not None:
        where += f' AND (m."{order.sort}", m.id) {">" if order.ascending else "<"} (:last_key, :last_id)'
        values |= {"last_key": after.key, "last_id": after.id}
    statement = _fill(PAGE, source, where, sort=order.sort, direction="ASC" if order.ascending else "DESC")
    if after is not None:
        statement = statement.bindparams(bindparam("last_key", type_=SORT_TYPES[order.sort]))
    deleted = await direct.page(session, statement, values, _with_place)
    return [place for place, _ in deleted], [memory for _, memory in deleted]


def _with_place(row: Any) -> tuple[PageKey, Memory]:
    return PageKey(row.key, row.id), replace(memories.of_row(row), deleted_at=row.deleted_at)


async def count(session: Session, source: str, rows: Condition) -> RowCount:
    """The number of deleted memories that meet `rows`, counted up to COUNTED."""
    values = {**rows.values, "limit": COUNTED + 1}
    counted = int(await session.scalar(_fill(COUNT, source, rows.sql), values) or 0)
    return RowCount(min(counted, COUNTED), is_exact=counted <= COUNTED)


@lru_cache(maxsize=256)
def _fill(shape: str, deleted: str, rows: str, **parts: str) -> TextClause:
    return type_parameters(text(shape.format(deleted=deleted, rows=rows, **parts)))

"""The audit log: who did what, and when.

Append-only. The entry of a write is written in its transaction; entries of reads come later, in batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import and_, or_, select

from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.tables import AUDIT_LOG


async def page(
    session: Session,
    equal: Mapping[str, object],
    *,
    memory_id: UUID | None,
    since: datetime | None,
    until: datetime | None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Entries, newest first, after the key `after`. `equal`: the wanted values of columns; None does not filter, as in
    [`since`, `until`). Each filter but that of the memory has an index with the time."""
    log = AUDIT_LOG.c
    query = select(*(column for column in log if column is not log.workspace_id)).where(
        log.workspace_id == session.workspace_id,
        *(log[name] == value for name, value in equal.items() if value is not None),
    )
    if memory_id is not None:
        query = query.where(log.affected_ids.contains([memory_id]))
    if since is not None:
        query = query.where(log.recorded_at >= since)
    if until is not None:
        query = query.where(log.recorded_at < until)
    if after is not None:
        at, last = after
        query = query.where(or_(log.recorded_at < at, and_(log.recorded_at == at, log.id < last)))
    query = query.order_by(log.recorded_at.desc(), log.id.desc()).limit(limit)
    return await direct.page(session, query, None, lambda row: dict(row._mapping))

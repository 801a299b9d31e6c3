"""The audit log: who did what, and when.

Append-only. The entry of a write is written in its transaction; entries of reads come later, in batches.
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, and_, or_, select

from service.access.values import AuditFilter, AuditRecord
from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.tables import AUDIT_LOG


async def page(
    session: Session, workspace_id: UUID, filters: AuditFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[AuditRecord]:
    """Entries, newest first, after the key `after`. Each filter but that of the memory has an index with the time."""
    columns = (AUDIT_LOG.c[field.name] for field in fields(AuditRecord))
    query = select(*columns).where(AUDIT_LOG.c.workspace_id == workspace_id, *_conditions(filters))
    if after is not None:
        at, last = after
        query = query.where(
            or_(AUDIT_LOG.c.recorded_at < at, and_(AUDIT_LOG.c.recorded_at == at, AUDIT_LOG.c.id < last))
        )
    query = query.order_by(AUDIT_LOG.c.recorded_at.desc(), AUDIT_LOG.c.id.desc()).limit(limit)
    return await direct.page(session, query, None, lambda row: AuditRecord(*row))


def _conditions(filters: AuditFilter) -> list[ColumnElement[bool]]:
    equal = {
        AUDIT_LOG.c.operation: filters.operation,
        AUDIT_LOG.c.memory_type: filters.memory_type,
        AUDIT_LOG.c.user_id: filters.user_id,
        AUDIT_LOG.c.session_id: filters.session_id,
        AUDIT_LOG.c.conversation_id: filters.conversation_id,
        AUDIT_LOG.c.source_channel: filters.channel,
        AUDIT_LOG.c.request_id: filters.request_id,
        AUDIT_LOG.c.api_key_id: filters.api_key_id,
    }
    parts: list[ColumnElement[bool]] = [column == value for column, value in equal.items() if value is not None]
    if filters.memory_id is not None:
        parts.append(AUDIT_LOG.c.affected_ids.contains([filters.memory_id]))
    if filters.since is not None:
        parts.append(AUDIT_LOG.c.recorded_at >= filters.since)
    if filters.until is not None:
        parts.append(AUDIT_LOG.c.recorded_at < filters.until)
    return parts

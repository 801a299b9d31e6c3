"""The audit log: who did what, and when.

Append-only. The entry of a write is written in its transaction; entries of reads come later, in batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, or_, select, text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.db import direct
from service.db.direct import NewRows
from service.db.engine import Session
from service.db.tables import AuditLogRow
from service.domain.audit import Operation, Subject
from service.domain.scope import Scope
from service.settings import Settings


@dataclass(frozen=True, slots=True)
class Promotion:
    """Why a memory was promoted to `_global`: its figures at that moment."""

    from_channel: str
    confidence: float
    access_count: int
    conversation_count: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One operation. `metadata` holds ids, counts and thresholds, never memory text. The last four: reads only;
    `query_text` is redacted."""

    operation: Operation
    memory_type: Subject
    scope: Scope
    affected_ids: tuple[UUID, ...] = ()
    request_id: str | None = None
    api_key_id: UUID | None = None
    session_id: str | None = None
    conversation_id: UUID | None = None
    config_snapshot: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    promotion: Promotion | None = None
    target_channels: tuple[str, ...] = ()
    query_text: str | None = None
    result_count: int | None = None
    latency_ms: float | None = None


def thresholds(settings: Settings) -> dict[str, Any]:
    """The settings in force, for `config_snapshot`."""
    return {
        "audit_level": settings.audit_level,
        "contradiction_policy": settings.contradiction_policy,
        "dedup_exact": settings.dedup_exact,
        "dedup_near": settings.dedup_near,
    }


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry as stored."""

    id: UUID
    recorded_at: datetime
    operation: str
    memory_type: str | None
    affected_ids: list[UUID]
    request_id: str | None
    api_key_id: UUID | None
    user_id: str | None
    session_id: str | None
    conversation_id: UUID | None
    source_channel: str | None
    target_channels: list[str]
    query_text: str | None
    result_count: int | None
    latency_ms: float | None
    success: bool
    error_message: str | None
    promoted_from_channel: str | None
    promotion_confidence: float | None
    promotion_access_count: int | None
    promotion_conversation_count: int | None
    config_snapshot: Mapping[str, Any]
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; None does not filter. `since` inclusive, `until` exclusive."""

    operation: Operation | None = None
    memory_type: Subject | None = None
    memory_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    conversation_id: UUID | None = None
    channel: str | None = None
    request_id: str | None = None
    api_key_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


INSERT = text("""
    INSERT INTO audit_log (
        workspace_id, id, operation, memory_type, affected_ids, request_id, api_key_id, user_id, session_id,
        conversation_id, source_channel, target_channels, query_text, result_count, latency_ms,
        promoted_from_channel, promotion_confidence, promotion_access_count, promotion_conversation_count,
        config_snapshot, metadata)
    VALUES (
        :workspace_id, :id, :operation, :memory_type, :affected_ids, :request_id, :api_key_id, :user_id, :session_id,
        :conversation_id, :source_channel, :target_channels, :query_text, :result_count, :latency_ms,
        :promoted_from_channel, :promotion_confidence, :promotion_access_count, :promotion_conversation_count,
        :config_snapshot, :metadata)
""").bindparams(bindparam("config_snapshot", type_=JSONB()), bindparam("metadata", type_=JSONB()))


def new_rows(entries: Sequence[AuditEntry]) -> NewRows:
    """Entries, to be written with the changes they report."""
    return NewRows(INSERT, [_values(entry) for entry in entries])


async def append(session: Session, entries: Sequence[AuditEntry]) -> None:
    await direct.insert(session, new_rows(entries))


async def page(
    session: Session, workspace_id: UUID, filters: AuditFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> list[AuditRecord]:
    """Entries, newest first, behind the key `after`. Each filter but that of the memory has an index with the time."""
    columns = (AuditLogRow.__table__.c[field.name] for field in fields(AuditRecord))
    query = select(*columns).where(AuditLogRow.workspace_id == workspace_id, *_conditions(filters))
    if after is not None:
        at, last = after
        query = query.where(
            or_(AuditLogRow.recorded_at < at, and_(AuditLogRow.recorded_at == at, AuditLogRow.id < last))
        )
    found = await session.execute(query.order_by(AuditLogRow.recorded_at.desc(), AuditLogRow.id.desc()).limit(limit))
    return [AuditRecord(*row) for row in found]


def _conditions(filters: AuditFilter) -> list[ColumnElement[bool]]:
    equal = {
        AuditLogRow.operation: filters.operation,
        AuditLogRow.memory_type: filters.memory_type,
        AuditLogRow.user_id: filters.user_id,
        AuditLogRow.session_id: filters.session_id,
        AuditLogRow.conversation_id: filters.conversation_id,
        AuditLogRow.source_channel: filters.channel,
        AuditLogRow.request_id: filters.request_id,
        AuditLogRow.api_key_id: filters.api_key_id,
    }
    parts: list[ColumnElement[bool]] = [column == value for column, value in equal.items() if value is not None]
    if filters.memory_id is not None:
        parts.append(AuditLogRow.affected_ids.contains([filters.memory_id]))
    if filters.since is not None:
        parts.append(AuditLogRow.recorded_at >= filters.since)
    if filters.until is not None:
        parts.append(AuditLogRow.recorded_at < filters.until)
    return parts


def _values(entry: AuditEntry) -> dict[str, Any]:
    promoted = entry.promotion
    return {
        "workspace_id": entry.scope.workspace_id,
        "id": uuid7(),
        "operation": entry.operation,
        "memory_type": entry.memory_type,
        "affected_ids": list(entry.affected_ids),
        "request_id": entry.request_id,
        "api_key_id": entry.api_key_id,
        "user_id": entry.scope.user_id,
        "session_id": entry.session_id,
        "conversation_id": entry.conversation_id,
        "source_channel": entry.scope.channel,
        "target_channels": list(entry.target_channels),
        "query_text": entry.query_text,
        "result_count": entry.result_count,
        "latency_ms": entry.latency_ms,
        "promoted_from_channel": promoted.from_channel if promoted else None,
        "promotion_confidence": promoted.confidence if promoted else None,
        "promotion_access_count": promoted.access_count if promoted else None,
        "promotion_conversation_count": promoted.conversation_count if promoted else None,
        "config_snapshot": dict(entry.config_snapshot),
        "metadata": dict(entry.metadata),
    }

"""The audit log: who did what, and when.

Append-only. The entry of a write is written in its transaction; entries of reads come later, in batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import select
from uuid_utils.compat import uuid7

from service.domain.request import Operation, Subject
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.kit.settings import Settings
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.tables import AUDIT_LOG, insert_into

INSERT = insert_into("audit_log", by_default=("recorded_at", "success", "error_message"))


@dataclass(frozen=True, slots=True)
class Promotion:
    """Why a memory was promoted to `_global`: its figures at that moment."""

    from_channel: str
    confidence: float
    access_count: int
    conversation_count: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An operation in the audit log. `metadata` has ids, counts and thresholds, never memory text. The last four: reads
    only; `query_text` is redacted."""

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


ALWAYS = frozenset({"audit_level", "contradiction_policy", "dedup_exact", "dedup_near"})
THRESHOLDS: Mapping[Operation, frozenset[str]] = {
    "archive": frozenset({"ageing"}),
    "delete_entity": frozenset({"ageing"}),
    "optimize": frozenset({"ageing"}),
    "promote": frozenset({"promoting"}),
    "retrieve": frozenset({"search_techniques"}),
}
"""Settings of an operation, in addition to those in every entry."""


def thresholds(settings: Settings, operation: Operation | None = None) -> dict[str, Any]:
    """The settings in force, for `config_snapshot`."""
    more = THRESHOLDS.get(operation, frozenset()) if operation else frozenset()
    values = {name: settings.value(name) for name in sorted(ALWAYS | more)}
    return {name: value.model_dump() if isinstance(value, BaseModel) else value for name, value in values.items()}


def new_rows(entries: Sequence[AuditEntry]) -> NewRows:
    return NewRows(INSERT, [_values(entry) for entry in entries])


async def append(session: Session, entries: Sequence[AuditEntry]) -> None:
    await direct.insert(session, new_rows(entries))


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
        "target_channels": [GLOBAL_CHANNEL] if promoted else list(entry.target_channels),
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
    key, make = (log.recorded_at, log.id), lambda row: dict(row._mapping)
    return await direct.newest(session, query, key, make, after=after, limit=limit)

"""What happened: history of memories, audit, decisions and reviews."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    SmallInteger,
    String,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    ChannelName,
    Table,
    empty_object,
    empty_words,
    part_of_key,
    set_now,
    switched_off,
    written_by,
)
from service.db.vectors import Half


class MemoryHistoryRow(Table):
    """One change of a memory. `before` is the memory as it was; its result was the current state in
    [recorded_at, recorded_to)."""

    __tablename__ = "memory_history"
    __table_args__ = (
        CheckConstraint("event IN ('ADD', 'UPDATE', 'DELETE')", "event"),
        {"postgresql_partition_by": "RANGE (recorded_at)"},
    )

    workspace_id: Mapped[UUID] = part_of_key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = part_of_key()
    seq: Mapped[int] = mapped_column(BigInteger, server_default=text("nextval('memory_history_seq'::regclass)"))
    memory_id: Mapped[UUID]
    event: Mapped[str] = mapped_column(String(8))
    old_memory: Mapped[str | None]
    new_memory: Mapped[str | None]
    before: Mapped[dict[str, Any] | None]
    before_embedding: Mapped[Any | None] = mapped_column(Half())
    before_generation: Mapped[int | None] = mapped_column(SmallInteger)
    is_deleted: Mapped[bool] = switched_off()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    recorded_to: Mapped[datetime | None]
    position: Mapped[int] = written_by()


class ErasedMemoryRow(Table):
    """A memory whose history was erased: what the change feed still says of it."""

    __tablename__ = "erased_memory"

    workspace_id: Mapped[UUID] = part_of_key()
    position: Mapped[int] = written_by(primary_key=True)
    seq: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, server_default=text("nextval('memory_history_seq'::regclass)")
    )
    memory_id: Mapped[UUID]
    erased_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class AuditLogRow(Table):
    """Who did what, when, and how long it took (`latency_ms`), append-only."""

    __tablename__ = "audit_log"
    __table_args__ = ({"postgresql_partition_by": "RANGE (recorded_at)"},)

    workspace_id: Mapped[UUID] = part_of_key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = part_of_key()
    operation: Mapped[str] = mapped_column(String(50))
    memory_type: Mapped[str | None] = mapped_column(String(50))
    affected_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid()), server_default=text("'{}'::uuid[]"))
    request_id: Mapped[str | None] = mapped_column(String(100))
    api_key_id: Mapped[UUID | None]
    user_id: Mapped[str | None]
    session_id: Mapped[str | None]
    conversation_id: Mapped[UUID | None]
    source_channel: Mapped[str | None] = mapped_column(ChannelName)
    target_channels: Mapped[list[str]] = empty_words()
    query_text: Mapped[str | None]
    result_count: Mapped[int | None]
    latency_ms: Mapped[float | None]
    success: Mapped[bool] = mapped_column(server_default=text("true"))
    error_message: Mapped[str | None]
    promoted_from_channel: Mapped[str | None] = mapped_column(ChannelName)
    promotion_confidence: Mapped[float | None]
    promotion_access_count: Mapped[int | None]
    promotion_conversation_count: Mapped[int | None]
    config_snapshot: Mapped[dict[str, Any]] = empty_object()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))


class DecisionRow(Table):
    """One action on a memory with its evidence. `ruling_id` is shared by the actions of one decision, undone
    together."""

    __tablename__ = "decision"
    __table_args__ = (
        CheckConstraint("state IN ('applied', 'rejected', 'undone')", "state"),
        CheckConstraint("event IN ('ADD', 'UPDATE', 'DELETE', 'NONE')", "event"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID | None]
    source: Mapped[str] = mapped_column(String(16))
    model: Mapped[str]
    prompt_sha256: Mapped[str | None] = mapped_column(String(64))
    candidates: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    reply: Mapped[str | None]
    verdict: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = set_now()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    event: Mapped[str | None] = mapped_column(String(8))
    ruling_id: Mapped[UUID | None]
    history_id: Mapped[UUID | None]
    undone_at: Mapped[datetime | None]
    undo_history_id: Mapped[UUID | None]


class ReviewRow(Table):
    """A memory that waits for a person's approval, and what approving it would change."""

    __tablename__ = "review"
    __table_args__ = (CheckConstraint("state IN ('pending', 'accepted', 'rejected')", "state"),)

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID]
    changes: Mapped[list[Any]]
    state: Mapped[str] = mapped_column(String(8), server_default=text("'pending'::character varying"))
    created_at: Mapped[datetime] = set_now()
    resolved_at: Mapped[datetime | None]

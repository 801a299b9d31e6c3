"""Tools, their invocations, and strategies."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    SmallInteger,
    String,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    Table,
    channel_name,
    child_of,
    empty_words,
    part_of_key,
    set_now,
)
from service.db.vectors import Half


class ToolRow(Table):
    """The running total of a tool; `timed_count` uses have a latency, of which `avg_latency_ms` is the mean."""

    __tablename__ = "tool"
    __table_args__ = (CheckConstraint("success_count <= usage_count AND timed_count <= usage_count", "counts"),)

    workspace_id: Mapped[UUID] = part_of_key()
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    usage_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    success_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    timed_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    avg_latency_ms: Mapped[float | None]
    last_used_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = set_now()


class ToolInvocationRow(Table):
    """One use of a tool; only erasures delete one. `timestamp` is when it happened; `latency_ms` in milliseconds."""

    __tablename__ = "tool_invocation"
    __table_args__ = (
        CheckConstraint("latency_ms >= 0", "latency_ms"),
        {"postgresql_partition_by": "RANGE (recorded_at)"},
    )

    workspace_id: Mapped[UUID] = part_of_key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[int] = mapped_column(
        BigInteger,
        primary_key=True,
        autoincrement=False,
        server_default=text("nextval('tool_invocation_seq'::regclass)"),
    )
    conversation_id: Mapped[UUID | None]
    turn_id: Mapped[UUID | None]
    turn_index: Mapped[int | None]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    timestamp: Mapped[datetime] = set_now()
    tool_name: Mapped[str] = mapped_column(String(100))
    task_type: Mapped[str | None] = mapped_column(String(100))
    tool_input: Mapped[Any] = mapped_column(JSONB)
    tool_output: Mapped[Any | None] = mapped_column(JSONB)
    success: Mapped[bool]
    latency_ms: Mapped[float | None]
    error_message: Mapped[str | None]


class StrategyRow(Table):
    """A way of working that proved good or bad, with how often."""

    __tablename__ = "strategy"
    __table_args__ = (CheckConstraint("success_count >= 0 AND failure_count >= 0", "counts"),)

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    description: Mapped[str]
    context_pattern: Mapped[str | None]
    task_type: Mapped[str | None] = mapped_column(String(100))
    tool_sequence: Mapped[list[str]] = empty_words()
    success_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    failure_count: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = set_now()
    last_used_at: Mapped[datetime | None]


class StrategyToolRow(Table):
    """The tools of a strategy in their order."""

    __tablename__ = "strategy_tool"
    __table_args__ = (child_of("strategy", "strategy_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    strategy_id: Mapped[UUID] = part_of_key()
    place: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    tool_name: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[datetime] = set_now()


class StrategyConversationRow(Table):
    """The conversations a strategy was used in, and whether it succeeded."""

    __tablename__ = "strategy_conversation"
    __table_args__ = (child_of("strategy", "strategy_id"), child_of("conversation", "conversation_id"))

    workspace_id: Mapped[UUID] = part_of_key()
    strategy_id: Mapped[UUID] = part_of_key()
    conversation_id: Mapped[UUID] = part_of_key()
    success: Mapped[bool]
    created_at: Mapped[datetime] = set_now()


class StrategyVectorRow(Table):
    """The vector of a strategy's description, by generation."""

    __tablename__ = "strategy_vector"
    __table_args__ = (child_of("strategy", "strategy_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    strategy_id: Mapped[UUID] = part_of_key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()

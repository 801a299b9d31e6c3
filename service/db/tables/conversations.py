"""Conversations, their turns and log, user profiles, and working memory."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    SmallInteger,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    TERM_DIMENSIONS,
    Table,
    Terms,
    channel_name,
    child_of,
    empty_object,
    part_of_key,
    set_now,
    switched_off,
)
from service.db.vectors import Half


class ConversationRow(Table):
    """A conversation. `external_id` is the name its caller gave it, unique for user, agent and channel in a
    workspace."""

    __tablename__ = "conversation"
    __table_args__ = (
        UniqueConstraint(
            *("workspace_id", "user_id", "agent_id", "external_id", "channel"),
            name="uq_conversation_identity",
            postgresql_nulls_not_distinct=True,
        ),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    external_id: Mapped[str]
    title: Mapped[str | None]
    started_at: Mapped[datetime]
    turn_count: Mapped[int] = mapped_column(server_default=text("0"))
    consolidated_at: Mapped[datetime | None]
    consolidated_turns: Mapped[int] = mapped_column(server_default=text("0"))
    patterns_extracted: Mapped[bool] = switched_off()
    archived: Mapped[bool] = switched_off()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = set_now()
    updated_at: Mapped[datetime] = set_now()


class TurnRow(Table):
    """One entry of a conversation. It carries the conversation's scope, with its external id as `run_id`; `timestamp`
    is when it was spoken, `turn_index` its place from 0. `shown`: what readers of memory see of it where sentences are
    withdrawn; NULL: all of it. The lexical columns and the vector are those of the text that is shown."""

    __tablename__ = "turn"
    __table_args__ = (
        UniqueConstraint("workspace_id", "conversation_id", "turn_index"),
        child_of("conversation", "conversation_id"),
        CheckConstraint("turn_index >= 0", "turn_index"),
        CheckConstraint("token_count >= 0", "token_count"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    conversation_id: Mapped[UUID]
    turn_index: Mapped[int]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    role: Mapped[str] = mapped_column(String(20))
    speaker: Mapped[str | None] = mapped_column(String(200))
    content: Mapped[str]
    content_hash: Mapped[str] = mapped_column(String(64))
    token_count: Mapped[int | None]
    model: Mapped[str | None] = mapped_column(String(100))
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    terms: Mapped[list[int]] = mapped_column(Terms, server_default=text("'{}'::integer[]"))
    bm25: Mapped[Any | None] = mapped_column(SPARSEVEC(TERM_DIMENSIONS))
    shown: Mapped[str | None]
    timestamp: Mapped[datetime]
    archived: Mapped[bool] = switched_off()
    created_at: Mapped[datetime] = set_now()


class TurnVectorRow(Table):
    """The vector of a turn's text by generation, with the columns a search filters by."""

    __tablename__ = "turn_vector"
    __table_args__ = (child_of("turn", "turn_id"), {"postgresql_partition_by": "HASH (workspace_id)"})

    workspace_id: Mapped[UUID] = part_of_key()
    turn_id: Mapped[UUID] = part_of_key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()


class ConversationLogRow(Table):
    """Every turn as it came in, append-only. The vector is the turn's."""

    __tablename__ = "conversation_log"
    __table_args__ = ({"postgresql_partition_by": "RANGE (recorded_at)"},)

    workspace_id: Mapped[UUID] = part_of_key()
    recorded_at: Mapped[datetime] = mapped_column(primary_key=True, server_default=text("clock_timestamp()"))
    id: Mapped[UUID] = part_of_key()
    conversation_id: Mapped[UUID]
    turn_id: Mapped[UUID]
    turn_index: Mapped[int]
    timestamp: Mapped[datetime]
    role: Mapped[str] = mapped_column(String(20))
    content: Mapped[str]
    content_hash: Mapped[str] = mapped_column(String(64))
    token_count: Mapped[int | None]
    model: Mapped[str | None] = mapped_column(String(100))
    channel: Mapped[str] = channel_name()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]


class UserProfileRow(Table):
    """What is known of a user besides memories: preferences, expertise, style of communication."""

    __tablename__ = "user_profile"
    __table_args__ = (
        CheckConstraint("jsonb_typeof(preferences) = 'object'", "preferences"),
        CheckConstraint("jsonb_typeof(expertise_areas) = 'array'", "expertise_areas"),
        CheckConstraint("jsonb_typeof(communication_style) = 'object'", "communication_style"),
        CheckConstraint("jsonb_typeof(metadata) = 'object'", "metadata"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str] = mapped_column(primary_key=True)
    preferences: Mapped[dict[str, Any]] = empty_object()
    expertise_areas: Mapped[list[Any]] = mapped_column(server_default=text("'[]'::jsonb"))
    communication_style: Mapped[dict[str, Any]] = empty_object()
    extra: Mapped[dict[str, Any]] = mapped_column("metadata", server_default=text("'{}'::jsonb"))
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = set_now()
    updated_at: Mapped[datetime] = set_now()


class MemorySourceRow(Table):
    """The turns a memory came from. `start` and `end`: half-open span of characters in the turn, where known."""

    __tablename__ = "memory_source"
    __table_args__ = (child_of("memory", "memory_id"), child_of("turn", "turn_id"))

    workspace_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    turn_id: Mapped[UUID] = part_of_key()
    start: Mapped[int | None]
    end: Mapped[int | None]
    created_at: Mapped[datetime] = set_now()


class WithdrawnSpanRow(Table):
    """A half-open span of characters of a turn that no longer counts. `memory_id`: the memory that rested on it, which
    may be gone; `history_id`: the change of that memory that withdrew it; `replaced_by`: the memory that says what is
    so now."""

    __tablename__ = "withdrawn_span"
    __table_args__ = (
        child_of("turn", "turn_id"),
        CheckConstraint("reason IN ('deleted', 'expired', 'updated', 'superseded')", "reason"),
        CheckConstraint('0 <= start AND start <= "end"', "start"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    turn_id: Mapped[UUID]
    start: Mapped[int]
    end: Mapped[int]
    reason: Mapped[str] = mapped_column(String(10))
    memory_id: Mapped[UUID | None]
    replaced_by: Mapped[UUID | None]
    history_id: Mapped[UUID | None]
    created_at: Mapped[datetime] = set_now()


class WorkingItemRow(Table):
    """An item of an agent's working memory (domain/working.py), deleted after `expires_at`. UNLOGGED: empty after a
    crash."""

    __tablename__ = "working_item"
    __table_args__ = (
        child_of("turn", "turn_id"),
        CheckConstraint("kind IN ('turn', 'item', 'thought', 'goal', 'session')", "kind"),
        {"prefixes": ["UNLOGGED"]},
    )

    workspace_id: Mapped[UUID] = part_of_key()
    session_id: Mapped[UUID] = part_of_key()
    kind: Mapped[str] = mapped_column(String(8), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    conversation_id: Mapped[str]
    turn_id: Mapped[UUID | None]
    value: Mapped[Any] = mapped_column(JSONB)
    seq: Mapped[int] = mapped_column(BigInteger, server_default=text("nextval('working_item_seq'::regclass)"))
    created_at: Mapped[datetime] = set_now()
    last_used_at: Mapped[datetime]
    expires_at: Mapped[datetime]

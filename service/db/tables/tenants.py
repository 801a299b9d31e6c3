"""Workspaces and API keys."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    ChannelName,
    Table,
    empty_object,
    empty_words,
    part_of_key,
    set_now,
)


class WorkspaceRow(Table):
    """A tenant. `settings` override those of the service."""

    __tablename__ = "workspace"

    workspace_id: Mapped[UUID] = part_of_key()
    name: Mapped[str] = mapped_column(String(200))
    settings: Mapped[dict[str, Any]] = empty_object()
    created_at: Mapped[datetime] = set_now()


class TokenSecretRow(Table):
    """What tokens are signed with where the settings name no secret; only its owner reads it."""

    __tablename__ = "token_secret"
    __table_args__ = (CheckConstraint("only_one", name="only_one"),)

    only_one: Mapped[bool] = mapped_column(primary_key=True, server_default=text("true"))
    secret: Mapped[str]
    created_at: Mapped[datetime] = set_now()


class ApiKeyRow(Table):
    """A key: only its hash is kept. Ids and channels, where given, confine it to them (domain/access.py, Wall)."""

    __tablename__ = "api_key"
    __table_args__ = (
        UniqueConstraint("key_hash"),
        UniqueConstraint("old_key_hash"),
        CheckConstraint("(old_key_hash IS NULL) = (old_key_until IS NULL)", name="old_key"),
        CheckConstraint(
            "coalesce(user_id, agent_id, run_id) IS NULL AND channels = '{}'"
            " OR NOT rights && '{admin,operator,audit:read,metrics}'",
            name="wall",
        ),
        ForeignKeyConstraint(["workspace_id"], ["workspace.workspace_id"], ondelete="CASCADE"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    name: Mapped[str] = mapped_column(String(200))
    key_hash: Mapped[str] = mapped_column(String(64))
    hint: Mapped[str] = mapped_column(String(16))
    rights: Mapped[list[str]]
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channels: Mapped[list[str]] = empty_words()
    default_user_id: Mapped[str | None]
    default_agent_id: Mapped[str | None]
    default_run_id: Mapped[str | None]
    default_channel: Mapped[str | None] = mapped_column(ChannelName)
    created_at: Mapped[datetime] = set_now()
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    old_key_hash: Mapped[str | None] = mapped_column(String(64))
    old_key_until: Mapped[datetime | None]
    former_key_hashes: Mapped[list[str]] = empty_words()
    last_used_at: Mapped[datetime | None]


class BudgetRow(Table):
    """A token bucket of a key or of the workspace: what it may still use of a unit. `granted`: taken last."""

    __tablename__ = "budget"
    __table_args__ = ({"prefixes": ["UNLOGGED"]},)

    workspace_id: Mapped[UUID] = part_of_key()
    subject: Mapped[UUID] = part_of_key()
    unit: Mapped[str] = mapped_column(primary_key=True)
    tokens: Mapped[float]
    granted: Mapped[float]
    refilled_at: Mapped[datetime]


class ModelDayRow(Table):
    """What a workspace spent on the language model on a day (UTC). `held`: estimates of the calls under way."""

    __tablename__ = "model_day"

    workspace_id: Mapped[UUID] = part_of_key()
    day: Mapped[date] = mapped_column(primary_key=True)
    calls: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    prompt_tokens: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    completion_tokens: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    cost: Mapped[float] = mapped_column(server_default=text("0"))
    held: Mapped[dict[str, Any]] = empty_object()

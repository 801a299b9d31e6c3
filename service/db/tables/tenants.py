"""Workspaces and API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ForeignKeyConstraint,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    ChannelName,
    Table,
    empty_object,
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


class ApiKeyRow(Table):
    """A key: only its hash is kept. Ids and channel, where given, confine it to them."""

    __tablename__ = "api_key"
    __table_args__ = (
        UniqueConstraint("key_hash"),
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
    channel: Mapped[str | None] = mapped_column(ChannelName)
    created_at: Mapped[datetime] = set_now()
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

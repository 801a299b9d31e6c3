"""Entities, their aliases and vectors, relations between them, and merges."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    SmallInteger,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    Table,
    channel_name,
    child_of,
    empty_object,
    empty_words,
    part_of_key,
    set_now,
)
from service.db.vectors import Half


class EntityRow(Table):
    """Somebody or something that memories name. `name_key` is the casefolded name, unique for user and channel;
    `salience` 0..1."""

    __tablename__ = "entity"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id", "channel", "name_key", postgresql_nulls_not_distinct=True),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    name: Mapped[str]
    name_key: Mapped[str]
    type: Mapped[str]
    aliases: Mapped[list[str]] = empty_words()
    description: Mapped[str | None]
    extracted_by: Mapped[str] = mapped_column(String(16))
    properties: Mapped[dict[str, Any]] = empty_object()
    first_seen: Mapped[datetime] = set_now()
    created_at: Mapped[datetime] = set_now()
    salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    base_salience: Mapped[float] = mapped_column(server_default=text("0.5"))
    access_count: Mapped[int] = mapped_column(server_default=text("0"))
    last_accessed: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    updated_at: Mapped[datetime] = set_now()


class EntityAliasRow(Table):
    """Another name of an entity. The casefolded `alias_key` leads to one entity of its user and channel."""

    __tablename__ = "entity_alias"
    __table_args__ = (
        UniqueConstraint("workspace_id", "user_id", "channel", "alias_key", postgresql_nulls_not_distinct=True),
        child_of("entity", "entity_id"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    entity_id: Mapped[UUID] = part_of_key()
    alias_key: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str]
    user_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    created_at: Mapped[datetime] = set_now()


class EntityVectorRow(Table):
    """The vector of an entity's name and description, by generation."""

    __tablename__ = "entity_vector"
    __table_args__ = (child_of("entity", "entity_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    entity_id: Mapped[UUID] = part_of_key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()


class MemoryEntityRow(Table):
    """The entities that a memory names."""

    __tablename__ = "memory_entity"
    __table_args__ = (child_of("memory", "memory_id"), child_of("entity", "entity_id"))

    workspace_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    entity_id: Mapped[UUID] = part_of_key()
    created_at: Mapped[datetime] = set_now()
    extracted_by: Mapped[str] = mapped_column(String(16), server_default=text("'rules'::character varying"))


class EntityEdgeRow(Table):
    """A relation between entities: its label as given, its type normalised, valid in [t_valid, t_invalid). `strength`
    and `confidence` 0..1."""

    __tablename__ = "entity_edge"
    __table_args__ = (
        UniqueConstraint("workspace_id", "source_id", "target_id", "rel_type"),
        child_of("entity", "source_id", name="fk_entity_edge_source"),
        child_of("entity", "target_id", name="fk_entity_edge_target"),
        CheckConstraint("strength >= 0 AND strength <= 1", "strength"),
        CheckConstraint("confidence >= 0 AND confidence <= 1", "confidence"),
        CheckConstraint("t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid", "validity"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    source_id: Mapped[UUID]
    rel_type: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(200))
    target_id: Mapped[UUID]
    strength: Mapped[float] = mapped_column(server_default=text("1"))
    confidence: Mapped[float] = mapped_column(server_default=text("1"))
    properties: Mapped[dict[str, Any]] = empty_object()
    t_valid: Mapped[datetime | None]
    t_invalid: Mapped[datetime | None]
    extracted_by: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = set_now()
    updated_at: Mapped[datetime] = set_now()


class EntityEdgeSourceRow(Table):
    """The memories that state a relation. With the last of them the relation goes (trigger drop_unsupported_edge)."""

    __tablename__ = "entity_edge_source"
    __table_args__ = (child_of("entity_edge", "edge_id"), child_of("memory", "memory_id"))

    workspace_id: Mapped[UUID] = part_of_key()
    edge_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    extracted_by: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = set_now()


class EntityMergeRow(Table):
    """An entity that was merged into another, with all that undoing it needs."""

    __tablename__ = "entity_merge"
    __table_args__ = (child_of("entity", "entity_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    entity_id: Mapped[UUID]
    absorbed_id: Mapped[UUID]
    absorbed: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = set_now()
    undone_at: Mapped[datetime | None]

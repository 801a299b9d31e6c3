"""What all tables share: metadata with naming rules, and columns that occur again and again."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    String,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

TERM_DIMENSIONS = 1_000_000_000
"""Length of the sparse BM25 vectors: term ids are hashes below it (pgvector's maximum)."""

NAMING = {
    "pk": "pk_%(table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}

ChannelName = String(100)
Terms = ARRAY(Integer)
Words = ARRAY(Text)


class Table(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        UUID: Uuid(),
        datetime: DateTime(timezone=True),
        str: Text(),
        int: Integer(),
        float: Double(),
        bool: Boolean(),
        dict[str, Any]: JSONB(),
        list[Any]: JSONB(),
        list[str]: Words,
    }


def part_of_key() -> Mapped[UUID]:
    return mapped_column(primary_key=True)


def set_now() -> Mapped[datetime]:
    return mapped_column(server_default=text("now()"))


def empty_object() -> Mapped[dict[str, Any]]:
    return mapped_column(server_default=text("'{}'::jsonb"))


def empty_words() -> Mapped[list[str]]:
    return mapped_column(server_default=text("'{}'::text[]"))


def channel_name() -> Mapped[str]:
    return mapped_column(ChannelName, server_default=text("'_global'::character varying"))


def switched_off() -> Mapped[bool]:
    return mapped_column(server_default=text("false"))


def written_by(*, primary_key: bool = False) -> Mapped[int]:
    """The place of a row in the order of the change feed: unless it says otherwise its own transaction."""
    return mapped_column(
        BigInteger, primary_key=primary_key, server_default=text("(pg_current_xact_id()::text)::bigint")
    )


def child_of(table: str, *columns: str, target: str = "id", name: str | None = None) -> ForeignKeyConstraint:
    """A foreign key inside the workspace that goes with its parent; `name` where two lead to the same table."""
    return ForeignKeyConstraint(
        ["workspace_id", *columns], [f"{table}.workspace_id", f"{table}.{target}"], name=name, ondelete="CASCADE"
    )

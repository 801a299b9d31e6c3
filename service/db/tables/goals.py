"""Goals, their edges, memories, history and vectors."""

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
from sqlalchemy.orm import Mapped, mapped_column

from service.db.tables.base import (
    Table,
    channel_name,
    child_of,
    part_of_key,
    set_now,
)
from service.db.vectors import Half


class GoalRow(Table):
    """A goal. `completed_at` is set exactly while it is completed or abandoned."""

    __tablename__ = "goal"
    __table_args__ = (
        CheckConstraint("status IN ('active', 'completed', 'abandoned', 'blocked')", "status"),
        CheckConstraint("(completed_at IS NOT NULL) = (status IN ('completed', 'abandoned'))", "completed_at"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    id: Mapped[UUID] = part_of_key()
    user_id: Mapped[str | None]
    agent_id: Mapped[str | None]
    run_id: Mapped[str | None]
    channel: Mapped[str] = channel_name()
    description: Mapped[str]
    status: Mapped[str] = mapped_column(String(16), server_default=text("'active'::character varying"))
    priority: Mapped[int] = mapped_column(server_default=text("0"))
    deadline: Mapped[datetime | None]
    result: Mapped[str | None]
    version: Mapped[int] = mapped_column(BigInteger, server_default=text("1"))
    created_at: Mapped[datetime] = set_now()
    updated_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]


class GoalEdgeRow(Table):
    """Read from source to target: SUBGOAL_OF its parent, BLOCKED_BY another."""

    __tablename__ = "goal_edge"
    __table_args__ = (
        child_of("goal", "source_id", name="fk_goal_edge_source"),
        child_of("goal", "target_id", name="fk_goal_edge_target"),
        CheckConstraint("rel_type IN ('SUBGOAL_OF', 'BLOCKED_BY')", "rel_type"),
        CheckConstraint("source_id <> target_id", "ends"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    source_id: Mapped[UUID] = part_of_key()
    rel_type: Mapped[str] = mapped_column(String(16), primary_key=True)
    target_id: Mapped[UUID] = part_of_key()
    created_at: Mapped[datetime] = set_now()


class GoalMemoryRow(Table):
    """The memories that belong to a goal."""

    __tablename__ = "goal_memory"
    __table_args__ = (child_of("goal", "goal_id"), child_of("memory", "memory_id"))

    workspace_id: Mapped[UUID] = part_of_key()
    goal_id: Mapped[UUID] = part_of_key()
    memory_id: Mapped[UUID] = part_of_key()
    created_at: Mapped[datetime] = set_now()


class GoalHistoryRow(Table):
    """One version of a goal. `changes`: by field, the values before and after."""

    __tablename__ = "goal_history"
    __table_args__ = (
        child_of("goal", "goal_id"),
        CheckConstraint("event IN ('ADD', 'UPDATE', 'COMPLETE', 'ABANDON', 'BLOCK', 'REOPEN')", "event"),
    )

    workspace_id: Mapped[UUID] = part_of_key()
    goal_id: Mapped[UUID] = part_of_key()
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    event: Mapped[str] = mapped_column(String(16))
    changes: Mapped[dict[str, Any]]
    recorded_at: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    created_at: Mapped[datetime] = set_now()


class GoalVectorRow(Table):
    """The vector of a goal's description, by generation."""

    __tablename__ = "goal_vector"
    __table_args__ = (child_of("goal", "goal_id"),)

    workspace_id: Mapped[UUID] = part_of_key()
    goal_id: Mapped[UUID] = part_of_key()
    generation: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    embedding: Mapped[Any] = mapped_column(Half())
    created_at: Mapped[datetime] = set_now()

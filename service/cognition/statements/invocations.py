"""Statements on tool invocations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, delete, func, insert, null, select, text
from sqlalchemy.sql.elements import TextClause

from service.cognition.values import Invocation, InvocationFilter, ToolStatsItem
from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import TOOL_INVOCATION, TURN

GIVEN = (
    "conversation_id", "turn_id", "turn_index", "timestamp", "tool_name", "task_type", "tool_input", "success",
    "latency_ms", "error_message",
)  # fmt: skip
"""Columns that are stored as they were given."""

ERASE_OF_DELETED_TURNS = text("""
    DELETE FROM tool_invocation i
    WHERE i.workspace_id = :workspace AND i.turn_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = i.workspace_id AND t.id = i.turn_id)
""")

# by key, because a ctid is unique only within one partition
ERASE_UNTIL = text("""
    DELETE FROM tool_invocation i USING (
        SELECT workspace_id, recorded_at, id FROM tool_invocation
        WHERE workspace_id = :workspace AND recorded_at <= :until LIMIT :batch
    ) old
    WHERE i.workspace_id = old.workspace_id AND i.recorded_at = old.recorded_at AND i.id = old.id
""")


_invocation = direct.reader(Invocation, scope=scopes.of_talk, redactions=lambda row: ())


async def add(session: Session, new: Invocation) -> tuple[int, datetime]:
    """Inserts an invocation; returns its id and time of recording."""
    columns = {name: getattr(new, name) for name in GIVEN}
    output = null() if new.tool_output is None else new.tool_output
    inserted = insert(TOOL_INVOCATION).values(
        **new.scope.columns, is_run=new.scope.is_run, **columns, tool_output=output
    )
    row = (await session.execute(inserted.returning(TOOL_INVOCATION.c.id, TOOL_INVOCATION.c.recorded_at))).one()
    return row.id, row.recorded_at


async def page(
    session: Session, scope: Scope, wanted: InvocationFilter, *, after: tuple[datetime, int] | None, limit: int
) -> list[Invocation]:
    """Invocations of a scope by time of recording, newest first, after `after` (recorded_at, id)."""
    query = select(*TOOL_INVOCATION.c).where(*_conditions(scope, wanted))
    key = TOOL_INVOCATION.c.recorded_at, TOOL_INVOCATION.c.id
    return await direct.newest(session, query, key, _invocation, after=after, limit=limit)


async def stats(session: Session, scope: Scope, wanted: InvocationFilter) -> list[ToolStatsItem]:
    """The statistics of each tool, the most used first. A scope without ids means the whole workspace."""
    latency, is_success = TOOL_INVOCATION.c.latency_ms, TOOL_INVOCATION.c.success
    query: Select[Any] = (
        select(
            TOOL_INVOCATION.c.tool_name.label("name"),
            func.count().label("usage_count"),
            func.count().filter(is_success).label("success_count"),
            (1.0 * func.count().filter(is_success) / func.count()).label("success_rate"),
            func.avg(latency).label("avg_latency_ms"),
            func.percentile_cont(0.5).within_group(latency).label("p50_latency_ms"),
            func.percentile_cont(0.95).within_group(latency).label("p95_latency_ms"),
            func.max(TOOL_INVOCATION.c.timestamp).label("last_used_at"),
        )
        .where(*_conditions(scope, wanted))
        .group_by(TOOL_INVOCATION.c.tool_name)
        .order_by(func.count().desc(), TOOL_INVOCATION.c.tool_name)
    )
    return [ToolStatsItem.of(row) for row in await session.execute(query)]


async def turn_index(session: Session, conversation_id: UUID, turn_id: UUID) -> int | None:
    """The turn's index in the conversation; None when it is not one of its turns."""
    conditions = (
        TURN.c.workspace_id == session.workspace_id,
        TURN.c.conversation_id == conversation_id,
        TURN.c.id == turn_id,
    )
    return await session.scalar(select(TURN.c.turn_index).where(*conditions))


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """Deletes the invocations with every given id (and the channel, if given); returns how many."""
    owned = scopes.deletable("tool_invocation", scope, channel, is_talk=True).clause
    return (await session.execute(delete(TOOL_INVOCATION).where(owned))).rowcount


async def erase_of_deleted_turns(session: Session) -> int:
    """Deletes invocations whose turn no longer exists; returns how many. Uses ix_tool_invocation_turn."""
    return (await session.execute(ERASE_OF_DELETED_TURNS)).rowcount


async def erase_all(session: Session, until: datetime, *, batch: int) -> int:
    """Deletes at most `batch` invocations of the workspace recorded until `until`; returns how many."""
    return (await session.execute(ERASE_UNTIL, {"until": until, "batch": batch})).rowcount


def _conditions(scope: Scope, wanted: InvocationFilter) -> Sequence[ColumnElement[bool] | TextClause]:
    columns = TOOL_INVOCATION.c
    equal = {columns[name]: getattr(wanted, name) for name in ("task_type", "tool_name", "conversation_id")}
    conditions: list[ColumnElement[bool] | TextClause] = [
        scopes.with_ids("tool_invocation", scope, wanted.channel, is_talk=True).clause,
        *(column == value for column, value in equal.items() if value is not None),
    ]
    if wanted.since is not None:
        conditions.append(columns.timestamp >= wanted.since)
    return conditions

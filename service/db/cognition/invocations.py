"""Which tools were used, how often, how well and how fast?

An invocation and the running total of its tool are written in one transaction; the tool's row is the last lock of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, DateTime, Select, bindparam, delete, func, select, text, tuple_
from sqlalchemy.sql.elements import TextClause

from service.db import scopes
from service.db.engine import Session
from service.db.tables import Tool as ToolTable
from service.db.tables import ToolInvocation as Table
from service.db.tables import Turn
from service.domain.procedure import Invocation, InvocationFilter, ToolStats, ToolTotals
from service.domain.scope import Scope

INSERT = text("""
    INSERT INTO tool_invocation (workspace_id, conversation_id, turn_id, turn_index, user_id, agent_id, run_id, channel,
                                 "timestamp", tool_name, task_type, tool_input, tool_output, success, latency_ms,
                                 error_message)
    VALUES (:workspace, :conversation_id, :turn_id, :turn_index, :user_id, :agent_id, :run_id, :channel, :timestamp,
            :tool_name, :task_type, CAST(CAST(:tool_input AS text) AS jsonb), CAST(CAST(:tool_output AS text) AS jsonb),
            :success, :latency_ms, :error_message)
    RETURNING id, recorded_at
""").bindparams(bindparam("timestamp", type_=DateTime(timezone=True)))

# A running average (Welford's update of a mean): no sum that grows for ever.
COUNT = text("""
    INSERT INTO tool AS t (workspace_id, name, usage_count, success_count, timed_count, avg_latency_ms, last_used_at)
    VALUES (:workspace, :name, 1, CAST(:success AS boolean)::integer,
            (CAST(:latency_ms AS float8) IS NOT NULL)::integer, CAST(:latency_ms AS float8), :at)
    ON CONFLICT (workspace_id, name) DO UPDATE SET
        usage_count = t.usage_count + 1,
        success_count = t.success_count + excluded.success_count,
        timed_count = t.timed_count + excluded.timed_count,
        avg_latency_ms = CASE WHEN excluded.avg_latency_ms IS NULL THEN t.avg_latency_ms ELSE
            coalesce(t.avg_latency_ms, 0)
            + (excluded.avg_latency_ms - coalesce(t.avg_latency_ms, 0)) / (t.timed_count + 1) END,
        last_used_at = greatest(t.last_used_at, excluded.last_used_at)
""").bindparams(bindparam("at", type_=DateTime(timezone=True)))

ERASE_GONE = text("""
    DELETE FROM tool_invocation i
    WHERE i.workspace_id = :workspace AND i.turn_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM turn t WHERE t.workspace_id = i.workspace_id AND t.id = i.turn_id)
""")


async def add(session: Session, new: Invocation) -> tuple[int, datetime]:
    """Id and time of recording of the new row; its tool counts one more use."""
    scope = new.scope
    row = (
        await session.execute(
            INSERT,
            {
                "workspace": scope.workspace_id,
                "conversation_id": new.conversation_id,
                "turn_id": new.turn_id,
                "turn_index": new.turn_index,
                "user_id": scope.user_id,
                "agent_id": scope.agent_id,
                "run_id": scope.run_id,
                "channel": scope.channel,
                "timestamp": new.timestamp,
                "tool_name": new.tool_name,
                "task_type": new.task_type,
                "tool_input": json.dumps(new.tool_input, ensure_ascii=False),
                "tool_output": None if new.tool_output is None else json.dumps(new.tool_output, ensure_ascii=False),
                "success": new.success,
                "latency_ms": new.latency_ms,
                "error_message": new.error_message,
            },
        )
    ).one()
    counted = {"workspace": scope.workspace_id, "name": new.tool_name, "success": new.success}
    await session.execute(COUNT, {**counted, "latency_ms": new.latency_ms, "at": new.timestamp})
    return row.id, row.recorded_at


async def page(
    session: Session, scope: Scope, asked: InvocationFilter, *, after: tuple[datetime, int] | None, limit: int
) -> list[Invocation]:
    """Uses in a scope, by when they were recorded, the latest first."""
    query = select(*Table.__table__.columns).where(*_where(scope, asked))
    if after is not None:
        query = query.where(tuple_(Table.recorded_at, Table.id) < tuple_(*after))
    rows = await session.execute(query.order_by(Table.recorded_at.desc(), Table.id.desc()).limit(limit))
    return [_invocation(row) for row in rows]


async def stats(session: Session, scope: Scope, asked: InvocationFilter) -> list[ToolStats]:
    """By tool, the most used first. A scope without ids is the whole workspace."""
    latency = func.percentile_cont
    query: Select[Any] = (
        select(
            Table.tool_name,
            func.count().label("uses"),
            func.count().filter(Table.success).label("good"),
            func.avg(Table.latency_ms).label("mean"),
            latency(0.5).within_group(Table.latency_ms).label("p50"),
            latency(0.95).within_group(Table.latency_ms).label("p95"),
            func.max(Table.timestamp).label("last"),
        )
        .where(*_where(scope, asked))
        .group_by(Table.tool_name)
        .order_by(func.count().desc(), Table.tool_name)
    )
    return [
        ToolStats(row.tool_name, row.uses, row.good, row.mean, row.p50, row.p95, row.last)
        for row in await session.execute(query)
    ]


async def tools(session: Session, workspace_id: UUID, *, after: str | None, limit: int) -> list[ToolTotals]:
    """The running totals of the workspace, by name."""
    query = select(*ToolTable.__table__.columns).where(ToolTable.workspace_id == workspace_id)
    if after is not None:
        query = query.where(ToolTable.name > after)
    return [
        ToolTotals(row.name, row.usage_count, row.success_count, row.avg_latency_ms, row.last_used_at)
        for row in await session.execute(query.order_by(ToolTable.name).limit(limit))
    ]


async def turn_index(session: Session, workspace_id: UUID, conversation_id: UUID, turn_id: UUID) -> int | None:
    """Where in the conversation the turn stands; None when it is not one of its turns."""
    here = Turn.workspace_id == workspace_id, Turn.conversation_id == conversation_id, Turn.id == turn_id
    return await session.scalar(select(Turn.turn_index).where(*here))


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """How many uses went, of all that have every given id (and the channel). The tools' totals stay."""
    return (await session.execute(delete(Table).where(scopes.owned("tool_invocation", scope, channel).clause))).rowcount


async def erase_of_gone_turns(session: Session, workspace_id: UUID) -> int:
    """How many uses went whose turn is there no more. Uses ix_tool_invocation_turn."""
    return (await session.execute(ERASE_GONE, {"workspace": workspace_id})).rowcount


async def erase_all(session: Session, workspace_id: UUID, until: datetime, *, batch: int) -> int:
    """How many uses of the workspace recorded by `until` went, at most `batch`. By key: a ctid is only unique within
    one partition."""
    key = Table.recorded_at, Table.id
    old = select(*key).where(Table.workspace_id == workspace_id, Table.recorded_at <= until).limit(batch)
    here = Table.workspace_id == workspace_id, tuple_(*key).in_(old)
    return (await session.execute(delete(Table).where(*here))).rowcount


def _where(scope: Scope, asked: InvocationFilter) -> Sequence[ColumnElement[bool] | TextClause]:
    found: list[ColumnElement[bool] | TextClause] = [scopes.owned("tool_invocation", scope, asked.channel).clause]
    if asked.task_type is not None:
        found.append(Table.task_type == asked.task_type)
    if asked.tool_name is not None:
        found.append(Table.tool_name == asked.tool_name)
    if asked.conversation_id is not None:
        found.append(Table.conversation_id == asked.conversation_id)
    if asked.since is not None:
        found.append(Table.timestamp >= asked.since)
    return found


def _invocation(row: Any) -> Invocation:
    return Invocation(
        Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel),
        row.tool_name,
        row.tool_input,
        row.success,
        row.timestamp,
        row.tool_output,
        row.task_type,
        row.latency_ms,
        row.error_message,
        row.conversation_id,
        row.turn_id,
        row.turn_index,
        row.id,
        row.recorded_at,
    )

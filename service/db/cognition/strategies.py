"""Which strategies are known, and which lie near to a task?

What is learned in one scope takes turns by an advisory lock, or two equal ones would both be new. Counts are changed by
the database itself, so that no use is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, delete, func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from service.db import idempotency, scopes
from service.db.engine import Session
from service.db.jobs.late_vectors import LateVectors
from service.db.tables import Strategy as Table
from service.db.tables import StrategyConversation, StrategyTool, StrategyVector
from service.domain.procedure import Strategy
from service.domain.scope import Scope
from service.domain.text import CleanText

Vector = NDArray[np.float32]

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('strategies:' || CAST(:name AS text), 0))")


async def lock(session: Session, scope: Scope) -> None:
    """The scope's turn to learn, until the transaction ends. Alone in its statement (A9)."""
    await session.execute(LOCK, {"name": scope.lock_name})


async def get(session: Session, workspace_id: UUID, strategy_id: UUID) -> Strategy | None:
    """With the conversations it was used in."""
    here = Table.workspace_id == workspace_id, Table.id == strategy_id
    row = (await session.execute(select(*Table.__table__.columns).where(*here))).one_or_none()
    if row is None:
        return None
    used = select(StrategyConversation.conversation_id, StrategyConversation.success).where(
        StrategyConversation.workspace_id == workspace_id, StrategyConversation.strategy_id == strategy_id
    )
    where = {each.conversation_id: each.success for each in await session.execute(used.limit(100))}
    return _strategy(row, where)


async def page(
    session: Session,
    scope: Scope,
    *,
    task_type: str | None = None,
    tool_name: str | None = None,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Strategy]:
    """Strategies of a scope, newest first; `tool_name`: those that use it."""
    query = select(*Table.__table__.columns).where(scopes.matching("strategy", scope).clause)
    if task_type is not None:
        query = query.where(Table.task_type == task_type)
    if tool_name is not None:
        uses = select(StrategyTool.strategy_id).where(
            StrategyTool.workspace_id == scope.workspace_id, StrategyTool.tool_name == tool_name
        )
        query = query.where(Table.id.in_(uses))
    if after is not None:
        query = query.where(tuple_(Table.created_at, Table.id) < tuple_(*after))
    rows = await session.execute(query.order_by(Table.created_at.desc(), Table.id.desc()).limit(limit))
    return [_strategy(row) for row in rows]


async def near(
    session: Session,
    scope: Scope,
    vector: Vector | None,
    *,
    generation: int,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> list[tuple[Strategy, float | None]]:
    """Strategies a read of this scope may see, the nearest first, each with its cosine; those without a vector, or all
    when `vector` is None, the most successful first, with None. Exact: the scope is cut by its btree."""
    where: list[Any] = [scopes.matching("strategy", scope, channels).clause]
    if task_type is not None:
        where.append(Table.task_type == task_type)
    return await _near(session, where, vector, generation=generation, limit=limit)


async def alike(
    session: Session,
    scope: Scope,
    vector: Vector | None,
    *,
    generation: int,
    limit: int,
    tool_sequence: Sequence[str],
    task_type: str | None,
) -> list[tuple[Strategy, float | None]]:
    """The same among those of exactly this scope and channel with just these tools for this type of task."""
    same_task = Table.task_type.is_not_distinct_from(task_type)
    where = [scopes.exactly("strategy", scope).clause, Table.tool_sequence == list(tool_sequence), same_task]
    return await _near(session, where, vector, generation=generation, limit=limit)


async def _near(
    session: Session, where: Sequence[Any], vector: Vector | None, *, generation: int, limit: int
) -> list[tuple[Strategy, float | None]]:
    columns = Table.__table__.columns
    rate = (Table.success_count + 1.0) / (Table.success_count + Table.failure_count + 2.0)
    query: Select[Any]
    if vector is None:
        query = select(*columns).where(*where).order_by(rate.desc(), Table.id).limit(limit)
        return [(_strategy(row), None) for row in await session.execute(query)]
    cosine = (1 - StrategyVector.embedding.cosine_distance(vector)).label("cosine")
    joined = (
        (StrategyVector.workspace_id == Table.workspace_id)
        & (StrategyVector.strategy_id == Table.id)
        & (StrategyVector.generation == generation)
    )
    query = (
        select(*columns, cosine)
        .outerjoin(StrategyVector, joined)
        .where(*where)
        .order_by((cosine + 0).desc().nulls_last(), rate.desc(), Table.id)
        .limit(limit)
    )
    return [(_strategy(row), row.cosine) for row in await session.execute(query)]


async def add(session: Session, new: Strategy, vector: Vector | None, *, generation: int) -> None:
    """A new strategy with its tools and its vector."""
    scope = new.scope
    key = {"workspace_id": scope.workspace_id}
    await session.execute(
        upsert(Table).values(
            **key,
            id=new.id,
            user_id=scope.user_id,
            agent_id=scope.agent_id,
            run_id=scope.run_id,
            channel=scope.channel,
            description=new.description,
            context_pattern=new.context_pattern,
            task_type=new.task_type,
            tool_sequence=list(new.tool_sequence),
            success_count=new.success_count,
            failure_count=new.failure_count,
            last_used_at=new.last_used_at,
        )
    )
    if new.tool_sequence:
        tools = [
            {**key, "strategy_id": new.id, "place": place, "tool_name": name}
            for place, name in enumerate(new.tool_sequence)
        ]
        await session.execute(upsert(StrategyTool).values(tools))
    if vector is not None:
        made = {**key, "strategy_id": new.id, "generation": generation, "embedding": vector}
        await session.execute(upsert(StrategyVector).values(**made))


async def reinforce(session: Session, workspace_id: UUID, strategy_id: UUID, *, success: bool, at: datetime) -> bool:
    """One more use that went well or did not. False when there is no such strategy."""
    counter = Table.success_count if success else Table.failure_count
    changed = update(Table).where(Table.workspace_id == workspace_id, Table.id == strategy_id)
    changed = changed.values({counter: counter + 1, Table.last_used_at: func.greatest(Table.last_used_at, at)})
    return bool((await session.execute(changed.values(version=Table.version + 1))).rowcount)


async def link(
    session: Session, workspace_id: UUID, strategy_id: UUID, conversation_id: UUID, *, success: bool
) -> None:
    """It was used in the conversation; the latest word on whether it went well counts."""
    made = upsert(StrategyConversation).values(
        workspace_id=workspace_id, strategy_id=strategy_id, conversation_id=conversation_id, success=success
    )
    made = made.on_conflict_do_update(constraint="pk_strategy_conversation", set_={"success": success})
    await session.execute(made)


async def remove(session: Session, workspace_id: UUID, strategy_id: UUID) -> bool:
    """Was there such a strategy? Its tools, conversations and vector go with it."""
    here = Table.workspace_id == workspace_id, Table.id == strategy_id
    gone = bool((await session.execute(delete(Table).where(*here))).rowcount)
    if gone:
        await idempotency.forget_shown(session, workspace_id, [strategy_id])
    return gone


async def erase(session: Session, scope: Scope, channel: str | None) -> int:
    """How many strategies went, of all that have every given id (and the channel), with answers kept of them."""
    gone = delete(Table).where(scopes.owned("strategy", scope, channel).clause).returning(Table.id)
    ids = list(await session.scalars(gone))
    await idempotency.forget_shown(session, scope.workspace_id, ids)
    return len(ids)


def _strategy(row: Any, conversations: dict[UUID, bool] | None = None) -> Strategy:
    return Strategy(
        row.id,
        Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel),
        CleanText(row.description),
        CleanText(row.context_pattern) if row.context_pattern is not None else None,
        row.task_type,
        tuple(row.tool_sequence),
        row.success_count,
        row.failure_count,
        row.version,
        row.created_at,
        row.last_used_at,
        conversations or {},
    )


LATE_VECTORS = LateVectors(Table, StrategyVector, "strategy_id", lambda row: _strategy(row).words)

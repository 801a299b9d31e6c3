"""Statements on strategies: lists, search by vector, learning, reinforcement.

An advisory lock per scope serialises learning (docs/decisions/006-scope-lock.md); otherwise two equal strategies could
both be new. Counts are incremented in the database, so that no use is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import any_, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from service.cognition.values import Strategy
from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.postgres.tables import STRATEGY, STRATEGY_CONVERSATION, STRATEGY_VECTOR
from service.providers.protocols import Vector
from service.runtime.statements.deferred_vectors import DeferredVectors

LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('strategies:' || CAST(:name AS text), 0))")


STORED = ("id", "description", "context_pattern", "task_type", "success_count", "failure_count", "last_used_at")
"""Columns of a new strategy with its fields' names."""

_strategy = direct.reader(
    Strategy, scope=scopes.of_row, tool_sequence=lambda row: tuple(row.tool_sequence), conversations=lambda row: {}
)


async def lock(session: Session, scope: Scope) -> None:
    """Makes this transaction the only one that learns in the scope until it ends. Alone in its statement, so that the
    next statement sees what the previous holder committed."""
    await session.execute(LOCK, {"name": scope.lock_name})


async def get(session: Session, strategy_id: UUID) -> Strategy | None:
    """The strategy with at most 100 of the conversations it was used in."""
    conditions = STRATEGY.c.workspace_id == session.workspace_id, STRATEGY.c.id == strategy_id
    row = (await session.execute(select(*STRATEGY.c).where(*conditions))).one_or_none()
    if row is None:
        return None
    used = select(STRATEGY_CONVERSATION.c.conversation_id, STRATEGY_CONVERSATION.c.success).where(
        STRATEGY_CONVERSATION.c.workspace_id == session.workspace_id, STRATEGY_CONVERSATION.c.strategy_id == strategy_id
    )
    outcomes = {row.conversation_id: row.success for row in await session.execute(used.limit(100))}
    return replace(_strategy(row), conversations=outcomes)


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
    query = select(*STRATEGY.c).where(scopes.readable("strategy", scope.private).clause)
    if task_type is not None:
        query = query.where(STRATEGY.c.task_type == task_type)
    if tool_name is not None:
        query = query.where(any_(STRATEGY.c.tool_sequence) == tool_name)
    key = STRATEGY.c.created_at, STRATEGY.c.id
    return await direct.newest(session, query, key, _strategy, after=after, limit=limit)


async def nearest(
    session: Session,
    scope: Scope,
    vector: Vector | None,
    *,
    generation: int,
    limit: int,
    channels: Sequence[str] = (),
    task_type: str | None = None,
) -> list[tuple[Strategy, float | None]]:
    """Strategies that a read of this scope may see, nearest first, each with its cosine. Those without a vector come
    last (all of them when `vector` is None), the most successful first, with None. An exact scan of the scope, which
    its btree narrows."""
    where: list[Any] = [scopes.readable("strategy", scope.private, channels).clause]
    if task_type is not None:
        where.append(STRATEGY.c.task_type == task_type)
    return await _nearest(session, where, vector, generation=generation, limit=limit)


async def nearest_same_task(
    session: Session, new: Strategy, vector: Vector | None, *, generation: int, limit: int
) -> list[tuple[Strategy, float | None]]:
    """Strategies of exactly the scope and channel of a new one, with exactly its tools and type of task."""
    same_task = STRATEGY.c.task_type.is_not_distinct_from(new.task_type)
    where = [scopes.exact("strategy", new.scope).clause, STRATEGY.c.tool_sequence == list(new.tool_sequence), same_task]
    return await _nearest(session, where, vector, generation=generation, limit=limit)


async def _nearest(
    session: Session, where: Sequence[Any], vector: Vector | None, *, generation: int, limit: int
) -> list[tuple[Strategy, float | None]]:
    rate = (STRATEGY.c.success_count + 1.0) / (STRATEGY.c.success_count + STRATEGY.c.failure_count + 2.0)
    cosine = (1 - STRATEGY_VECTOR.c.embedding.cosine_distance(vector)).label("cosine")
    joined = (
        (STRATEGY_VECTOR.c.workspace_id == STRATEGY.c.workspace_id)
        & (STRATEGY_VECTOR.c.strategy_id == STRATEGY.c.id)
        & (STRATEGY_VECTOR.c.generation == generation)
    )
    query = (
        select(*STRATEGY.c, cosine)
        .outerjoin(STRATEGY_VECTOR, joined)
        .where(*where)
        .order_by((cosine + 0).desc().nulls_last(), rate.desc(), STRATEGY.c.id)
        .limit(limit)
    )
    return [(_strategy(row), row.cosine) for row in await session.execute(query)]


async def add(session: Session, new: Strategy, vector: Vector | None, *, generation: int) -> None:
    """Inserts a strategy and its vector."""
    values = {name: getattr(new, name) for name in STORED} | {"tool_sequence": list(new.tool_sequence)}
    await session.execute(insert(STRATEGY).values(**new.scope.columns, **values))
    await LATE_VECTORS.put(session, new.id, vector, generation=generation)


async def reinforce(session: Session, strategy_id: UUID, *, success: bool, at: datetime) -> bool:
    """Adds one success or failure. False if the strategy does not exist."""
    counter = STRATEGY.c.success_count if success else STRATEGY.c.failure_count
    changed = update(STRATEGY).where(STRATEGY.c.workspace_id == session.workspace_id, STRATEGY.c.id == strategy_id)
    changed = changed.values(
        {counter: counter + 1, STRATEGY.c.last_used_at: func.greatest(STRATEGY.c.last_used_at, at)}
    )
    return bool((await session.execute(changed.values(version=STRATEGY.c.version + 1))).rowcount)


async def link(session: Session, strategy_id: UUID, conversation_id: UUID, *, success: bool) -> None:
    """Records that it was used in the conversation; a later outcome replaces an earlier one."""
    new = insert(STRATEGY_CONVERSATION).values(
        workspace_id=session.workspace_id, strategy_id=strategy_id, conversation_id=conversation_id, success=success
    )
    await session.execute(new.on_conflict_do_update(constraint="pk_strategy_conversation", set_={"success": success}))


async def is_linked(session: Session, strategy_id: UUID, conversation_id: UUID) -> bool:
    """Whether it is recorded that the strategy was used in the conversation."""
    key = (
        STRATEGY_CONVERSATION.c.workspace_id == session.workspace_id,
        STRATEGY_CONVERSATION.c.strategy_id == strategy_id,
        STRATEGY_CONVERSATION.c.conversation_id == conversation_id,
    )
    return await session.scalar(select(STRATEGY_CONVERSATION.c.success).where(*key)) is not None


LATE_VECTORS = DeferredVectors(
    "strategies", STRATEGY, STRATEGY_VECTOR, "strategy_id", lambda row: _strategy(row).embedded_text
)

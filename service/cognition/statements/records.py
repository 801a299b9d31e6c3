"""Statements that goals and strategies share: pages, the vector of the text, locking by scope, deletion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Select, TableClause, delete, tuple_
from sqlalchemy.dialects.postgresql import insert

from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.runtime.statements import idempotency
from service.runtime.statements.deferred_vectors import DeferredVectors

Made = TypeVar("Made")


def scope_of(row: Any) -> Scope:
    """The scope in the columns of a row."""
    return Scope(row.workspace_id, row.user_id, row.agent_id, row.run_id, row.channel)


def scope_columns(scope: Scope) -> dict[str, Any]:
    """The columns of a new row that hold its scope."""
    ids = {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id}
    return {"workspace_id": scope.workspace_id, **ids, "channel": scope.channel}


async def newest(
    session: Session,
    query: Select[Any],
    table: TableClause,
    make: Callable[[Any], Made],
    *,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> list[Made]:
    """The rows converted by `make`, newest first, after the keyset position `after` (created_at, id)."""
    key = table.c.created_at, table.c.id
    if after is not None:
        query = query.where(tuple_(*key) < tuple_(*after))
    return await direct.page(session, query.order_by(*(column.desc() for column in key)).limit(limit), None, make)


async def put_vector(
    session: Session,
    kind: DeferredVectors,
    workspace_id: UUID,
    record_id: UUID,
    vector: Vector | None,
    *,
    generation: int,
) -> None:
    """Stores the vector of a record that has none of this generation; None stores nothing."""
    if vector is not None:
        row = {"workspace_id": workspace_id, kind.owner: record_id, "generation": generation, "embedding": vector}
        await session.execute(insert(kind.vectors).values(**row))


async def remove(session: Session, table: TableClause, workspace_id: UUID, record_id: UUID) -> None:
    """Deletes a record with what belongs to it, and the stored answers to idempotent requests that show it."""
    columns = table.c
    await session.execute(delete(table).where(columns.workspace_id == workspace_id, columns.id == record_id))
    await idempotency.forget_answers_about(session, workspace_id, [record_id])


async def erase(session: Session, table: TableClause, scope: Scope, channel: str | None) -> int:
    """Deletes all records that have every given id (and the channel, if one is given); returns their number."""
    owned = scopes.deletable(table.name, scope, channel).clause
    ids = list(await session.scalars(delete(table).where(owned).returning(table.c.id)))
    await idempotency.forget_answers_about(session, scope.workspace_id, ids)
    return len(ids)

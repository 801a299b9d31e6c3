"""Statements that goals, strategies and invocations share: pages and deletion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Select, TableClause, delete, tuple_

from service.domain.scope import Scope
from service.postgres import direct, scopes
from service.postgres.engine import Session
from service.runtime.statements import idempotency

Made = TypeVar("Made")


async def newest(
    session: Session,
    query: Select[Any],
    key: Sequence[ColumnElement[Any]],
    make: Callable[[Any], Made],
    *,
    after: tuple[datetime, UUID | int] | None,
    limit: int,
) -> list[Made]:
    """The rows converted by `make`, newest first, after the keyset position `after`. `key`: a time and the id."""
    if after is not None:
        query = query.where(tuple_(*key) < tuple_(*after))
    return await direct.page(session, query.order_by(*(column.desc() for column in key)).limit(limit), None, make)


async def remove(session: Session, table: TableClause, record_id: UUID) -> None:
    """Deletes a record with what belongs to it, and the stored answers to idempotent requests that show it."""
    columns = table.c
    await session.execute(delete(table).where(columns.workspace_id == session.workspace_id, columns.id == record_id))
    await idempotency.forget_answers_about(session, [record_id])


async def erase(session: Session, table: TableClause, scope: Scope, channel: str | None) -> int:
    """Deletes all records that have every given id (and the channel, if one is given); returns their number."""
    owned = scopes.deletable(table.name, scope, channel).clause
    ids = list(await session.scalars(delete(table).where(owned).returning(table.c.id)))
    await idempotency.forget_answers_about(session, ids)
    return len(ids)

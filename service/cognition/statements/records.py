"""Statements that goals, strategies and invocations share: pages and deletion."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import TableClause, delete

from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.engine import Session
from service.runtime.statements import idempotency


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

"""How far is work that was promised? One row per operation; its request is redacted text and goes when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import func, insert, select, update

from service.db.engine import Session
from service.db.tables import Operation as Table

State = Literal["queued", "running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Operation:
    """`progress` (done and total) while it runs, where it can be told; `result` once done, `error` (code and detail)
    once failed."""

    id: UUID
    kind: str
    state: State
    request: Mapping[str, Any]
    progress: Mapping[str, Any] | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    created_at: datetime
    finished_at: datetime | None


async def add(session: Session, workspace_id: UUID, operation_id: UUID, kind: str, request: Mapping[str, Any]) -> None:
    row = {"workspace_id": workspace_id, "id": operation_id, "kind": kind, "state": "queued", "request": dict(request)}
    await session.execute(insert(Table), [row])


async def get(session: Session, workspace_id: UUID, operation_id: UUID) -> Operation | None:
    row = (
        await session.execute(
            select(
                Table.id,
                Table.kind,
                Table.state,
                Table.request,
                Table.progress,
                Table.result,
                Table.error,
                Table.created_at,
                Table.finished_at,
            ).where(Table.workspace_id == workspace_id, Table.id == operation_id)
        )
    ).one_or_none()
    return Operation(*row) if row else None


async def begin(session: Session, workspace_id: UUID, operation_id: UUID) -> None:
    """Says that work is under way; a finished operation stays finished."""
    await session.execute(
        update(Table)
        .where(Table.workspace_id == workspace_id, Table.id == operation_id, Table.finished_at.is_(None))
        .values(state="running")
    )


async def advance(session: Session, workspace_id: UUID, operation_id: UUID, progress: Mapping[str, Any]) -> None:
    """Says how far it is, in the transaction of the work itself: what is counted is done."""
    await session.execute(
        update(Table)
        .where(Table.workspace_id == workspace_id, Table.id == operation_id)
        .values(progress=dict(progress))
    )


async def finish(
    session: Session,
    workspace_id: UUID,
    operation_id: UUID,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Done with a result or failed with an error; the request is emptied, the texts stand in the memories now."""
    await session.execute(
        update(Table)
        .where(Table.workspace_id == workspace_id, Table.id == operation_id, Table.finished_at.is_(None))
        .values(
            state="failed" if error else "done",
            request={},
            result=dict(result) if result else None,
            error=dict(error) if error else None,
            finished_at=func.now(),
        )
    )

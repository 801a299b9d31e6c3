"""Requests that are answered before they are done: their progress, and finally the result or error.

The row keeps the request, whose text is redacted, only until it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Update, func, insert, select, update

from service.postgres.engine import Session
from service.postgres.tables import OPERATION

OperationState = Literal["queued", "running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """An operation. `progress` (done and total) while it runs, if it is known; `result` once done, `error` (code and
    detail) once failed."""

    id: UUID
    kind: str
    state: OperationState
    request: Mapping[str, Any]
    progress: Mapping[str, Any] | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None
    created_at: datetime
    finished_at: datetime | None


COLUMNS = [OPERATION.c[field.name] for field in fields(OperationRecord)]


async def add(session: Session, operation_id: UUID, kind: str, request: Mapping[str, Any]) -> None:
    row = {
        "workspace_id": session.workspace_id,
        "id": operation_id,
        "kind": kind,
        "state": "queued",
        "request": dict(request),
    }
    await session.execute(insert(OPERATION), [row])


async def get(session: Session, operation_id: UUID) -> OperationRecord | None:
    conditions = OPERATION.c.workspace_id == session.workspace_id, OPERATION.c.id == operation_id
    row = (await session.execute(select(*COLUMNS).where(*conditions))).one_or_none()
    return OperationRecord(*row) if row else None


async def list_newest(session: Session, *, skip: int, limit: int) -> list[OperationRecord]:
    """Newest first, by id, since ids begin with their time."""
    query = select(*COLUMNS).where(OPERATION.c.workspace_id == session.workspace_id)
    rows = await session.execute(query.order_by(OPERATION.c.id.desc()).offset(skip).limit(limit))
    return [OperationRecord(*row) for row in rows]


def _update(workspace_id: UUID, operation_id: UUID) -> Update:
    return update(OPERATION).where(OPERATION.c.workspace_id == workspace_id, OPERATION.c.id == operation_id)


async def begin(session: Session, operation_id: UUID) -> OperationRecord | None:
    """Marks the work as running; None if the operation is finished or gone."""
    unfinished = _update(session.workspace_id, operation_id).where(OPERATION.c.finished_at.is_(None))
    row = (await session.execute(unfinished.values(state="running").returning(*COLUMNS))).one_or_none()
    return OperationRecord(*row) if row else None


async def advance(session: Session, operation_id: UUID, progress: Mapping[str, Any]) -> None:
    """Stores the progress, in the transaction of the work itself, so that counted work is done."""
    await session.execute(_update(session.workspace_id, operation_id).values(progress=dict(progress)))


async def finish(
    session: Session,
    operation_id: UUID,
    *,
    result: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> None:
    """Marks it as done with a result or failed with an error, and empties the request, whose texts are now in
    memories."""
    ended = {"result": dict(result) if result else None, "error": dict(error) if error else None}
    unfinished = _update(session.workspace_id, operation_id).where(OPERATION.c.finished_at.is_(None))
    state = "failed" if error else "done"
    await session.execute(unfinished.values(state=state, request={}, finished_at=func.now(), **ended))

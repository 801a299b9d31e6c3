"""Deletes and resets that are too large for a request, in batches."""

from __future__ import annotations

from uuid import UUID

from service.access import workspaces
from service.domain.errors import ServiceError
from service.domain.job import Counts, Job
from service.erasure.forget_scope import RESET, forget_next_batch, reset_next_batch, reset_other_rows
from service.queue import operations
from service.queue.operations import OperationRecord
from service.runtime.resources import Resources


async def run(job: Job, res: Resources) -> Counts | None:
    """Deletes until nothing is left. Each batch commits with its count, so a job that dies goes on where it stopped."""
    operation_id = UUID(str(job.payload["operation_id"]))
    async with res.db.begin(job.workspace_id) as session:
        operation = await operations.get(session, job.workspace_id, operation_id)
        await operations.begin(session, job.workspace_id, operation_id)
    if operation is None or operation.finished_at is not None:
        return None
    try:
        await _work(operation, job.workspace_id, await workspaces.with_own_settings(job, res))
    except ServiceError as exc:
        if not exc.retryable or job.is_last_attempt:
            async with res.db.begin(job.workspace_id) as session:
                error = {"code": exc.code, "detail": exc.detail}
                await operations.finish(session, job.workspace_id, operation_id, error=error)
        raise
    return await _finish(job.workspace_id, operation_id, res)


async def _work(operation: OperationRecord, workspace_id: UUID, res: Resources) -> None:
    part = reset_next_batch if operation.kind == RESET else forget_next_batch
    last = await part(operation, workspace_id, None, res)
    while last is not None:
        last = await part(operation, workspace_id, last, res)
    while operation.kind == RESET and await reset_other_rows(operation, workspace_id, res):
        pass


async def _finish(workspace_id: UUID, operation_id: UUID, res: Resources) -> Counts:
    async with res.db.begin(workspace_id) as session:
        now = await operations.get(session, workspace_id, operation_id)
        deleted = int((now.progress or {}).get("done", 0)) if now else 0
        await operations.finish(session, workspace_id, operation_id, result={"deleted": deleted})
    return {"deleted": deleted}

"""Deleting a scope or a whole workspace.

Deleted memories cannot be restored, but their history stays, except after a reset. Small deletes are one transaction;
above MAX_INLINE_ROWS rows the work is an operation whose job works in batches and reports its progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.access import workspace_jobs
from service.domain.job import Counts, Job, NewJob
from service.domain.request import Call
from service.domain.scope import Extent, Scope
from service.erasure.statements import activity, purge
from service.graph.statements import entities
from service.http.schemas import ScopeDeletionResponse, url_of
from service.memories.lifecycle import in_batches
from service.memories.statements import deletion
from service.postgres.engine import Session
from service.queue.statements import operations, queue
from service.queue.statements.operations import OperationRecord
from service.runtime.resources import Resources
from service.runtime.transactions import Write, check_share, plain_transaction

MAX_INLINE_ROWS = 1_000  # rows a request deletes while the caller waits: some 200 ms
SCOPE, RESET = "forget_scope", "reset"
RESET_BATCH = 2_000  # a row costs a fifth without writing history


async def forget_scope(extent: Extent, res: Resources, call: Call) -> ScopeDeletionResponse:
    """Deletes everything of a scope that is committed now. Many memories become an operation; the other rows of the
    scope are deleted at once. `deleted` counts memories. A scope without ids is the shared one."""
    workspace_id, shared = extent.scope.workspace_id, extent.scope.is_shared
    check_share(extent.scope, call)
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        if not shared:
            await purge.cancel_accepted(session, extent.scope, extent.channel)
            await activity.delete_activity(session, extent.scope, extent.channel)
        count, newest = await deletion.measure(session, extent)
        if count > MAX_INLINE_ROWS and newest is not None:
            details = _to_json(extent.scope, extent.channel, newest)
            forgotten = await _start_operation(session, SCOPE, details, count)
        else:
            extent = Extent(extent.scope, extent.channel, newest)
            ids = await deletion.next_ids(session, extent, after=None, limit=MAX_INLINE_ROWS)
            forgotten = _done(await _delete(write, extent, ids))
            await _delete_unnamed_entities(session, extent, res)
        if not shared:
            await activity.delete_conversations(session, extent.scope, extent.channel)
        return await write.answer(forgotten)


async def _delete(write: Write, extent: Extent, ids: Sequence[UUID]) -> int:
    """Deletes the memories of the extent with these ids; returns how many."""
    deleted: list[UUID] = []
    for part in in_batches(ids):
        deleted += await deletion.delete_memories(write.session, part, generation=write.res.generation)
    if deleted:
        await write.audit("delete", extent.scope, deleted, covers=_to_columns(extent))
    return len(deleted)


async def _delete_unnamed_entities(session: Session, extent: Extent, res: Resources) -> None:
    """Deletes entities that callers created for a user, along with all of the user's memories."""
    scope = extent.scope
    if scope.user_id is not None and scope.agent_id is None and scope.run_id is None:
        await entities.delete_unnamed(session, scope, extent.channel, upto=res.clock())


async def _start_operation(session: Session, kind: str, details: dict[str, Any], total: int) -> ScopeDeletionResponse:
    """Queues work that takes too long for a request, as an operation with its job."""
    operation_id = uuid7()
    await operations.add(session, operation_id, kind, details)
    await operations.advance(session, operation_id, {"done": 0, "total": total})
    job = NewJob("forget_scope", payload={"operation_id": str(operation_id)})
    await queue.enqueue(session, [job])
    return ScopeDeletionResponse(deleted=0, status="queued", operation_id=operation_id, url=url_of(operation_id))


def _done(deleted: int) -> ScopeDeletionResponse:
    return ScopeDeletionResponse(deleted=deleted, status="done", operation_id=None, url=None)


async def forget_next_batch(
    operation: OperationRecord, workspace_id: UUID, after: UUID | None, res: Resources
) -> UUID | None:
    """Deletes one batch of an operation, counted in the same transaction. Returns the last id it examined, after which
    the next batch continues (from the beginning it would walk over all dead rows), or None if nothing is left."""
    extent = _extent(workspace_id, operation.request)
    async with res.db.begin(workspace_id, writes_shared=extent.scope.is_shared) as session:
        ids = await deletion.next_ids(session, extent, after=after)
        write = Write(session, res, Call(f"operation:{operation.id}"))
        deleted = await _delete(write, extent, ids)
        await _count(session, operation.id, deleted)
        if not ids:
            await _delete_unnamed_entities(session, extent, res)
    return ids[-1] if ids else None


async def empty_workspace(workspace_id: UUID, res: Resources, call: Call) -> ScopeDeletionResponse:
    """Empties the workspace; `deleted` counts memories. Many become an operation."""
    own = call.idempotency.key if call.idempotency else ""
    async with plain_transaction(workspace_id, res, call) as write:
        session = write.session
        await purge.cancel_accepted(session, Scope(workspace_id))
        count, newest, until = await purge.measure_workspace(session)
        if count > MAX_INLINE_ROWS and newest is not None:
            details = {"upto": newest.isoformat(), "until": until.isoformat()}
            forgotten = await _start_operation(session, RESET, details, count)
        else:
            if newest is not None:
                await purge.remove_memories(session, newest, after=None, batch=MAX_INLINE_ROWS)
            while await purge.remove_the_rest(session, until, batch=RESET_BATCH, own_key=own):
                pass
            forgotten = _done(count)
        await write.audit("reset", Scope(workspace_id), [], memories=count)
        return await write.answer(forgotten)


async def _reset_next_batch(
    operation: OperationRecord, workspace_id: UUID, after: UUID | None, res: Resources
) -> UUID | None:
    """Deletes the next batch of memories of a reset."""
    upto = datetime.fromisoformat(operation.request["upto"])
    async with res.db.begin(workspace_id) as session:
        deleted = await purge.remove_memories(session, upto, after=after, batch=RESET_BATCH)
        await _count(session, operation.id, len(deleted))
    return deleted[-1] if deleted else None


async def _reset_other_rows(operation: OperationRecord, workspace_id: UUID, res: Resources) -> int:
    """Deletes one batch of all other rows of a reset; returns how many, 0 if nothing is left."""
    until = datetime.fromisoformat(operation.request["until"])
    async with res.db.begin(workspace_id) as session:
        return await purge.remove_the_rest(session, until, batch=RESET_BATCH)


async def run(job: Job, res: Resources) -> Counts | None:
    """Deletes until nothing is left. Each batch commits with its count, so an interrupted job continues."""
    result = await workspace_jobs.run_operation(job, res, partial(_work, job.workspace_id))
    return {"deleted": result["deleted"]} if result is not None else None


async def _work(workspace_id: UUID, operation: OperationRecord, res: Resources) -> Mapping[str, Any]:
    part = _reset_next_batch if operation.kind == RESET else forget_next_batch
    last = await part(operation, workspace_id, None, res)
    while last is not None:
        last = await part(operation, workspace_id, last, res)
    while operation.kind == RESET and await _reset_other_rows(operation, workspace_id, res):
        pass
    async with res.db.read(workspace_id) as session:
        current = await operations.get(session, operation.id)
    return {"deleted": int((current.progress or {}).get("done", 0)) if current else 0}


async def _count(session: Session, operation_id: UUID, more: int) -> None:
    operation = await operations.get(session, operation_id)
    progress = dict(operation.progress or {}) if operation else {}
    done = progress.get("done", 0) + more
    await operations.advance(session, operation_id, {"done": done, "total": max(done, progress.get("total", 0))})


def _to_json(scope: Scope, channel: str | None, upto: datetime) -> dict[str, Any]:
    return {"scope": [scope.user_id, scope.agent_id, scope.run_id], "channel": channel, "upto": upto.isoformat()}


def _extent(workspace_id: UUID, kept: Mapping[str, Any]) -> Extent:
    return Extent(Scope(workspace_id, *kept["scope"]), kept["channel"], datetime.fromisoformat(kept["upto"]))


def _to_columns(extent: Extent) -> dict[str, str | None]:
    scope = extent.scope
    return {"user_id": scope.user_id, "agent_id": scope.agent_id, "run_id": scope.run_id, "channel": extent.channel}

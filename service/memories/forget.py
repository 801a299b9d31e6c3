"""Deleting one memory, several, a scope, a whole workspace, and what has outlived its time.

What is deleted cannot be restored, but its history stays, except after a reset. Small deletes are one transaction;
above AT_ONCE rows the work is an operation whose job goes in batches and reports its progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from service.access.statements.keys import workspace
from service.domain.request import WriteContext
from service.domain.revision import Expected
from service.domain.scope import NIL_WORKSPACE, Scope
from service.erasure.statements import purge
from service.graph.statements import entities
from service.memories.statements import deletion, memories
from service.memories.statements.deletion import BATCH, Extent
from service.postgres.engine import Session
from service.queue import operations, schedule
from service.queue.operations import OperationRecord
from service.runtime.resources import Resources
from service.runtime.transactions import (
    append_audit,
    check,
    check_share,
    check_share_of,
    missing,
    plain_transaction,
    start_operation,
    store_answer,
    write_transaction,
)

AT_ONCE = 1_000  # rows a request deletes while the caller waits: some 200 ms
SCOPE, RESET = "forget_scope", "reset"
RESET_BATCH = 2_000  # without history to write a row costs a fifth


@dataclass(frozen=True, slots=True)
class ForgottenScope:
    """`deleted`: how many memories; `operation_id` when the work has only begun."""

    deleted: int = 0
    operation_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ForgottenMemory:
    """What became of one id: deleted now, deleted before, or (neither) never seen."""

    id: UUID
    deleted: bool = False
    already_deleted: bool = False


async def forget(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext, *, expected: Expected | None = None
) -> ForgottenMemory:
    """Deletes one memory; again is fine. Raises NotFound for an id that was never seen, or PreconditionFailed."""
    async with res.db.read(workspace_id) as session:
        memory = await memories.get(session, workspace_id, memory_id)
    if memory is None:
        return await _deleted_before(workspace_id, memory_id, res, request)
    async with write_transaction(memory.scope, res, request) as session:
        now = await memories.get(session, workspace_id, memory_id)
        if now is not None:
            check(now.version, expected)
        deleted = await deletion.delete_memories(session, workspace_id, [memory_id], generation=res.generation)
        found = ForgottenMemory(memory_id, deleted=bool(deleted), already_deleted=not deleted)
        if deleted:
            await append_audit(session, "delete", memory.scope, deleted, request, res)
        await store_answer(session, workspace_id, found, request)
    return found


async def _deleted_before(
    workspace_id: UUID, memory_id: UUID, res: Resources, request: WriteContext
) -> ForgottenMemory:
    async with plain_transaction(workspace_id, res, request) as session:
        if not await deletion.deleted_before(session, workspace_id, [memory_id]):
            raise missing()
        found = ForgottenMemory(memory_id, already_deleted=True)
        await store_answer(session, workspace_id, found, request)
    return found


async def forget_many(
    workspace_id: UUID, ids: Sequence[UUID], res: Resources, request: WriteContext
) -> list[ForgottenMemory]:
    """What became of each id, in their order; all in one transaction. Unknown ids do not
    keep the others from being deleted; a shared memory does, for a request that may not write such."""
    async with plain_transaction(workspace_id, res, request) as session:
        await check_share_of(session, workspace_id, ids, request)
        deleted: set[UUID] = set()
        for part in _parts(sorted(set(ids))):
            deleted.update(await deletion.delete_memories(session, workspace_id, part, generation=res.generation))
        before = await deletion.deleted_before(session, workspace_id, [each for each in ids if each not in deleted])
        if deleted:
            await append_audit(session, "delete", Scope(workspace_id), sorted(deleted), request, res)
        found = [ForgottenMemory(each, each in deleted, each in before) for each in ids]
        await store_answer(session, workspace_id, found, request)
    return found


async def forget_scope(extent: Extent, res: Resources, request: WriteContext) -> ForgottenScope:
    """Deletes everything of a scope that is committed by now, and nothing else. Many memories become an operation, the
    other rows of the scope are deleted at once. `deleted` counts memories. A scope without ids is the shared one, which
    has nothing but memories."""
    workspace_id, shared = extent.scope.workspace_id, extent.scope.is_shared
    check_share(extent.scope, request)
    async with plain_transaction(workspace_id, res, request) as session:
        count, newest = await deletion.measure(session, extent)
        if not shared:
            await deletion.delete_activity(session, extent.scope, extent.channel)
        if count > AT_ONCE and newest is not None:
            details = _to_json(extent.scope, extent.channel, newest)
            found = ForgottenScope(
                operation_id=await start_operation(session, workspace_id, SCOPE, details, count, res)
            )
        else:
            found = ForgottenScope(
                await _delete_at_once(session, Extent(extent.scope, extent.channel, newest), res, request)
            )
        if not shared:
            await deletion.delete_conversations(session, extent.scope, extent.channel)
        await store_answer(session, workspace_id, found, request)
    return found


async def _delete_at_once(session: Session, extent: Extent, res: Resources, request: WriteContext) -> int:
    ids = await deletion.next_ids(session, extent, after=None, limit=AT_ONCE)
    deleted: list[UUID] = []
    for part in _parts(ids):
        deleted += await deletion.delete_memories(session, extent.scope.workspace_id, part, generation=res.generation)
    await _delete_unnamed_entities(session, extent, res)
    if deleted:
        await append_audit(session, "delete", extent.scope, deleted, request, res, covers=_named(extent))
    return len(deleted)


async def _delete_unnamed_entities(session: Session, extent: Extent, res: Resources) -> None:
    """The entities that were made by hand for a user go with all of the user's memories."""
    scope = extent.scope
    if scope.user_id is not None and scope.agent_id is None and scope.run_id is None:
        await entities.delete_unnamed(session, scope, extent.channel, upto=res.clock())


async def forget_next_batch(
    operation: OperationRecord, workspace_id: UUID, after: UUID | None, res: Resources
) -> UUID | None:
    """Deletes one batch of an operation, counted in the same transaction. Returns the last id it looked at, from which
    the next batch goes on (from the beginning it would walk over all dead rows), or None when nothing is left."""
    extent = _extent(workspace_id, operation.request)
    async with res.db.begin(workspace_id, writes_shared=extent.scope.is_shared) as session:
        ids = await deletion.next_ids(session, extent, after=after)
        deleted = await deletion.delete_memories(session, workspace_id, ids, generation=res.generation)
        if deleted:
            await _count(session, workspace_id, operation.id, len(deleted))
            request = WriteContext(f"operation:{operation.id}")
            await append_audit(session, "delete", extent.scope, deleted, request, res, covers=_named(extent))
        if not ids:
            await _delete_unnamed_entities(session, extent, res)
    return ids[-1] if ids else None


async def empty_workspace(workspace_id: UUID, res: Resources, request: WriteContext) -> ForgottenScope:
    """Empties the workspace; `deleted` counts memories. Many become an operation."""
    own = request.idempotency.key if request.idempotency else ""
    async with plain_transaction(workspace_id, res, request) as session:
        await purge.cancel_accepted(session, workspace_id)
        count, newest, until = await purge.measure_workspace(session, workspace_id)
        if count > AT_ONCE and newest is not None:
            details = {"upto": newest.isoformat(), "until": until.isoformat()}
            found = ForgottenScope(
                operation_id=await start_operation(session, workspace_id, RESET, details, count, res)
            )
        else:
            if newest is not None:
                await purge.remove_memories(session, workspace_id, newest, after=None, batch=AT_ONCE)
            while await purge.remove_the_rest(session, workspace_id, until, batch=RESET_BATCH, own_key=own):
                pass
            found = ForgottenScope(count)
        await append_audit(session, "reset", Scope(workspace_id), [], request, res, memories=count)
        await store_answer(session, workspace_id, found, request)
    return found


async def reset_next_batch(
    operation: OperationRecord, workspace_id: UUID, after: UUID | None, res: Resources
) -> UUID | None:
    """The same for the memories of a reset."""
    upto = datetime.fromisoformat(operation.request["upto"])
    async with res.db.begin(workspace_id) as session:
        deleted = await purge.remove_memories(session, workspace_id, upto, after=after, batch=RESET_BATCH)
        if deleted:
            await _count(session, workspace_id, operation.id, len(deleted))
    return deleted[-1] if deleted else None


async def reset_other_rows(operation: OperationRecord, workspace_id: UUID, res: Resources) -> int:
    """Deletes one batch of all other rows of a reset; returns how many, 0 when nothing is left."""
    until = datetime.fromisoformat(operation.request["until"])
    async with res.db.begin(workspace_id) as session:
        return await purge.remove_the_rest(session, workspace_id, until, batch=RESET_BATCH)


async def _count(session: Session, workspace_id: UUID, operation_id: UUID, more: int) -> None:
    found = await operations.get(session, workspace_id, operation_id)
    progress = dict(found.progress or {}) if found else {}
    done = progress.get("done", 0) + more
    await operations.advance(
        session, workspace_id, operation_id, {"done": done, "total": max(done, progress.get("total", 0))}
    )


def _parts(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    return (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))


def _to_json(scope: Scope, channel: str | None, upto: datetime) -> dict[str, Any]:
    return {"scope": [scope.user_id, scope.agent_id, scope.run_id], "channel": channel, "upto": upto.isoformat()}


def _extent(workspace_id: UUID, kept: Mapping[str, Any]) -> Extent:
    return Extent(Scope(workspace_id, *kept["scope"]), kept["channel"], datetime.fromisoformat(kept["upto"]))


def _named(extent: Extent) -> dict[str, str | None]:
    scope = extent.scope
    return {
        "user_id": scope.user_id,
        "agent_id": scope.agent_id,
        "run_id": scope.run_id,
        "channel": extent.channel,
    }


async def remove_outlived(res: Resources) -> int:
    """Deletes memories that have outlived their `expires_at` or the retention of their workspace, in batches until none
    is left. Returns how many, of all workspaces; each has a DELETE in its history."""
    removed = 0
    while True:
        async with res.db.read(NIL_WORKSPACE) as session:
            found = await schedule.outlived(
                session, res.clock(), retention_days=res.settings.memory_retention_days, limit=BATCH
            )
        batch = 0
        for workspace_id, group in groupby(sorted(found), key=itemgetter(0)):
            batch += await _remove_expired(workspace_id, [memory_id for _, memory_id in group], res)
        removed += batch
        if not batch:  # nothing left, or other workers were faster
            return removed


async def _remove_expired(workspace_id: UUID, ids: list[UUID], res: Resources) -> int:
    async with res.db.begin(workspace_id) as session:
        settings = res.of_workspace(dict((await workspace(session, workspace_id)).settings))
        deleted = await deletion.delete_memories(
            session, workspace_id, ids, generation=res.generation, withdraws="expired"
        )
        if deleted:
            await append_audit(
                session,
                "delete",
                Scope(workspace_id),
                deleted,
                WriteContext("job:cleanup"),
                settings,
                reason="outlived",
            )
    return len(deleted)

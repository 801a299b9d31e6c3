"""Ageing and promotion. Lets relevance, salience and the confidence of inferred facts fade, flags stale memories,
archives faded ones; makes memories of a project that were often used and said in several conversations known
everywhere.

On schedule, a run in the nil workspace starts a run in each workspace that is due; that one works in batches of one
transaction each. Every number is computed from a stored base and the clock, and a memory is promoted by the verb of the
route, which checks its figures again, so an interrupted, repeated or concurrent run does no harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import TextClause

from service.access import workspace_jobs
from service.conversations.statements import conversations
from service.domain.job import Counts, Job
from service.domain.request import Call, Operation
from service.domain.scope import NIL_ID, Scope
from service.memories import writing
from service.memories.promote import archive_stale_copy, promote_if_worthy
from service.memories.statements import promotable
from service.memories.writing import ChangeContext
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import plain_transaction, write_transaction
from service.upkeep.statements import fading

BATCH_ROWS = 1_000
Ids = TypeVar("Ids", bound=Collection[UUID])

BATCH = 100
"""Memories that are archived in one transaction, under the lock of their scope, in some 100 ms; or promoted."""


async def relevance(job: Job, res: Resources) -> Counts:
    """Updates the relevance of each memory by the time since its last use."""
    return await _age(job, fading.RELEVANCE, res)


async def decay(job: Job, res: Resources) -> Counts:
    """Updates the salience of memories and entities and the confidence of inferred facts; then removes faded entities
    that nothing mentions, and archives idle conversations."""
    memories = await _age(job, fading.MEMORY_SALIENCE, res)
    facts = await _age(job, fading.CONFIDENCE, res)
    entities = await _age(job, fading.ENTITY_SALIENCE, res, entities=True)
    remove = partial(fading.remove_forgotten, now=res.clock(), batch=BATCH_ROWS)
    removed = await _in_batches(remove, job, res, "delete_entity", why="faded")
    before = res.clock() - timedelta(days=res.settings.jobs.ageing.conversation_archive_days)
    archive_idle = partial(conversations.archive_idle, before=before, batch=BATCH_ROWS)
    idle = await _in_batches(archive_idle, job, res, "archive", subject="episodic", why="idle")
    return {
        **memories,
        "facts": facts["seen"],
        "facts_changed": facts["changed"],
        "entities": entities["seen"],
        "entities_changed": entities["changed"],
        "entities_removed": removed,
        "conversations_archived": idle,
    }


async def _in_batches(
    change: Callable[..., Awaitable[list[UUID]]], job: Job, res: Resources, operation: Operation, **audit: Any
) -> int:
    """Changes rows by ascending id, a batch and a transaction at a time; returns how many."""
    total = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with plain_transaction(job.workspace_id, res, workspace_jobs.call_of(job)) as write:
            ids = await change(write.session, after=last)
            if ids:
                await write.audit(operation, Scope(job.workspace_id), ids, **audit)
        last = max(ids) if len(ids) == BATCH_ROWS else None
        total += len(ids)
    return total


async def flag_stale(job: Job, res: Resources) -> Counts:
    """Flags memories past their end or long unused, and clears the flag of those in use again."""
    return await _age(job, fading.STALE, res)


async def archive(job: Job, res: Resources) -> Counts:
    """Archives faded memories if the workspace is set to; a requested run always does. An archived memory can be read
    by id and restored."""
    archived = 0
    async for faded in _batches(fading.list_faded, job, res):
        by_scope: dict[Scope, list[UUID]] = {}
        for memory_id, scope in faded.items():
            by_scope.setdefault(scope, []).append(memory_id)
        for scope, ids in by_scope.items():
            archived += await _archive(scope, ids, res, workspace_jobs.call_of(job))
    return {"archived": archived}


async def _batches(find: Callable[..., Awaitable[Ids]], job: Job, res: Resources) -> AsyncIterator[Ids]:
    """The ids that `find` gives, in batches."""
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.read(job.workspace_id) as session:
            ids = await find(session, after=last, batch=BATCH)
        yield ids
        last = list(ids)[-1] if len(ids) == BATCH else None


async def _archive(scope: Scope, ids: list[UUID], res: Resources, call: Call) -> int:
    """Archives memories under the lock of the scope, so that no store treats one of them as a live duplicate."""
    async with write_transaction(scope, res, call) as write:
        archived = await writing.archive(ChangeContext(write, scope), ids)
        if archived:
            await write.audit("archive", scope, archived, why="faded")
    return len(archived)


async def _age(job: Job, statement: TextClause, res: Resources, *, entities: bool = False) -> Mapping[str, int]:
    """Goes over all rows of the workspace, a batch and a transaction at a time."""
    workspace_id, now, rules = job.workspace_id, res.clock(), res.settings.jobs.ageing
    async with res.db.read(workspace_id) as session:
        total = await fading.count(session, entities=entities)
    seen = changed = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.begin(workspace_id) as session:
            read, written, last = await fading.age(session, statement, rules, now=now, after=last)
            seen, changed = seen + read, changed + written
            await queue.advance(session, job, seen, total)
    return {"seen": seen, "changed": changed}


async def promote(job: Job, res: Resources) -> Counts:
    """Archives copies whose originals have changed or ended since; promotes memories that meet the workspace's
    thresholds to `_global`."""
    call = workspace_jobs.call_of(job)
    archived = seen = promoted = 0
    async for copies in _batches(partial(promotable.list_stale_copies, now=res.clock()), job, res):
        for copy_id in copies:
            archived += await archive_stale_copy(job.workspace_id, copy_id, res, call)
    worthy = partial(promotable.list_worthy, rules=res.settings.jobs.promoting, now=res.clock())
    async for ids in _batches(worthy, job, res):
        for memory_id in ids:
            promoted += await promote_if_worthy(job.workspace_id, memory_id, res, call) is not None
        seen += len(ids)
        async with res.db.begin(job.workspace_id) as session:
            await queue.advance(session, job, seen, seen)
    return {"seen": seen, "promoted": promoted, "archived": archived}

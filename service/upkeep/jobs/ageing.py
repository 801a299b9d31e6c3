"""Ageing: lets relevance, salience and the confidence of inferred facts fade, flags stale memories, archives faded
ones.

On schedule, a run in the nil workspace starts a run in each workspace that is due; that one works in batches of one
transaction each. Every number is computed from a stored base and the clock, so an interrupted or repeated run does no
harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from sqlalchemy import TextClause

from service.access import workspace_jobs
from service.conversations.statements import conversations
from service.domain.job import Counts, Job
from service.domain.memory import Memory
from service.domain.request import Call
from service.domain.scope import NIL_ID, Scope
from service.memories import writing
from service.memories.statements import memories
from service.memories.writing import ChangeContext
from service.queue.statements import queue
from service.runtime.resources import Resources
from service.runtime.transactions import plain_transaction, write_transaction
from service.upkeep.statements import fading

BATCH_ROWS = 1_000
ARCHIVED_AT_ONCE = 100  # in one transaction, under the lock of their scope: some 100 ms


async def relevance(job: Job, res: Resources) -> Counts:
    """Updates the relevance of each memory by the time since its last use."""
    return await _age(job, fading.RELEVANCE, res)


async def decay(job: Job, res: Resources) -> Counts:
    """Updates the salience of memories and entities and the confidence of inferred facts; then removes faded entities
    that nothing mentions, and archives idle conversations."""
    memories = await _age(job, fading.MEMORY_SALIENCE, res)
    facts = await _age(job, fading.CONFIDENCE, res)
    entities = await _age(job, fading.ENTITY_SALIENCE, res, entities=True)
    removed = await _in_batches(_remove_forgotten_entities, job, res)
    idle = await _in_batches(_archive_idle_conversations, job, res)
    return {
        **memories,
        "facts": facts["seen"],
        "facts_changed": facts["changed"],
        "entities": entities["seen"],
        "entities_changed": entities["changed"],
        "entities_removed": removed,
        "conversations_archived": idle,
    }


async def _in_batches(verb: Callable[..., Awaitable[int]], job: Job, res: Resources) -> int:
    """Calls the verb until a batch is not full; returns the total."""
    total, done = 0, BATCH_ROWS
    while done == BATCH_ROWS:
        done = await verb(job.workspace_id, res, workspace_jobs.call_of(job), batch=BATCH_ROWS)
        total += done
    return total


async def flag_stale(job: Job, res: Resources) -> Counts:
    """Flags memories past their end or long unused, and clears the flag of those in use again."""
    return await _age(job, fading.STALE, res)


async def archive(job: Job, res: Resources) -> Counts:
    """Archives faded memories if the workspace is set to; a requested run always does. An archived memory can be read
    by id and restored."""
    archived, last = 0, NIL_ID
    while True:
        async with res.db.read(job.workspace_id) as session:
            ids = await fading.list_faded(session, after=last, batch=ARCHIVED_AT_ONCE)
            by_id = await memories.get_many(session, ids)
        for scope, group in groupby(sorted(by_id.values(), key=_owner), key=lambda each: each.scope):
            ids_of_scope = sorted(memory.id for memory in group)
            archived += await _archive(scope, ids_of_scope, res, workspace_jobs.call_of(job))
        if len(ids) < ARCHIVED_AT_ONCE:
            return {"archived": archived}
        last = ids[-1]


def _owner(memory: Memory) -> tuple[str, ...]:
    scope = memory.scope
    return tuple(repr(each) for each in (scope.user_id, scope.agent_id, scope.run_id, scope.channel))


async def _archive(scope: Scope, ids: list[UUID], res: Resources, call: Call) -> int:
    """Archives memories under the lock of the scope, so that no store treats one of them as a live duplicate."""
    async with write_transaction(scope, res, call) as write:
        context = ChangeContext(write, scope)
        archived = [key for key in ids if await writing.archive(context, key)]
        if archived:
            await write.audit("archive", scope, archived, why="faded")
    return len(archived)


async def _remove_forgotten_entities(workspace_id: UUID, res: Resources, call: Call, *, batch: int) -> int:
    """Removes the next faded entities that no memory or relation names and no caller wrote; returns how many."""
    async with plain_transaction(workspace_id, res, call) as write:
        gone = await fading.remove_forgotten(write.session, now=res.clock(), batch=batch)
        if gone:
            await write.audit("delete_entity", Scope(workspace_id), gone, why="faded")
    return len(gone)


async def _archive_idle_conversations(workspace_id: UUID, res: Resources, call: Call, *, batch: int) -> int:
    """Archives the next idle conversations; returns how many."""
    before = res.clock() - timedelta(days=res.settings.jobs.ageing.conversation_archive_days)
    async with plain_transaction(workspace_id, res, call) as write:
        idle = await conversations.archive_idle(write.session, before=before, batch=batch)
        if idle:
            scope = Scope(workspace_id)
            await write.audit("archive", scope, idle, subject="episodic", why="idle")
    return len(idle)


async def _age(job: Job, statement: TextClause, res: Resources, *, entities: bool = False) -> Mapping[str, int]:
    """Goes over all rows of the workspace, a batch and a transaction at a time."""
    workspace_id, now, rules = job.workspace_id, res.clock(), res.settings.jobs.ageing
    async with res.db.read(workspace_id) as session:
        total = await fading.count(session, entities=entities)
    seen = changed = 0
    last: UUID | None = NIL_ID
    while last is not None:
        async with res.db.begin(workspace_id) as session:
            batch = await fading.age(session, statement, rules, now=now, after=last)
            seen, changed, last = seen + batch.seen, changed + batch.changed, batch.last
            await queue.advance(session, job, seen, total)
    return {"seen": seen, "changed": changed}

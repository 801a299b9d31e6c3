"""Ageing: lets relevance, salience and the confidence of inferred facts fade, flags stale memories, archives faded
ones.

On schedule, a run in the nil workspace starts a run in each workspace that is due; that one works in batches of one
transaction each. Every number is computed from a stored base and the clock, so an interrupted or repeated run does no
harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from sqlalchemy import TextClause

from service.access import workspaces
from service.domain.job import Counts, Job
from service.queue import queue
from service.runtime.resources import Resources
from service.upkeep.fade import archive_faded, archive_idle_conversations, remove_forgotten_entities
from service.upkeep.statements import fading

FIRST = UUID(int=0)
BATCH_ROWS = 1_000


async def relevance(job: Job, res: Resources) -> Counts:
    """Updates the relevance of each memory by the time since its last use."""
    return await _age(job, fading.RELEVANCE, res)


async def decay(job: Job, res: Resources) -> Counts:
    """Updates the salience of memories and entities and the confidence of inferred facts; then removes faded entities
    that nothing mentions, and archives idle conversations."""
    memories = await _age(job, fading.MEMORY_SALIENCE, res)
    facts = await _age(job, fading.CONFIDENCE, res)
    entities = await _age(job, fading.ENTITY_SALIENCE, res, entities=True)
    removed = await _in_batches(remove_forgotten_entities, job, res)
    conversations = await _in_batches(archive_idle_conversations, job, res)
    return {
        **memories,
        "facts": facts["seen"],
        "facts_changed": facts["changed"],
        "entities": entities["seen"],
        "entities_changed": entities["changed"],
        "entities_removed": removed,
        "conversations_archived": conversations,
    }


async def _in_batches(verb: Callable[..., Awaitable[int]], job: Job, res: Resources) -> int:
    """Calls the verb until a batch is not full; returns the total."""
    total, done = 0, BATCH_ROWS
    while done == BATCH_ROWS:
        done = await verb(job.workspace_id, res, workspaces.context_of(job), batch=BATCH_ROWS)
        total += done
    return total


async def flag_stale(job: Job, res: Resources) -> Counts:
    """Flags memories past their end or long unused, and clears the flag of those in use again."""
    return await _age(job, fading.STALE, res)


async def archive(job: Job, res: Resources) -> Counts:
    """Archives faded memories if the workspace is set to; a requested run always does."""
    archived = 0
    last: UUID | None = FIRST
    while last is not None:
        count, last = await archive_faded(job.workspace_id, last, res, workspaces.context_of(job))
        archived += count
    return {"archived": archived}


async def _age(job: Job, statement: TextClause, res: Resources, *, entities: bool = False) -> Mapping[str, int]:
    """Goes over all rows of the workspace, a batch and a transaction at a time."""
    workspace_id, now, rules = job.workspace_id, res.clock(), res.settings.jobs.ageing
    async with res.db.read(workspace_id) as session:
        total = await fading.count(session, workspace_id, entities=entities)
    seen = changed = 0
    last: UUID | None = FIRST
    while last is not None:
        async with res.db.begin(workspace_id) as session:
            batch = await fading.age(session, workspace_id, statement, rules, now=now, after=last)
            seen, changed, last = seen + batch.seen, changed + batch.changed, batch.last
            await queue.advance(session, job, seen, total)
    return {"seen": seen, "changed": changed}

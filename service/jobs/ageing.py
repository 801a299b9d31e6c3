"""Ageing: relevance and salience fade without use, what is stale is flagged, what has faded is archived.

By the clock a run in the nil workspace looks where each job is due and starts a run there; in a workspace it works in
batches of a transaction each. Every number comes from a stored base and the clock, so a run that dies or is repeated
changes nothing that another one would not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause

from service.db.jobs import queue, schedule
from service.db.memories import fading
from service.db.memories.fading import AgeingScope
from service.db.tenants.keys import workspace
from service.domain.job import AgeingJobName, Counts, Job
from service.domain.request import WriteContext
from service.domain.scope import NIL_WORKSPACE
from service.memory.fade import archive_faded, remove_forgotten_entities
from service.resources import Resources

FIRST = UUID(int=0)
ENTITIES_AT_ONCE = 1_000


async def relevance(job: Job, res: Resources) -> Counts:
    """What is left of the relevance of each memory since it was last used."""
    if job.workspace_id == NIL_WORKSPACE:
        return await _start("relevance", res)
    return await _age(job, fading.RELEVANCE, await _own(job, res))


async def decay(job: Job, res: Resources) -> Counts:
    """The salience of memories and of entities; then entities that faded and nobody mentions go."""
    if job.workspace_id == NIL_WORKSPACE:
        return await _start("decay", res)
    own = await _own(job, res)
    memories = await _age(job, fading.MEMORY_SALIENCE, own)
    entities = await _age(job, fading.ENTITY_SALIENCE, own, entities=True)
    removed, context = 0, _context(job)
    while True:
        gone = await remove_forgotten_entities(job.workspace_id, _scope(job), own, context, batch=ENTITIES_AT_ONCE)
        removed += gone
        if gone < ENTITIES_AT_ONCE:
            break
    return {
        **memories,
        "entities": entities["seen"],
        "entities_changed": entities["changed"],
        "entities_removed": removed,
    }


async def flag_stale(job: Job, res: Resources) -> Counts:
    """Flags what is past its end or was not used for long, and takes the flag from what is in use again."""
    if job.workspace_id == NIL_WORKSPACE:
        return await _start("flag_stale", res)
    return await _age(job, fading.STALE, await _own(job, res))


async def forget(job: Job, res: Resources) -> Counts:
    """Archives memories whose relevance has faded, where the workspace wants that; a run by request does it anyway."""
    if job.workspace_id == NIL_WORKSPACE:
        return await _start("forget", res, wanted_by="auto_archive")
    own, archived = await _own(job, res), 0
    last: UUID | None = FIRST
    while last is not None:
        count, last = await archive_faded(job.workspace_id, _scope(job), last, own, _context(job))
        archived += count
    return {"archived": archived}


async def _start(name: AgeingJobName, res: Resources, *, wanted_by: str | None = None) -> Counts:
    """Starts a run in each workspace where it is due."""
    rules = res.settings.ageing
    interval_min = float(getattr(rules, f"{name}_interval_min"))
    wanted = bool(getattr(rules, wanted_by)) if wanted_by else True
    async with res.db.read(NIL_WORKSPACE) as session:
        due = await schedule.unaged(session, name, interval_min, wanted_by=wanted_by, wanted=wanted)
    for workspace_id in due:
        async with res.db.begin(workspace_id) as session:
            await schedule.request(session, workspace_id, name, reason="schedule")
    if due:
        res.wakeup.notify()
    return {"started": len(due)}


async def _age(job: Job, statement: TextClause, own: Resources, *, entities: bool = False) -> Mapping[str, int]:
    """Goes over all rows of the workspace, a batch and a transaction at a time."""
    workspace_id, scope, now = job.workspace_id, _scope(job), own.clock()
    async with own.db.read(workspace_id) as session:
        total = await fading.count(session, workspace_id, entities=entities)
    seen = changed = 0
    last: UUID | None = FIRST
    while last is not None:
        async with own.db.begin(workspace_id) as session:
            batch = await fading.age(session, workspace_id, statement, own.settings.ageing, scope, now=now, after=last)
            seen, changed, last = seen + batch.seen, changed + batch.changed, batch.last
            await queue.advance(session, job, seen, total)
    return {"seen": seen, "changed": changed}


async def _own(job: Job, res: Resources) -> Resources:
    """With the settings of the workspace."""
    async with res.db.read(job.workspace_id) as session:
        own = await workspace(session, job.workspace_id)
    return res.of_workspace(dict(own.settings))


def _scope(job: Job) -> AgeingScope:
    ids: Any = job.payload.get("scope", {})
    return AgeingScope(**ids)


def _context(job: Job) -> WriteContext:
    return WriteContext(f"job:{job.id}", may_share=True)

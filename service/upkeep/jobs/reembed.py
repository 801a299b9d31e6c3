"""Re-embedding: the vectors of the generation that is being built, then the cut-over, then what came in between.

A run without a generation in the making sees to what the active one lacks, which is nothing but for the minutes around
a cut-over and after a roll-back, and deletes the vectors of dropped ones. docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.job import LONG_MAX_ATTEMPTS, Counts, Job, NewJob
from service.domain.scope import NIL_WORKSPACE
from service.providers.caches import CachedEmbedder
from service.providers.choose import MissingEmbedder
from service.queue import queue
from service.runtime.resources import Resources
from service.runtime.statements import generations
from service.runtime.statements.generations import Generation
from service.upkeep import reembed
from service.upkeep.reembed import GivenUp, Progress
from service.upkeep.statements import missing_vectors

LAST_ROUND = missing_vectors.BATCH
"""A round that made fewer vectors than this is the last before the cut-over: what was written during it is found by its
words until the first of LATER."""

LATER = (timedelta(seconds=10), timedelta(minutes=10))
"""After the cut-over: when each process has noticed it, and when also the jobs that began before are over."""


async def run(job: Job, res: Resources) -> Counts | None:
    """Fills the generation that is being built and cuts over to it, or fills what the active one lacks, and does so
    again where the next one was begun meanwhile."""
    total: Counter[str] = Counter()
    found = await generations.listed(res.db)
    while len(found) > 1:
        total.update(await _run(job, found, res))
        found = await generations.listed(res.db)
        if generations.in_state(found, "building") is None:
            break
    return dict(total) or None


async def _run(job: Job, found: list[Generation], res: Resources) -> Counts:
    building = generations.in_state(found, "building")
    async with res.db.read(NIL_WORKSPACE) as session:
        workspaces = await missing_vectors.workspaces(session)
    counts = await _build(job, building, workspaces, res) if building else await _complete(job, workspaces, res)
    dropped = [each.number for each in found if each.state == "dropped"]
    deleted = 0
    for workspace_id in workspaces if dropped else ():
        deleted += await reembed.delete_dropped(workspace_id, dropped, res)
    return {**counts, "deleted": deleted}


async def _build(job: Job, building: Generation, workspaces: Sequence[UUID], res: Resources) -> Counts:
    """Rounds over all workspaces, each shorter than the last, until one makes next to nothing; then it cuts over."""
    assert res.active is not None, "a worker knows what is active"
    opened = await res.active.open(building)
    embedder = CachedEmbedder(opened, entries=0)  # texts of all tenants come by once: nothing to keep
    try:
        if isinstance(opened, MissingEmbedder):
            raise EmbeddingError(
                f"Vectors of {building} are to be made, which the settings of this worker do not reach: "
                f"{opened.reason}. Start the workers with the settings that `reembed` was run with."
            )
        own = replace(res, embedder=embedder, generation=building.number)
        progress = await reembed.begin(job, workspaces, own)
        made = rounds = 0
        try:
            while True:
                last = await _round(workspaces, progress, own)
                made, rounds = made + last, rounds + 1
                if last < LAST_ROUND:
                    break
        except GivenUp:
            return {"made": made, "stopped": 1}
    finally:
        await embedder.close()
    async with res.db.begin(NIL_WORKSPACE) as session:
        switched = await generations.activate(session, building.number)
        if switched:
            now = res.clock()
            later = [NewJob("reembed", run_after=now + wait, max_attempts=LONG_MAX_ATTEMPTS) for wait in LATER]
            await queue.enqueue(session, NIL_WORKSPACE, later)
    return {"made": made, "rounds": rounds, "refused": progress.refused, "switched": int(switched)}


async def _complete(job: Job, workspaces: Sequence[UUID], res: Resources) -> Counts:
    """What the active generation lacks."""
    own = res.latest()
    progress = await reembed.begin(job, workspaces, own)
    try:
        return {"made": await _round(workspaces, progress, own), "refused": progress.refused}
    except GivenUp:
        return {"stopped": 1}


async def _round(workspaces: Sequence[UUID], progress: Progress, own: Resources) -> int:
    made = 0
    for workspace_id in workspaces:
        made += await reembed.fill(workspace_id, progress, own)
    return made

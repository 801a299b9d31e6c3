"""Re-embedding: makes the vectors of the generation that is being built, cuts over to it, then adds the texts written
in the meantime.

Nothing is embedded with a transaction open, and searches keep using the active generation. Safe to run twice, by two
workers, and to kill: existing vectors are not made again.

If no generation is being built, a run makes the vectors that the active one lacks, usually none except around a
cut-over and after a roll-back, and deletes the vectors of dropped generations. docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.job import LONG_MAX_ATTEMPTS, Counts, Job, NewJob
from service.domain.scope import NIL_ID, NIL_WORKSPACE
from service.domain.text import CleanText
from service.postgres.engine import Session
from service.providers.choose import MissingEmbedder
from service.providers.protocols import Vector
from service.queue.statements import queue
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.runtime.statements import generations
from service.runtime.statements.generations import Generation
from service.upkeep.statements import missing_vectors
from service.upkeep.statements.missing_vectors import Find, Store, Texts

LAST_ROUND = missing_vectors.BATCH
"""A round that made fewer vectors than this is the last before the cut-over; texts written during it are found by their
words until the first of LATER."""

LATER = (timedelta(seconds=10), timedelta(minutes=10))
"""Times after the cut-over: by the first every process has noticed it, by the second jobs that began before it have
ended."""

DELETE_BATCH = 2_000


class GivenUp(Exception):
    """The generation is neither being built nor active any more."""


@dataclass(slots=True)
class Progress:
    """Progress of a run. `refused`: texts that the embedder refused, which stay without a vector."""

    job: Job
    done: int = 0
    total: int = 0
    refused: int = 0


async def run(job: Job, res: Resources) -> Counts | None:
    """Fills the generation that is being built and cuts over to it, or adds the vectors that the active one lacks;
    repeats if another generation has been started."""
    total: Counter[str] = Counter()
    known = await generations.read_all(res.db)
    while len(known) > 1:
        total.update(await _run(job, known, res))
        known = await generations.read_all(res.db)
        if generations.in_state(known, "building") is None:
            break
    return dict(total) or None


async def _run(job: Job, known: list[Generation], res: Resources) -> Counts:
    building = generations.in_state(known, "building")
    async with res.db.read(NIL_WORKSPACE) as session:
        workspaces = await missing_vectors.workspaces(session)
    counts = await _build(job, building, workspaces, res) if building else await _complete(job, workspaces, res)
    dropped = [generation.number for generation in known if generation.state == "dropped"]
    deleted = 0
    for workspace_id in workspaces if dropped else ():
        deleted += await _delete_dropped(workspace_id, dropped, res)
    return {**counts, "deleted": deleted}


async def _build(job: Job, building: Generation, workspaces: Sequence[UUID], res: Resources) -> Counts:
    """Goes over all workspaces, in ever shorter rounds, until one makes hardly any vectors; then cuts over."""
    assert res.active is not None, "a worker knows what is active"
    opened = await res.active.open(building)
    embedder = CachedEmbedder(opened, entries=0)  # texts of all tenants come by once: nothing to keep
    try:
        if isinstance(opened, MissingEmbedder):
            raise EmbeddingError(
                f"The settings of this worker have no embedder that makes the vectors of {building}: "
                f"{opened.reason}. Start the workers with the settings that `reembed` was run with."
            )
        own = replace(res, embedder=embedder, generation=building.number)
        progress = await _begin(job, workspaces, own)
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
            await queue.enqueue(session, later)
    return {"made": made, "rounds": rounds, "refused": progress.refused, "switched": int(switched)}


async def _complete(job: Job, workspaces: Sequence[UUID], res: Resources) -> Counts:
    """Makes the vectors that the active generation lacks."""
    own = res.latest()
    progress = await _begin(job, workspaces, own)
    try:
        return {"made": await _round(workspaces, progress, own), "refused": progress.refused}
    except GivenUp:
        return {"stopped": 1}


async def _round(workspaces: Sequence[UUID], progress: Progress, own: Resources) -> int:
    """Makes the missing vectors of all workspaces in one walk; returns how many. Raises EmbeddingError, GivenUp."""
    made = 0
    for workspace_id in workspaces:
        for find, store in missing_vectors.WALKS:
            made += await _walk(workspace_id, find, store, progress, own)
    return made


async def _begin(job: Job, workspaces: Sequence[UUID], res: Resources) -> Progress:
    """Counts the work in all workspaces. `res`: with the generation's embedder and number."""
    progress = Progress(job)
    for workspace_id in workspaces:
        async with res.db.read(workspace_id) as session:
            wanted, made = await missing_vectors.count(session, res.generation)
        progress.total, progress.done = progress.total + wanted, progress.done + min(made, wanted)
    return progress


async def _delete_dropped(workspace_id: UUID, numbers: list[int], res: Resources) -> int:
    """Deletes vectors of dropped generations, one batch per transaction; returns how many."""
    deleted = 0
    for table in missing_vectors.TABLES:
        while True:
            async with res.db.begin(workspace_id) as session:
                count = await missing_vectors.delete(session, table, numbers, limit=DELETE_BATCH)
            deleted += count
            if count < DELETE_BATCH:
                break
    return deleted


async def _walk(workspace_id: UUID, find: Find, store: Store, progress: Progress, res: Resources) -> int:
    """Makes vectors, storing each batch with the progress of the run; returns how many."""
    made, after = 0, NIL_ID
    while True:
        async with res.db.read(workspace_id) as session:
            texts = await find(session, after, generation=res.generation)
        if not texts:
            return made
        vectors = await _embed(workspace_id, texts, progress, res)
        async with res.db.begin(workspace_id) as session:
            await _check_wanted(session, res.generation)
            stored = await store(session, vectors, generation=res.generation)
            await queue.advance(session, progress.job, progress.done + stored, progress.total)
        made, progress.done, after = made + stored, progress.done + stored, max(texts)


async def _check_wanted(session: Session, number: int) -> None:
    """Raises GivenUp when the generation is neither being built nor active."""
    known = await generations.read_all_in(session)
    if not any(generation.number == number and generation.state in ("building", "active") for generation in known):
        raise GivenUp


async def _embed(
    workspace_id: UUID, texts: Texts, progress: Progress, res: Resources
) -> dict[UUID, tuple[CleanText, Vector]]:
    """The texts with their vectors; if the embedder refuses the batch, those that it accepts one by one. Raises
    EmbeddingError if it is unavailable or accepts none."""
    try:
        vectors = await res.embedder.embed(workspace_id, list(texts.values()))
        return {key: (text, vector) for (key, text), vector in zip(texts.items(), vectors, strict=True)}
    except EmbeddingError as exc:
        if exc.retryable:
            raise
        accepted: dict[UUID, tuple[CleanText, Vector]] = {}
        for key, text in texts.items():
            try:
                accepted[key] = text, (await res.embedder.embed(workspace_id, [text]))[0]
            except EmbeddingError as refusal:
                if refusal.retryable:
                    raise
        if not accepted:
            raise
        progress.refused += len(texts) - len(accepted)
        return accepted

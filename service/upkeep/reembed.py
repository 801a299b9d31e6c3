"""Makes the vectors that a generation lacks, beside those of the others: of memories, contexts, turns and words.

Nothing is embedded with a transaction open, and nothing is taken away: searches go on with the active generation. Safe
to run twice, by two workers, and to be killed: what has its vector is not made again.
docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.job import Job
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.queue import queue
from service.runtime.resources import Resources
from service.runtime.statements import generations
from service.upkeep import late_vectors
from service.upkeep.statements import missing_vectors
from service.upkeep.statements.missing_vectors import Find, MissingText, Store

FIRST = UUID(int=0)
DELETE_BATCH = 2_000


class GivenUp(Exception):
    """The generation is neither being built nor active any more."""


@dataclass(slots=True)
class Progress:
    """How far a run is. `refused`: texts that the embedder does not take, which go without a vector."""

    job: Job
    done: int = 0
    total: int = 0
    refused: int = 0


async def begin(job: Job, workspaces: Sequence[UUID], res: Resources) -> Progress:
    """Counts what there is to do in all workspaces. `res`: with the generation's embedder and number."""
    progress = Progress(job)
    for workspace_id in workspaces:
        async with res.db.read(workspace_id) as session:
            wanted, made = await missing_vectors.count(session, workspace_id, res.generation)
        progress.total, progress.done = progress.total + wanted, progress.done + min(made, wanted)
    return progress


async def fill(workspace_id: UUID, progress: Progress, res: Resources) -> int:
    """How many vectors were made of what the workspace had when the walk passed by. Raises EmbeddingError, GivenUp."""
    made = 0
    for find, store in missing_vectors.WALKS:
        made += await _walk(workspace_id, find, store, progress, res)
    for kind in late_vectors.KINDS:
        count = await late_vectors.embed_missing(workspace_id, kind, res)
        made, progress.done = made + count, progress.done + count
    return made


async def delete_dropped(workspace_id: UUID, numbers: list[int], res: Resources) -> int:
    """How many vectors of dropped generations were deleted, a batch and a transaction at a time."""
    deleted = 0
    for table in missing_vectors.TABLES:
        while True:
            async with res.db.begin(workspace_id) as session:
                gone = await missing_vectors.delete(session, workspace_id, table, numbers, limit=DELETE_BATCH)
            deleted += gone
            if gone < DELETE_BATCH:
                break
    return deleted


async def _walk(workspace_id: UUID, find: Find, store: Store, progress: Progress, res: Resources) -> int:
    """How many vectors were made; each batch is stored with how far the run is then."""
    made, after = 0, FIRST
    while True:
        async with res.db.read(workspace_id) as session:
            found = await find(session, workspace_id, res.generation, after)
        if not found:
            return made
        vectors = await _embed(workspace_id, found, progress, res)
        async with res.db.begin(workspace_id) as session:
            await _check_wanted(session, res.generation)
            stored = await store(session, workspace_id, res.generation, vectors)
            await queue.advance(session, progress.job, progress.done + stored, progress.total)
        made, progress.done, after = made + stored, progress.done + stored, found[-1].id


async def _check_wanted(session: Session, number: int) -> None:
    """Raises GivenUp when the generation is neither being built nor active."""
    found = await generations.listed_in(session)
    if not any(each.number == number and each.state in ("building", "active") for each in found):
        raise GivenUp


async def _embed(
    workspace_id: UUID, texts: Sequence[MissingText], progress: Progress, res: Resources
) -> dict[MissingText, Vector]:
    """The vectors; where the embedder refuses the texts together, those of each that it takes by itself. Raises
    EmbeddingError when it is unavailable, or takes none of them."""
    try:
        return dict(zip(texts, await res.embedder.embed(workspace_id, [each.text for each in texts]), strict=True))
    except EmbeddingError as exc:
        if exc.retryable:
            raise
        found: dict[MissingText, Vector] = {}
        for each in texts:
            try:
                found[each] = (await res.embedder.embed(workspace_id, [each.text]))[0]
            except EmbeddingError as refusal:
                if refusal.retryable:
                    raise
        if not found:
            raise
        progress.refused += len(texts) - len(found)
        return found

"""Late vectors of goals, strategies and entities that were written while the embedder was unavailable.

A verb that writes one without a vector queues a job in the same transaction. The job embeds all of its workspace that
still wait, so a second one finds nothing to do. It has many attempts: a provider may be unavailable for a day.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from service.cognition.statements import goals, strategies
from service.domain.errors import EmbeddingError
from service.domain.job import NewJob
from service.domain.text import CleanText
from service.graph.statements import entities
from service.graph.statements.late_vectors import EMBED_MAX_ATTEMPTS, LateVectors
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.queue import queue
from service.runtime.resources import Resources

WORDS_OF = "words_of"
"""Names, in the payload of an embed job, what it is for."""

GOALS, STRATEGIES, ENTITIES = "goals", "strategies", "entities"
BATCH = 100


KINDS: Mapping[str, LateVectors] = MappingProxyType(
    {GOALS: goals.LATE_VECTORS, STRATEGIES: strategies.LATE_VECTORS, ENTITIES: entities.LATE_VECTORS}
)


async def embed_now(workspace_id: UUID, text: CleanText, res: Resources) -> Vector | None:
    """The vector; None when the embedder is unavailable: then the writer calls `embed_later` in its transaction."""
    try:
        return (await res.embedder.embed(workspace_id, [text]))[0]
    except EmbeddingError:
        return None


async def embed_later(session: Session, workspace_id: UUID, kind: str) -> None:
    """Queues the job; it exists when the caller's transaction commits."""
    job = NewJob("embed", payload={WORDS_OF: kind}, max_attempts=EMBED_MAX_ATTEMPTS)
    await queue.enqueue(session, workspace_id, [job])


async def embed_missing(workspace_id: UUID, kind: str, res: Resources) -> int:
    """How many got the vector they lacked, of the words they have now. Safe to run twice. Raises EmbeddingError."""
    rows, made = KINDS[kind], 0
    while True:
        async with res.db.read(workspace_id) as session:
            waiting = await rows.unembedded(session, workspace_id, generation=res.generation, limit=BATCH)
        if not waiting:
            return made
        vectors = await res.embedder.embed(workspace_id, list(waiting.values()))
        found = {each: (words, vector) for (each, words), vector in zip(waiting.items(), vectors, strict=True)}
        async with res.db.begin(workspace_id) as session:
            made += await rows.store(session, workspace_id, found, generation=res.generation)

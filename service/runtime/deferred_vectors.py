"""Vectors of short texts that are written even while the embedder is unavailable: a job makes them later."""

from __future__ import annotations

from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.job import LONG_MAX_ATTEMPTS, NewJob
from service.domain.text import CleanText
from service.postgres.engine import Session
from service.providers.protocols import Vector
from service.queue import queue
from service.runtime.resources import Resources

WORDS_OF = "words_of"
"""The key, in the payload of an embed job, for the kind of texts."""

GOALS, STRATEGIES, ENTITIES = "goals", "strategies", "entities"


async def embed_now(workspace_id: UUID, text: CleanText, res: Resources) -> Vector | None:
    """The vector; None when the embedder is unavailable: then the writer calls `embed_later` in its transaction."""
    try:
        return (await res.embedder.embed(workspace_id, [text]))[0]
    except EmbeddingError:
        return None


async def embed_later(session: Session, workspace_id: UUID, kind: str) -> None:
    """Queues the job; it exists when the caller's transaction commits."""
    job = NewJob("embed", payload={WORDS_OF: kind}, max_attempts=LONG_MAX_ATTEMPTS)
    await queue.enqueue(session, workspace_id, [job])

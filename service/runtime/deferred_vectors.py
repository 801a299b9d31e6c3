"""Vectors of short texts that are written even while the embedder is unavailable: a job makes them later."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ColumnElement, true

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.runtime.statements.deferred_vectors import DeferredVectors

BATCH = 100
"""Texts per call of the embedder in a job."""


async def embed_now(workspace_id: UUID, text: CleanText, res: Resources) -> Vector | None:
    """The vector; None when the embedder is unavailable: a job makes it later."""
    try:
        return (await res.embedder.embed(workspace_id, [text]))[0]
    except EmbeddingError:
        return None


async def embed_missing(
    rows: DeferredVectors, workspace_id: UUID, res: Resources, where: ColumnElement[bool] | None = None
) -> int:
    """Makes missing vectors of the current texts; returns how many. `where`: only of rows that meet this condition.
    Safe to run twice. Raises EmbeddingError."""
    made, condition = 0, true() if where is None else where
    while True:
        async with res.db.read(workspace_id) as session:
            waiting = await rows.unembedded(session, condition, generation=res.generation, limit=BATCH)
        if not waiting:
            return made
        vectors = await res.embedder.embed(workspace_id, list(waiting.values()))
        by_id = {each: (words, vector) for (each, words), vector in zip(waiting.items(), vectors, strict=True)}
        async with res.db.begin(workspace_id) as session:
            made += await rows.store(session, by_id, generation=res.generation)

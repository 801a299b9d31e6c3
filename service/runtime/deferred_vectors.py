"""Vectors of short texts that are written even while the embedder is unavailable: a job makes them later."""

from __future__ import annotations

from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers.protocols import Vector
from service.runtime.resources import Resources


async def embed_now(workspace_id: UUID, text: CleanText, res: Resources) -> Vector | None:
    """The vector; None when the embedder is unavailable: a job makes it later."""
    try:
        return (await res.embedder.embed(workspace_id, [text]))[0]
    except EmbeddingError:
        return None

"""Stands for an embedder that the settings do not reach any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers.protocols import Vector


@dataclass(frozen=True, slots=True)
class MissingEmbedder:
    """Fails every call, as an embedder that is unavailable does: searches go by words, and vectors are made later.
    Implements `protocols.Embedder`. `reason`: what the settings lack."""

    model: str
    dimension: int
    reason: str

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        """Raises EmbeddingError."""
        raise EmbeddingError(f"The embedder {self.model} cannot be opened with these settings: {self.reason}.")

    async def embed_query(self, text: CleanText) -> Vector:
        """Raises EmbeddingError."""
        return (await self.embed([text]))[0]

    def similarity(self, cosine: float) -> float:
        """The cosine clamped to 0..1."""
        return round(min(1.0, max(0.0, cosine)), 4)

    def query_similarity(self, cosine: float) -> float:
        """As `similarity`."""
        return self.similarity(cosine)

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        """One, and it covers the text."""
        return 1, True

    async def close(self) -> None: ...

"""An embedder whose angles a test chooses."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.postgres.engine import in_transaction
from service.providers.protocols import Embedder, Vector

CHOSEN = 4
"""Dimensions in which the chosen vectors live."""


class AngleEmbedder(Embedder):
    """Vectors with chosen cosines to one axis; a text nobody chose gets a stable direction of its own, as good as
    orthogonal to these. Not exactly so: where all vectors are equally far, a walk through the graph goes nowhere (with
    700 of them it missed the near ones in 13 of 60 graphs, and in none of 120 since they differ).

    `place("a", 1.0); place("b", 0.85)` makes cosine(a, b) = 0.85. `down = True` makes it fail, `seen` records texts.
    """

    model = "test:angles"

    def __init__(self, dimension: int = 384) -> None:
        self.dimension = dimension
        self.down = False
        self.seen: list[str] = []
        self._chosen: dict[str, Vector] = {}

    def place(self, text: str, cosine: float, *, axis: int = 0, side: int = 1) -> None:
        """Puts `text` at `cosine` to `axis`, leaning towards dimension `side`."""
        vector = np.zeros(self.dimension, dtype=np.float32)
        vector[axis] = cosine
        vector[side] = math.sqrt(max(0.0, 1 - cosine * cosine))
        self._chosen[text] = vector

    def vector(self, text: str) -> Vector:
        if text in self._chosen:
            return self._chosen[text]
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(self.dimension).astype(np.float32)
        vector[:CHOSEN] *= 0.1
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        assert not in_transaction(), "an embedder was awaited inside a transaction"
        self.seen.extend(texts)
        if self.down:
            raise EmbeddingError("The embedding provider is down.")
        return [self.vector(text) for text in texts]

    async def embed_query(self, text: CleanText) -> Vector:
        return (await self.embed([text]))[0]

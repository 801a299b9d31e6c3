"""Which texts has this tenant had embedded already?

Two levels: a bounded one in the process, and the `embedding_cache` table behind the `VectorStore` port. Both know
the owner (the workspace): equal texts of two tenants are two entries (B27), or the speed of an answer would tell one
of them what the other has stored. Keys hold a hash, never the text.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from service.domain.text import CleanText
from service.providers import budget
from service.providers.protocols import Embedder, Vector

PASSAGE, QUERY = b"p", b"q"
"""A query and a passage of the same words have different vectors with many models."""


class VectorStore(Protocol):
    """The table behind the cache; `model` is the embedder's id, a digest has 32 bytes."""

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """The vectors that are there; the others are missing from the result."""
        ...

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        """Keeps them; an entry that is there already stays as it is."""
        ...


class CachedEmbedder:
    """An embedder with memory. `entries` bounds the level in the process (384 dimensions are 1.5 kB each)."""

    def __init__(self, embedder: Embedder, *, entries: int, store: VectorStore | None = None) -> None:
        self._embedder = embedder
        self._entries = entries
        self._store = store
        self._vectors: OrderedDict[tuple[UUID, bytes], Vector] = OrderedDict()

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def similarity(self, cosine: float) -> float:
        """The embedder's calibrated cosine, 0..1."""
        return self._embedder.similarity(cosine)

    def query_similarity(self, cosine: float) -> float:
        """The same for a question and a stored text."""
        return self._embedder.query_similarity(cosine)

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        """How many windows of the text are read, and whether they cover it."""
        return await self._embedder.windows(text)

    async def embed(self, owner: UUID, texts: Sequence[CleanText]) -> list[Vector]:
        """One vector per text, in their order; each different text is embedded once. Raises EmbeddingError."""
        wanted = {self.digest(PASSAGE, text): text for text in texts}
        found = await self._look_up(owner, list(wanted))
        missing = [digest for digest in wanted if digest not in found]
        if missing:
            vectors = await self._embedder.embed([wanted[digest] for digest in missing])
            found |= await self._keep(owner, dict(zip(missing, vectors, strict=True)))
        budget.note(embedded_texts=len(missing), cached=len(wanted) - len(missing))
        return [found[self.digest(PASSAGE, text)] for text in texts]

    async def embed_query(self, owner: UUID, text: CleanText) -> Vector:
        """The vector of a search query. Raises EmbeddingError."""
        digest = self.digest(QUERY, text)
        found = await self._look_up(owner, [digest])
        if digest in found:
            budget.note(cached=1)
            return found[digest]
        vector = await self._embedder.embed_query(text)
        budget.note(embedded_texts=1)
        return (await self._keep(owner, {digest: vector}))[digest]

    def forget(self, owner: UUID) -> None:
        """Drops what this process keeps for the owner; the table is the database's to empty."""
        for key in [key for key in self._vectors if key[0] == owner]:
            del self._vectors[key]

    async def close(self) -> None:
        self._vectors.clear()
        await self._embedder.close()

    @staticmethod
    def digest(purpose: bytes, text: CleanText) -> bytes:
        """The key of a text: SHA-256 of what it is for and what it says."""
        return hashlib.sha256(purpose + text.encode()).digest()

    async def _look_up(self, owner: UUID, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        found = {digest: self._vectors[owner, digest] for digest in digests if (owner, digest) in self._vectors}
        for digest in found:
            self._vectors.move_to_end((owner, digest))
        missing = [digest for digest in digests if digest not in found]
        if missing and self._store is not None:
            stored = dict(await self._store.get_many(owner, self.model, missing))
            self._remember(owner, stored)
            found |= stored
        return found

    async def _keep(self, owner: UUID, vectors: dict[bytes, Vector]) -> dict[bytes, Vector]:
        self._remember(owner, vectors)
        if self._store is not None:
            await self._store.put_many(owner, self.model, vectors)
        return vectors

    def _remember(self, owner: UUID, vectors: Mapping[bytes, Vector]) -> None:
        for digest, vector in vectors.items():
            vector.flags.writeable = False  # shared by all who ask
            self._vectors[owner, digest] = vector
        while len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)

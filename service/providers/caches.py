"""The cache of vectors, per owner (the workspace) and wall.

Equal texts of two tenants are two entries, or the speed of an answer and its `usage` would tell one of them what the
other has stored. So they are for a key with a wall: what others in the workspace have stored is not for it to know.
Keys hold a hash, never the text. There is a bounded level in the process and the `embedding_cache` table below it. See
docs/decisions/002-row-level-security.md.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

from service.domain.text import CleanText
from service.language.talk.dates import as_said
from service.observability import metrics, tracing
from service.providers.budget import Budget
from service.providers.protocols import Embedder, Vector

PASSAGE, QUERY = b"p", b"q"
"""A query and a passage of the same words have different vectors with many models."""


class VectorStore(Protocol):
    """The `embedding_cache` table; `model` is the embedder's identity, a digest has 32 bytes."""

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        """The stored vectors; the others are missing from the result."""
        ...

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        """Stores them; an existing entry is kept."""
        ...


class CachedEmbedder:
    """An embedder with a cache. `entries` bounds the level in the process (384 dimensions are 1.5 kB each)."""

    def __init__(self, embedder: Embedder, *, entries: int, store: VectorStore | None = None) -> None:
        self._embedder = embedder
        self.model, self.dimension = embedder.model, embedder.dimension
        self.similarity, self.query_similarity = embedder.similarity, embedder.query_similarity
        self.windows = embedder.windows
        self.identity = f"{embedder.model}/{embedder.dimension}"  # some models make vectors of several lengths
        self._entries = entries
        self._store = store
        self._wall = ""
        self._budget = Budget()
        self._vectors: OrderedDict[tuple[UUID, bytes], Vector] = OrderedDict()

    def within(self, wall: str, budget: Budget, store: VectorStore) -> CachedEmbedder:
        """A view for one caller, with the entries of its wall (its name, empty without one). `budget`: where texts are
        counted. `store`: used instead of the own one, if there is one."""
        view = copy.copy(self)
        view._wall, view._budget = wall, budget
        view._store = None if self._store is None else store
        return view

    async def embed(self, owner: UUID, texts: Sequence[CleanText]) -> list[Vector]:
        """One vector per text, in their order, without the dates that were added to it; each different text is embedded
        once. Raises EmbeddingError."""
        texts = [CleanText(as_said(text)) for text in texts]  # a date moves a vector away from texts on the topic
        wanted = {self._digest(PASSAGE, text): text for text in texts}
        cached = await self._look_up(owner, list(wanted))
        missing = [digest for digest in wanted if digest not in cached]
        if missing:
            with self._measured(len(missing)):
                vectors = await self._embedder.embed([wanted[digest] for digest in missing])
            cached |= await self._keep(owner, dict(zip(missing, vectors, strict=True)))
        self._budget.note(embedded_texts=len(missing), cached=len(wanted) - len(missing))
        metrics.count_look_up("embedding", hits=len(wanted) - len(missing), misses=len(missing))
        return [cached[self._digest(PASSAGE, text)] for text in texts]

    async def embed_query(self, owner: UUID, text: CleanText) -> Vector:
        """The vector of a search query. Raises EmbeddingError."""
        digest = self._digest(QUERY, text)
        cached = await self._look_up(owner, [digest])
        metrics.count_look_up("embedding", hits=len(cached), misses=1 - len(cached))
        if digest in cached:
            self._budget.note(cached=1)
            return cached[digest]
        with self._measured(1):
            vector = await self._embedder.embed_query(text)
        self._budget.note(embedded_texts=1)
        return (await self._keep(owner, {digest: vector}))[digest]

    @contextmanager
    def _measured(self, texts: int) -> Iterator[None]:
        """Around a call of the embedder."""
        began = time.perf_counter()
        metrics.EMBEDDER_WAITING.inc(texts)
        try:
            with tracing.span("embed", attributes={"gen_ai.request.model": self.model, "loxodon.texts": texts}):
                yield
        except Exception:
            metrics.EMBEDDER_ERRORS.labels(self.model).inc()
            raise
        finally:
            metrics.EMBEDDER_WAITING.dec(texts)
        metrics.EMBEDDER_BATCH.labels(self.model).observe(texts)
        metrics.EMBEDDER_SECONDS.labels(self.model).observe(time.perf_counter() - began)

    def forget(self, owner: UUID) -> None:
        """Drops what this process keeps for the owner; the table is emptied by the erasure itself."""
        for key in [key for key in self._vectors if key[0] == owner]:
            del self._vectors[key]

    async def close(self) -> None:
        self._vectors.clear()
        await self._embedder.close()

    def _digest(self, purpose: bytes, text: CleanText) -> bytes:
        """The key of a text: SHA-256 of the wall, its purpose (PASSAGE or QUERY) and its characters."""
        return hashlib.sha256(self._wall.encode() + purpose + text.encode()).digest()

    async def _look_up(self, owner: UUID, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        cached = {digest: self._vectors[owner, digest] for digest in digests if (owner, digest) in self._vectors}
        for digest in cached:
            self._vectors.move_to_end((owner, digest))
        missing = [digest for digest in digests if digest not in cached]
        if missing and self._store is not None:
            stored = dict(await self._store.get_many(owner, self.identity, missing))
            self._remember(owner, stored)
            cached |= stored
        return cached

    async def _keep(self, owner: UUID, vectors: dict[bytes, Vector]) -> dict[bytes, Vector]:
        self._remember(owner, vectors)
        if self._store is not None:
            await self._store.put_many(owner, self.identity, vectors)
        return vectors

    def _remember(self, owner: UUID, vectors: Mapping[bytes, Vector]) -> None:
        for digest, vector in vectors.items():
            vector.flags.writeable = False  # shared by all callers
            self._vectors[owner, digest] = vector
        while len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)

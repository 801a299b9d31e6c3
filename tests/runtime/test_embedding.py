from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
import pytest

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers.budget import Budget, Limits
from service.providers.protocols import Embedder, Vector, unit
from service.runtime.embedding import CachedEmbedder
from service.runtime.statements.caches import VectorTable

ONE, OTHER = UUID(int=1), UUID(int=2)
TEA, CHESS, TURIN = CleanText("likes tea"), CleanText("plays chess"), CleanText("lives in Turin")


class CountingEmbedder(Embedder):
    """Records what it has to embed; a text's vector depends on its length and on whether it is a query."""

    model = "test:counting"
    dimension = 2

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.down = False

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        if self.down:
            raise EmbeddingError("down")
        self.texts.extend(texts)
        return [unit([len(text), 1.0]) for text in texts]

    async def embed_query(self, text: CleanText) -> Vector:
        self.texts.append(f"? {text}")
        return unit([1.0, len(text)])

    def similarity(self, cosine: float) -> float:
        return cosine

    def query_similarity(self, cosine: float) -> float:
        return cosine / 2

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        return len(text), True

    async def close(self) -> None:
        self.texts.append("closed")


class FakeVectorTable(VectorTable):
    """The table cache as a dictionary."""

    rows: dict[tuple[UUID, str, bytes], Vector]

    def __init__(self) -> None:
        object.__setattr__(self, "rows", {})

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        return {digest: self.rows[owner, model, digest] for digest in digests if (owner, model, digest) in self.rows}

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        self.rows.update({(owner, model, digest): vector for digest, vector in vectors.items()})


@pytest.fixture
def counting() -> CountingEmbedder:
    return CountingEmbedder()


async def test_a_text_is_embedded_once(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10)
    first = await cached.embed(ONE, [TEA, CHESS, TEA])
    again = await cached.embed(ONE, [CHESS, TURIN, TEA])
    assert counting.texts == [TEA, CHESS, TURIN]
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal([again[0], again[2]], [first[1], first[0]])
    np.testing.assert_allclose(again[1], unit([len(TURIN), 1.0]))


async def test_tenants_share_nothing(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10, table=FakeVectorTable())
    await cached.embed(ONE, [TEA])
    await cached.embed(OTHER, [TEA])
    assert counting.texts == [TEA, TEA]


async def test_queries_are_apart_from_passages(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10)
    await cached.embed(ONE, [TEA])
    first, again = await cached.embed_query(ONE, TEA), await cached.embed_query(ONE, TEA)
    assert counting.texts == [TEA, f"? {TEA}"]
    np.testing.assert_array_equal(first, again)


async def test_the_oldest_goes_first(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=2)
    await cached.embed(ONE, [TEA, CHESS])
    await cached.embed(ONE, [TEA])
    await cached.embed(ONE, [TURIN])
    await cached.embed(ONE, [TEA, CHESS])
    assert counting.texts == [TEA, CHESS, TURIN, CHESS]


@pytest.mark.parametrize("entries", [0, 1])
async def test_more_texts_than_entries(counting: CountingEmbedder, entries: int) -> None:
    cached = CachedEmbedder(counting, entries=entries)
    assert len(await cached.embed(ONE, [TEA, CHESS, TURIN])) == 3


async def test_the_table_answers_after_a_restart(counting: CountingEmbedder) -> None:
    table = FakeVectorTable()
    await CachedEmbedder(counting, entries=10, table=table).embed(ONE, [TEA])
    after = CachedEmbedder(counting, entries=10, table=table)
    await after.embed(ONE, [TEA, CHESS])
    assert counting.texts == [TEA, CHESS]
    assert len(table.rows) == 2


async def test_forgetting(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10)
    await cached.embed(ONE, [TEA])
    await cached.embed(OTHER, [TEA])
    cached.forget(ONE)
    await cached.embed(OTHER, [TEA])
    await cached.embed(ONE, [TEA])
    assert counting.texts == [TEA, TEA, TEA]


async def test_a_failure_is_not_kept(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10)
    counting.down = True
    with pytest.raises(EmbeddingError):
        await cached.embed(ONE, [TEA])
    counting.down = False
    assert len(await cached.embed(ONE, [TEA])) == 1


async def test_vectors_cannot_be_spoilt(counting: CountingEmbedder) -> None:
    (vector,) = await CachedEmbedder(counting, entries=10).embed(ONE, [TEA])
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 0


async def test_the_request_is_told(counting: CountingEmbedder) -> None:
    budget = Budget(Limits(max_calls=1, max_tokens=1, deadline_s=1))
    cached = CachedEmbedder(counting, entries=10).within("", budget, FakeVectorTable())
    await cached.embed(ONE, [TEA, CHESS])
    await cached.embed(ONE, [TEA, TURIN])
    await cached.embed_query(ONE, TEA)
    await cached.embed_query(ONE, TEA)
    assert (budget.used.embedded_texts, budget.used.cached) == (4, 2)


async def test_the_rest_is_the_embedders(counting: CountingEmbedder) -> None:
    cached = CachedEmbedder(counting, entries=10)
    assert (cached.model, cached.dimension) == ("test:counting", 2)
    assert (cached.similarity(0.5), cached.query_similarity(0.5)) == (0.5, 0.25)
    assert await cached.windows(TEA) == (9, True)
    await cached.close()
    assert counting.texts == ["closed"]


async def test_dates_that_were_added_to_a_text_do_not_move_its_vector() -> None:
    embedder = CountingEmbedder()
    dated = CleanText("Sami and I broke up on Sunday (8 November 2026).")
    await CachedEmbedder(embedder, entries=10).embed(ONE, [dated])
    assert embedder.texts == ["Sami and I broke up on Sunday."]

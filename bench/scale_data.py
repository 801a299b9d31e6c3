"""A million memories, written into a database in minutes.

Vectors are jittered copies of real embeddings: 30,000 sentences of our own (sentences.py) embedded by the local
model, each copy turned by a random angle (cosine .88 to 1 to its original), so that they lie in clusters as real ones
do. Texts are those sentences with three invented words drawn by Zipf's law behind them: some in every tenth text,
many in one alone. Rows of all users are mixed, as they would arrive over time. Written past row-level security by COPY
as the superuser, without indexes; those are made again afterwards, as they were.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import md5
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from pgvector.asyncpg import register_vector
from uuid_utils.compat import uuid7

from bench import sentences
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.language import lexemes
from service.postgres.vectors import TERM_DIMENSIONS
from service.providers.choose import embedder_dimension, embedder_model, open_embedder_of

Vectors = NDArray[np.float32]

ORIGINALS, QUESTIONS = 30_000, 200
NEAREST_COSINE: Final = 0.88
WORDS, WORDS_EACH, ZIPF = 50_000, 3, 1.05
BATCH, EMBEDDED = 5_000, 64
BEGINS = datetime(2024, 1, 1, tzinfo=UTC)
SPAN = timedelta(days=730)
SHARES = 10_000
"""metadata.share is 0..9999: `share < 1` keeps 0.01 % of the rows, `share < 5000` half of them."""

MIXED: Final = (("mid", 3, 20_000), ("small", 10, 2_000), ("tiny", 50, 200))
"""Users beside the big one: name, how many, rows each. None larger than the big one."""

MEMORY_COLUMNS = (
    *("workspace_id", "id", "user_id", "channel", "content", "hash", "dedup_key", "terms", "bm25", "type"),
    *("type_confidence", "classification_source", "importance", "importance_level", "tags", "tag_prefixes"),
    *("metadata", "timestamp", "embedding_status", "created_at", "updated_at"),
)
VECTOR_COLUMNS = ("workspace_id", "memory_id", "generation", "kind", "user_id", "channel", "embedding", "created_at")
STAT_COLUMNS = ("workspace_id", "memory_id", "last_accessed")


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts with their embeddings, and questions that none of the texts was made from."""

    texts: Sequence[str]
    vectors: Vectors
    questions: Sequence[str]
    asked: Vectors


Owned = tuple[str | None, int]
"""A user, or None for what the workspace shares, with the number of rows."""


def users(size: int) -> list[tuple[str, int]]:
    """Every user with the number of rows: one big one, and many beside it."""
    beside = [(f"{name}-{at}", rows) for name, count, rows in MIXED for at in range(count) if rows < size]
    return [("big", size), *beside]


def sources(folder: Path) -> Sources:
    """Embedded once and kept in `folder`."""
    path = folder / f"sources-{ORIGINALS}.npz"
    texts = [CleanText(each) for each in sentences.distinct(ORIGINALS, 1)]
    known = set(texts)
    questions = [each for each in sentences.distinct(ORIGINALS, 2) if each not in known][:QUESTIONS]
    if not path.exists():
        vectors, asked = asyncio.run(_embedded(texts, questions))
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, vectors=vectors, asked=asked)
    with np.load(path) as kept:
        return Sources(texts, kept["vectors"], questions, kept["asked"])


async def _embedded(texts: Sequence[CleanText], questions: Sequence[str]) -> tuple[Vectors, Vectors]:
    settings = Settings.from_env({})
    embedder = open_embedder_of(settings, embedder_model(settings), embedder_dimension(settings))
    vectors = [
        vector for at in range(0, len(texts), EMBEDDED) for vector in await embedder.embed(texts[at : at + EMBEDDED])
    ]
    asked = [await embedder.embed_query(CleanText(each)) for each in questions]
    await embedder.close()
    return np.stack(vectors), np.stack(asked)


def jittered(vectors: Vectors, chance: np.random.Generator) -> Vectors:
    """Each vector (a row of length 1) turned by a random angle in a random direction; length 1."""
    noise = chance.standard_normal(vectors.shape, dtype=np.float32)
    noise -= np.sum(noise * vectors, axis=1, keepdims=True) * vectors
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    cosine = chance.uniform(NEAREST_COSINE, 1, (len(vectors), 1)).astype(np.float32)
    return np.asarray(cosine * vectors + np.sqrt(1 - cosine**2) * noise, dtype=np.float32)


def invented(count: int) -> list[str]:
    """Words that no language has, all different; the first ones are the frequent ones."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    size = len(syllables)
    return ["".join(syllables[at // size**place % size] for place in range(3)) + "x" for at in range(7, count + 7)]


def chosen_words(count: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Places in `invented`, by Zipf's law."""
    weight = np.arange(1, WORDS + 1, dtype=np.float64) ** -ZIPF
    found: NDArray[np.int64] = np.searchsorted(np.cumsum(weight) / weight.sum(), chance.random((count, WORDS_EACH)))
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    memories: list[tuple[Any, ...]]
    vectors: list[tuple[Any, ...]]
    stats: list[tuple[Any, ...]]


def batches(workspace: UUID, owned: Sequence[Owned], seed: int, found: Sources) -> Iterator[Batch]:
    """All rows of these owners, `BATCH` at a time; the same ones for the same seed, but for their ids."""
    chance = np.random.default_rng(seed)
    names = [name for name, _ in owned]
    owners = np.repeat(np.arange(len(names)), [rows for _, rows in owned])
    chance.shuffle(owners)
    words = invented(WORDS)
    for start in range(0, len(owners), BATCH):
        part = owners[start : start + BATCH]
        origin = chance.integers(0, len(found.texts), len(part))
        turned = jittered(found.vectors[origin], chance)
        added = chosen_words(len(part), chance)
        shares = chance.integers(0, SHARES, len(part))
        moments = chance.random(len(part))
        made = Batch([], [], [])
        for at, owner in enumerate(part):
            text = f"{found.texts[origin[at]]} Note: {' '.join(words[word] for word in added[at])}."
            row = _Row(workspace, names[owner], text, start + at, int(shares[at]), float(moments[at]))
            row.into(made, turned[at])
        yield made


@dataclass(frozen=True, slots=True)
class _Row:
    workspace: UUID
    user: str | None
    text: str
    number: int
    share: int
    moment: float

    def into(self, made: Batch, vector: Vectors) -> None:
        key, created = uuid7(), BEGINS + timedelta(seconds=self.number)
        weights = lexemes.weights(self.text)
        digest = md5(f"{self.number} {self.text}".encode(), usedforsecurity=False).hexdigest()
        tag = f"topic:{self.share % 100}"
        made.memories.append(
            (
                self.workspace,
                key,
                self.user,
                "_global",
                self.text,
                digest,
                digest,
                sorted(weights),
                SparseVector(weights, TERM_DIMENSIONS),
                "Context",
                0.5,
                "default",
                0.5,
                5,
                [tag],
                ["topic", tag],
                f'{{"share": {self.share}}}',
                BEGINS + self.moment * SPAN,
                "stored",
                created,
                created,
            )
        )
        vectors = (self.workspace, key, 1, "text", self.user, "_global", HalfVector(vector), created)
        made.vectors.append(vectors)
        made.stats.append((self.workspace, key, created))


INDEXES = """
    SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE NOT i.indisprimary AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = i.indexrelid)
      AND c.oid IN ('memory'::regclass, 'memory_vector'::regclass)
    ORDER BY pg_get_indexdef(indexrelid) ~ 'hnsw', 1
"""

FAST = (
    "SET session_replication_role = replica",  # no foreign key checks: the rows are made in pairs
    "SET synchronous_commit = off",
)


async def load(database: str, workspace: UUID, owned: Sequence[Owned], seed: int, found: Sources) -> dict[str, float]:
    """Writes the rows of these owners; returns the seconds of each step. `database`: asyncpg URL of the superuser."""
    connection = await asyncpg.connect(database)
    await register_vector(connection)
    for setting in FAST:
        await connection.execute(setting)
    indexes = await connection.fetch(INDEXES)
    for index in indexes:
        await connection.execute(f"DROP INDEX {index['name']}")
    took: dict[str, float] = {}
    began = time.perf_counter()
    for batch in batches(workspace, owned, seed, found):
        await connection.copy_records_to_table("memory", columns=MEMORY_COLUMNS, records=batch.memories)
        await connection.copy_records_to_table("memory_vector", columns=VECTOR_COLUMNS, records=batch.vectors)
        await connection.copy_records_to_table("memory_stat", columns=STAT_COLUMNS, records=batch.stats)
    took["rows"] = time.perf_counter() - began
    for index in indexes:
        began = time.perf_counter()
        await connection.execute(index["made"].replace(" ON ONLY ", " ON "))  # the partitions too
        took[index["name"]] = time.perf_counter() - began
        print(f"  {index['name']}: {took[index['name']]:.0f} s", flush=True)
    await connection.execute("VACUUM (ANALYZE) memory")
    await connection.execute("VACUUM (ANALYZE) memory_vector")
    await connection.execute("VACUUM (ANALYZE) memory_stat")
    await connection.close()
    return took

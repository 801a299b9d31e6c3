"""The embedder in use: with its cache, and as that of the active generation, whose cut-over a process notices.

Vectors are cached per owner (the workspace) and wall. Equal texts of two tenants are two entries, or the speed of an
answer and its `usage` would tell one of them what the other has stored. So they are for a key with a wall: what others
in the workspace have stored is not for it to know. Keys hold a hash, never the text. There is a bounded level in the
process and the `embedding_cache` table below it. See docs/decisions/002-row-level-security.md.

Every few seconds a process reads which generation is active. After a cut-over it opens that one's embedder for new
requests and jobs; those that began before keep the old one. docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from uuid import UUID

import structlog

from service.domain.text import CleanText
from service.kit.settings import Settings
from service.language.talk.dates import as_said
from service.observability import metrics, tracing
from service.postgres.engine import Database
from service.providers.budget import Budget
from service.providers.choose import MissingEmbedder, embedder_dimension, embedder_model, open_embedder_of
from service.providers.local import EmbedderProcess
from service.providers.protocols import Embedder, Vector
from service.runtime.background import running
from service.runtime.statements import generations
from service.runtime.statements.caches import VectorTable
from service.runtime.statements.generations import Generation

PASSAGE, QUERY = b"p", b"q"
"""A query and a passage of the same words have different vectors with many models."""


class CachedEmbedder:
    """An embedder with a cache. `entries` bounds the level in the process (384 dimensions are 1.5 kB each)."""

    def __init__(self, embedder: Embedder, *, entries: int, table: VectorTable | None = None) -> None:
        self._embedder = embedder
        self.model, self.dimension = embedder.model, embedder.dimension
        self.similarity, self.query_similarity = embedder.similarity, embedder.query_similarity
        self.windows = embedder.windows
        self.identity = f"{embedder.model}/{embedder.dimension}"  # some models make vectors of several lengths
        self._entries = entries
        self._table = table
        self._wall = ""
        self._budget = Budget()
        self._vectors: OrderedDict[tuple[UUID, bytes], Vector] = OrderedDict()

    def within(self, wall: str, budget: Budget, table: VectorTable) -> CachedEmbedder:
        """A view for one caller, with the entries of its wall (its name, empty without one). `budget`: where texts are
        counted. `table`: used instead of the own one, if there is one."""
        view = copy.copy(self)
        view._wall, view._budget = wall, budget
        view._table = None if self._table is None else table
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
        if missing and self._table is not None:
            stored = dict(await self._table.get_many(owner, self.identity, missing))
            self._remember(owner, stored)
            cached |= stored
        return cached

    async def _keep(self, owner: UUID, vectors: dict[bytes, Vector]) -> dict[bytes, Vector]:
        self._remember(owner, vectors)
        if self._table is not None:
            await self._table.put_many(owner, self.identity, vectors)
        return vectors

    def _remember(self, owner: UUID, vectors: Mapping[bytes, Vector]) -> None:
        for digest, vector in vectors.items():
            vector.flags.writeable = False  # shared by all callers
            self._vectors[owner, digest] = vector
        while len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


log = structlog.get_logger(__name__)

CACHED_VECTORS = 2_000
"""Vectors cached in each process: 384 float32 are 1.5 kB."""

POLL_S = 2.0
CLOSED_AFTER_S = 300.0
"""How long requests (24 s) and most jobs (five minutes) may keep using a replaced embedder. A longer job fails at its
next call, and its next attempt uses the new one."""


@dataclass(frozen=True, slots=True)
class OpenGeneration:
    """A generation, and the embedder that made its vectors; `opened`: the same without its caches."""

    generation: Generation
    embedder: CachedEmbedder
    opened: Embedder


class ActiveEmbedder:
    """The active generation with its open embedder. `note`: a sentence for people; None if the settings name this
    embedder."""

    def __init__(self, database: Database, settings: Settings, *, seldom_used: bool) -> None:
        self._database = database
        self._settings = settings
        self._seldom_used = seldom_used
        self._now: OpenGeneration | None = None
        self._old: list[tuple[float, OpenGeneration]] = []
        self.note: str | None = None

    @property
    def now(self) -> OpenGeneration:
        assert self._now is not None, "refresh() comes first"
        return self._now

    async def refresh(self) -> None:
        """Switches to the active generation. Raises StoreUnavailable, changing nothing."""
        known = await generations.read_all(self._database)
        current = generations.active_of(known)
        if self._now is None or self._now.generation.number != current.number:
            opened = await self.open(current)
            if self._now is not None:
                self._old.append((time.monotonic() + CLOSED_AFTER_S, self._now))
                log.info("generation_changed", generation=current.number, embedder=str(current))
            self._now = OpenGeneration(current, with_caches(opened, self._database), opened)
        self._log_once(difference(self._settings, current, generations.in_state(known, "building"), self._now.opened))

    async def open(self, generation: Generation) -> Embedder:
        """The embedder of a generation, which the caller closes; loading the local one takes about a second."""
        wanted = self._settings, generation.model, generation.dimension
        return await asyncio.to_thread(open_embedder_of, *wanted, seldom_used=self._seldom_used)

    async def end_idle(self, idle_s: float) -> int:
        """Ends processes of embedders that were idle for this long; returns how many."""
        opened = [generation.opened for generation in self._all()]
        return sum([await embedder.end_idle(idle_s) for embedder in opened if isinstance(embedder, EmbedderProcess)])

    async def keep_looking(self) -> None:
        """Looks every few seconds until it is cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                await self.refresh()
                await self._close_old()
            except Exception as exc:  # the database is down, or the embedder cannot be loaded
                log.warning("generation_not_read", kind=type(exc).__name__)

    async def close(self) -> None:
        for generation in self._all():
            await generation.embedder.close()

    def _all(self) -> list[OpenGeneration]:
        return [*(old for _, old in self._old), *([] if self._now is None else [self._now])]

    async def _close_old(self) -> None:
        while self._old and self._old[0][0] <= time.monotonic():
            _, old = self._old.pop(0)
            await old.embedder.close()

    def _log_once(self, note: str | None) -> None:
        if note is not None and note != self.note:
            log.warning("embedder_differs", detail=note)
        self.note = note


@asynccontextmanager
async def active_embedder(
    database: Database, settings: Settings, *, seldom_used: bool
) -> AsyncIterator[ActiveEmbedder]:
    """The embedder that follows the active generation within the block. Raises StoreUnavailable."""
    embedder = ActiveEmbedder(database, settings, seldom_used=seldom_used)
    try:
        await embedder.refresh()
        async with running(embedder.keep_looking()):
            yield embedder
    finally:
        await embedder.close()


def with_caches(embedder: Embedder, database: Database) -> CachedEmbedder:
    """The embedder with its caches; the table only for a remote one, as the local embedder is as fast."""
    table = None if embedder.model.startswith("local:") else VectorTable(database)
    return CachedEmbedder(embedder, entries=CACHED_VECTORS, table=table)


async def describe_embedder(database: Database, settings: Settings) -> str | None:
    """The sentence about the embedder, without opening it. Raises StoreUnavailable."""
    known = await generations.read_all(database)
    return difference(settings, generations.active_of(known), generations.in_state(known, "building"))


def difference(
    settings: Settings, active: Generation, building: Generation | None, opened: Embedder | None = None
) -> str | None:
    """A sentence or two if the settings name another embedder than the one that made the vectors; else None."""
    model, dimension = embedder_model(settings), embedder_dimension(settings)
    if (active.model, active.dimension) == (model, dimension):
        return None
    wanted = f"{model} ({dimension} dimensions)"
    if building and (building.model, building.dimension) == (model, dimension):
        said = (
            f"Vectors of {wanted} are being made (GET /v1/jobs/reembed?system=true); until then searches use {active}."
        )
    else:
        said = (
            f"The settings name the embedder {wanted}, but the vectors are of {active}, which searches go on using: "
            "run `loxodon reembed` to change over, or set EMBEDDER_PROVIDER and EMBEDDER_MODEL back."
        )
    if isinstance(opened, MissingEmbedder):
        said += (
            f" That cannot be opened with these settings ({opened.reason}), so searches go by words alone: set "
            "LOXODON_OLD_EMBEDDER_BASE_URL and LOXODON_OLD_EMBEDDER_API_KEY."
        )
    return said

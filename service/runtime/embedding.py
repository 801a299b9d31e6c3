"""The open embedder of the active generation, and how a process notices a cut-over.

Every few seconds it reads which generation is active. After a cut-over it opens that one's embedder for new requests
and jobs; those that began before keep the old one. docs/decisions/065-re-embedding.md
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from service.kit.settings import Settings
from service.postgres.engine import Database
from service.providers.caches import CachedEmbedder
from service.providers.choose import MissingEmbedder, embedder_dimension, embedder_model, open_embedder_of
from service.providers.embedder_process import EmbedderProcess
from service.providers.protocols import Embedder
from service.runtime.background import running
from service.runtime.statements import generations
from service.runtime.statements.caches import VectorTable
from service.runtime.statements.generations import Generation

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
    store = None if embedder.model.startswith("local:") else VectorTable(database)
    return CachedEmbedder(embedder, entries=CACHED_VECTORS, store=store)


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

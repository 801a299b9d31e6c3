"""The local embedder in a process of its own, which ends when nothing needs it.

For the worker: it embeds now and then, and the model with its libraries takes 60 MB that a process gives back for
certain only when it ends. A call costs a quarter of a millisecond more, the first one a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from service.domain.text import CleanText
from service.providers.local import CALIBRATION, DIMENSION, MODEL, LocalEmbedder
from service.providers.protocols import Vector
from service.rule_processes import RuleProcesses

LIMIT_S = 3_600.0
"""Of CPU for a call: the time limits of jobs end it sooner."""


class LentEmbedder:
    """The embedder of `LocalEmbedder.load`, to which each call is handed over. One call runs at a time."""

    model = MODEL
    dimension = DIMENSION

    def __init__(self, model_dir: Path | None, *, threads: int, max_queue: int, window: int) -> None:
        self._options = model_dir, threads, max_queue, window
        self._process = RuleProcesses(workers=1, waiting=max_queue, limit_s=LIMIT_S, keeps_server=False)

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        """One vector of length 1 per text, in their order; raises EmbeddingError, or Unavailable."""
        return await self._process.run(_embed, self._options, texts)

    async def embed_query(self, text: CleanText) -> Vector:
        """The vector of a search query, made with the query prefix."""
        return await self._process.run(_embed_query, self._options, text)

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        """How many windows of the text are read, and whether they cover it."""
        return await self._process.run(_windows, self._options, text)

    def similarity(self, cosine: float) -> float:
        """The calibrated cosine of two stored texts, 0..1."""
        return CALIBRATION.documents(cosine)

    def query_similarity(self, cosine: float) -> float:
        """The calibrated cosine of a query and a stored text, 0..1."""
        return CALIBRATION.queries(cosine)

    def end_idle(self, idle_s: float) -> int:
        """Ends the process when it had no call for so long; returns how many ended."""
        return self._process.end_idle(idle_s)

    async def close(self) -> None:
        """Ends the process, now or after the call that it has."""
        self._process.close()


Options = tuple[Path | None, int, int, int]


@cache
def _loop() -> asyncio.Runner:
    """The event loop of the process; embedders belong to one."""
    return asyncio.Runner()


@cache
def _embedder(options: Options) -> LocalEmbedder:
    model_dir, threads, max_queue, window = options
    return LocalEmbedder.load(model_dir, threads=threads, max_queue=max_queue, window=window)


def _embed(options: Options, texts: Sequence[CleanText]) -> list[Vector]:
    return _loop().run(_embedder(options).embed(texts))


def _embed_query(options: Options, text: CleanText) -> Vector:
    return _loop().run(_embedder(options).embed_query(text))


def _windows(options: Options, text: CleanText) -> tuple[int, bool]:
    return _loop().run(_embedder(options).windows(text))

"""Work before the first request, so that it need not pay for it.

A new connection of the pool knows no table: its first search took twice as long as the second. So the usual number of
connections is opened at the start, and each makes a search that finds nothing, by the same code as any other. What
fails here is logged; then the first requests are slower.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import structlog
from fastapi import FastAPI

from service.domain.query import Query
from service.domain.scope import NIL_WORKSPACE, Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.providers.caches import CachedEmbedder
from service.providers.calibration import CalibratedEmbedder
from service.providers.protocols import Vector
from service.runtime.opening import open_resources
from service.runtime.resources import Resources
from service.search import preparation, search
from service.understanding import model_days

log = structlog.get_logger(__name__)

MAX_CONNECTIONS = 10
"""Connections that are opened at the start, the pool's size by default: some 25 ms each, two at a time on two cores."""

START_DELAY_MAX_S = 2.0
"""How long a start waits for them."""

QUERY_TEXT = CleanText("Which book did Ada lend to her brother?")
"""A query that names a person, so that names are looked up too."""


@asynccontextmanager
async def opened(settings: Settings, app: FastAPI) -> AsyncIterator[Resources]:
    """The resources, with connections that have searched before, and the routes of `app`."""
    async with open_resources(settings) as res:
        probing = asyncio.create_task(model_days.probe(res))
        try:
            await _try_out(res, app)
            yield res
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)


async def _try_out(res: Resources, app: FastAPI) -> None:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(START_DELAY_MAX_S), asyncio.TaskGroup() as group:
            group.create_task(connections(res, min(res.settings.database.pool_size, MAX_CONNECTIONS)))
            routes(app)
    except Exception as exc:  # the service starts without it
        log.warning("warm_up_failed", kind=type(exc).__name__)
    else:
        log.info("warmed_up", took_ms=round((time.perf_counter() - began) * 1000))


async def connections(res: Resources, count: int) -> None:
    """Opens `count` connections at once, and searches on each of them in a workspace without any rows."""
    offline = replace(
        res, embedder=CachedEmbedder(_ZeroEmbedder(res.embedder.dimension), entries=0), llm=None, reranker=None
    )
    query = Query(Scope(NIL_WORKSPACE, user_id="nobody"), QUERY_TEXT, 10)
    ready = await preparation.prepare(query, offline, {})
    all_open = asyncio.Barrier(count)

    async def one() -> None:
        async with res.db.snapshot(NIL_WORKSPACE, steady_plans=True) as session:
            await search.read(session, ready, offline)
            await all_open.wait()  # given back sooner, the next one would take it instead of opening another

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())


def routes(app: FastAPI) -> None:
    """Lets all routes analyse their parameters. Otherwise each does so on the first request that passes it, in some 5
    ms, and the first request to the last route held up all others for half a second."""
    nowhere = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches(nowhere)


class _ZeroEmbedder(CalibratedEmbedder):
    """An embedder without a model, so that a start neither waits nor pays for a hosted one."""

    model = "none"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text: CleanText) -> Vector:
        vector = np.zeros(self.dimension, dtype=np.float32)
        vector[0] = 1.0
        return vector

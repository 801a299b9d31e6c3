"""A worker of one kind of job that is forked in milliseconds and dies at a moment chosen before.

The server that forks it has everything imported (job_chaos.py), so thirty deaths cost seconds. The worker is the
service's own, with its own tasks; only the embedder is another, whose vectors cost nothing. Batches are small, so that
a death falls between two of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

import service.domain.job
from bench.superuser import login_url
from service.domain import sizes
from service.domain.errors import LlmError
from service.domain.job import Job, JobName
from service.domain.text import CleanText
from service.erasure import forget_scope
from service.kit.settings import Settings
from service.memories.statements import deletion
from service.postgres.engine import Access, Database
from service.postgres.roles import APP, WORKER
from service.providers.protocols import Embedder, LlmReply, LlmRequest, Vector
from service.queue.wakeup import Wakeup
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.upkeep.jobs import ageing, maintenance
from service.upkeep.statements import fading
from service.worker import loop
from service.worker.loop import Worker
from service.worker.registry import TASKS

P = ParamSpec("P")
T = TypeVar("T")

DIMENSION = 384
SETTINGS = Settings.of({"embedder_provider": "test", "embedding_dim": DIMENSION})
loop.POLL_S, loop.LEASE_S, loop.BACKOFF_S = 0.05, 1.1, 0.05
BATCH = 40
ATTEMPTS = 20


class StableEmbedder(Embedder):
    """A direction for each text, the same in every process."""

    model = "test:stable"
    dimension = DIMENSION

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    async def embed_query(self, text: CleanText) -> Vector:
        return self._vector(text)

    def _vector(self, text: str) -> Vector:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        found = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
        return np.asarray(found / np.linalg.norm(found), dtype=np.float32)


class AbsentLlm:
    """A language model that never answers, for what is kept until it does."""

    model = "test:absent"

    async def complete(self, _request: LlmRequest) -> LlmReply:
        raise LlmError("The language model did not answer.")

    async def close(self) -> None:
        return None


def open_resources(url: str, role: str, *, pool_size: int = 5) -> Resources:
    """`url`: the superuser's, of a server that trusts."""
    database = Database(Access(login_url(url, role), pooled=False), pool_size=pool_size, pool_timeout_s=5)
    embedder = CachedEmbedder(StableEmbedder(), entries=0)
    return Resources(database, embedder, 1, None, SETTINGS, Wakeup(login_url(url, APP)))


@dataclass(frozen=True, slots=True)
class Death:
    """SIGKILL to `pid`, 0 for the worker itself, so many seconds after its first task began."""

    pid: int
    after_s: float


def work(url: str, name: JobName, death: Death | None, said: Connection) -> None:
    """Works on one kind until SIGTERM. Says how long its first run took, unless it dies or fails."""
    small_batches()
    asyncio.run(_work(url, name, death, said))


async def _work(url: str, name: JobName, death: Death | None, said: Connection) -> None:
    stop, first = asyncio.Event(), [True]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    real = TASKS[name]

    def watched(call: Callable[[Any, Resources], Awaitable[Any]]) -> Callable[[Any, Resources], Awaitable[Any]]:
        async def run(jobs: Any, res: Resources) -> Any:
            is_first, first[0] = first[0], False
            began = time.monotonic()
            if is_first and death is not None:
                threading.Thread(target=_die, args=(death,), daemon=True).start()
            found = await call(jobs, res)
            if is_first:
                said.send(time.monotonic() - began)
            return found

        return run

    together = watched(real.together) if real.together is not None else None
    task = replace(real, run=watched(real.run), together=together, interval_s=None, at_start=False)
    res = open_resources(url, WORKER)
    try:
        await Worker(res, {name: task}).run(stop)
    finally:
        await res.wakeup.close()
        await res.db.close()


def run_once(url: str, jobs: Sequence[Job], said: Connection) -> None:
    """Runs the task of these jobs as a worker would that has lost its lease and does not know; tries again what
    fails. Says what failed for good."""
    small_batches()
    said.send(asyncio.run(_run_once(url, jobs)))


async def _run_once(url: str, jobs: Sequence[Job]) -> list[str]:
    res = open_resources(url, WORKER)
    failed = []
    for job in jobs:
        for left in reversed(range(ATTEMPTS)):
            try:
                await TASKS[cast(JobName, job.kind)].run(job, res)
                break
            except Exception as exc:
                if left == 0 or not getattr(exc, "retryable", True):
                    failed.append(f"{type(exc).__name__}: {exc}")
                    break
    await res.wakeup.close()
    await res.db.close()
    return failed


def _die(death: Death) -> None:
    time.sleep(death.after_s)
    os.kill(death.pid or os.getpid(), signal.SIGKILL)


def small_batches() -> None:
    """In this process: deaths should fall between batches, and few memories be enough for several of them."""
    fading.BATCH = maintenance.BATCH = ageing.BATCH = BATCH
    forget_scope.RESET_BATCH = forget_scope.MAX_INLINE_ROWS = BATCH
    service.domain.job.MAX_ATTEMPTS = ATTEMPTS
    sizes.EXACT_ROWS = 2  # so that a handful of texts is counted
    defaults = deletion.next_ids.__kwdefaults__
    assert defaults is not None, "its limit is a keyword"
    defaults["limit"] = BATCH

"""Measures ageing: how long `relevance` and `decay` take over a workspace, and what writers beside them notice.

    python -m bench.ageing [--memories 100000] [--batch 1000] [--url postgresql+asyncpg://...]

Without a URL it starts a durable embedded server (fsync on, as in production). The writers add memories and count uses
of those that the run is going over.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

from sqlalchemy import text
from uuid_utils.compat import uuid7

from bench.queue import SETTINGS, open_database
from bench.superuser import SUPERUSER, login_url, trusting
from service.access.statements import keys
from service.domain.job import Counts, Job
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Database
from service.postgres.roles import APP, OWNER, WORKER
from service.queue.wakeup import Wakeup
from service.runtime.resources import Resources
from service.runtime.statements import stats
from service.runtime.statements.stats import Use
from service.upkeep.jobs import ageing
from service.upkeep.statements import fading

CHUNK = 10_000
WRITERS = 4
STORED = datetime(2026, 3, 1, tzinfo=UTC)

MEMORIES = text("""
    INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source,
                        importance, importance_level, "timestamp", embedding_status, created_at, updated_at)
    SELECT :workspace, id, 'alice', 'Memory ' || id, md5(id::text), 'Context', 1, 'default', 0.5, 5, :at, 'stored', :at,
           :at FROM unnest(CAST(:ids AS uuid[])) AS id
""")
STATS = text("""
    INSERT INTO memory_stat (workspace_id, memory_id, salience, base_salience, last_accessed)
    SELECT :workspace, id, 0.5, 0.5, :at FROM unnest(CAST(:ids AS uuid[])) AS id
""")

Task = Callable[[Job, Resources], Awaitable[Counts]]
TASKS: dict[str, Task] = {"relevance": ageing.relevance, "decay": ageing.decay}


def later(res: Resources, *, days: int) -> Resources:
    """With the clock so many days after the memories were stored."""
    then = STORED + timedelta(days=days)
    return replace(res, clock=lambda: then)


async def add(app: Database, workspace: UUID, ids: list[UUID]) -> None:
    async with app.begin(workspace) as session:
        for statement in (MEMORIES, STATS):
            await session.execute(statement, {"workspace": workspace, "ids": ids, "at": STORED})


async def write(app: Database, workspace: UUID, ids: list[UUID], took_ms: list[float]) -> None:
    """Adds memories and counts uses, one after the other, until it is cancelled."""
    while True:
        began = time.perf_counter()
        await add(app, workspace, [uuid7()])
        async with app.begin(workspace) as session:
            await stats.count_uses(session, {each: Use(1, STORED) for each in random.sample(ids, 10)}, {})
        took_ms.append(1000 * (time.perf_counter() - began))


@asynccontextmanager
async def writing(app: Database, workspace: UUID, ids: list[UUID]) -> AsyncIterator[list[float]]:
    took_ms: list[float] = []
    writers = [asyncio.create_task(write(app, workspace, ids, took_ms)) for _ in range(WRITERS)]
    try:
        yield took_ms
    finally:
        for each in writers:
            each.cancel()
        await asyncio.gather(*writers, return_exceptions=True)


class Batches:
    """Notes how long each batch of a run took, which is the longest that it holds a lock."""

    def __init__(self) -> None:
        self.took_ms: list[float] = []
        self._age = fading.age

    async def __call__(self, *args: Any, **kwargs: Any) -> tuple[int, int, UUID | None]:
        began = time.perf_counter()
        batch = await self._age(*args, **kwargs)
        self.took_ms.append(1000 * (time.perf_counter() - began))
        return batch


async def timed(task: Task, workspace: UUID, res: Resources, batches: Batches) -> str:
    batches.took_ms.clear()
    began = time.perf_counter()
    counts = await task(Job(workspace, uuid4(), "bench", None, {}, 1, 1, "bench"), res)
    took_s = time.perf_counter() - began
    return f"{took_s:.2f} s, {counts['changed']:,} written, longest batch {max(batches.took_ms):.0f} ms"


def p99(took_ms: list[float]) -> float:
    return sorted(took_ms)[int(0.99 * len(took_ms))] if took_ms else float("nan")


async def measure(url: str, count: int) -> None:
    await migrate.upgrade_async(login_url(url, OWNER), SETTINGS)
    app, worker = await open_database(url, APP), await open_database(url, WORKER)
    workspace = (await keys.create_workspace(app, "bench", rights=keys.EVERY_RIGHT)).workspace_id
    ids, batches = [uuid7() for _ in range(count)], Batches()
    for start in range(0, count, CHUNK):
        await add(app, workspace, ids[start : start + CHUNK])
    setattr(fading, "age", batches)  # noqa: B010 - mypy does not let a function be replaced
    res = Resources(worker, cast(Any, None), 1, None, SETTINGS, Wakeup(url))
    async with writing(app, workspace, ids) as alone:
        await asyncio.sleep(5)
    print(f"writes alone: p99 {p99(alone):.0f} ms, {len(alone)} in 5 s")
    for name, task in TASKS.items():
        for run in ("every row moves", "none moves"):
            print(f"{name}, {run}: {await timed(task, workspace, later(res, days=2), batches)}")
    async with writing(app, workspace, ids) as beside:
        for name, task in TASKS.items():
            print(f"{name} beside writers: {await timed(task, workspace, later(res, days=9), batches)}")
    print(f"writes beside: p99 {p99(beside):.0f} ms, {len(beside)} in all")
    print(f"load average {os.getloadavg()[0]:.1f} (1 min), {os.cpu_count()} cores")
    for database in (app, worker):
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--url", help="a migrated or empty database, as its superuser or owner")
    parser.add_argument("--batch", type=int, default=fading.BATCH)
    options = parser.parse_args()
    fading.BATCH = options.batch
    if options.url:
        asyncio.run(measure(options.url, options.memories))
        return
    with (
        tempfile.TemporaryDirectory(prefix="loxodon-bench-") as folder,
        EmbeddedPostgres(Path(folder), settings=trusting(Path(folder))) as server,
    ):
        asyncio.run(measure(server.url(SUPERUSER), options.memories))


if __name__ == "__main__":
    main()

"""Measures the queue: jobs per second, delay until they start, and fairness between tenants.

    python -m bench.queue [--jobs 20000] [--url postgresql+asyncpg://...]

Without a URL it starts a durable embedded server (fsync on, as in production). The kinds of jobs are made up, so a
database in use gets rows but its workers are not disturbed. Run it as a module: run as bench/queue.py, its folder would
shadow the standard library's queue.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

from sqlalchemy import text

from bench.superuser import SUPERUSER, login_url, trusting
from service.domain.job import Ending, Job, JobName, NewJob
from service.domain.scope import NIL_WORKSPACE
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import APP, OWNER, WORKER
from service.queue.statements import queue
from service.queue.statements.queue import FIRST_LANE
from service.queue.wakeup import Wakeup
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.loop import Worker
from service.worker.registry import Task

CHUNK = 5_000  # jobs per enqueueing transaction
SETTINGS = Settings.of({})


def new_kind() -> JobName:
    return cast(JobName, f"bench-{uuid4()}")


async def fill(app: Database, workspace: UUID, kind: JobName, count: int) -> None:
    for start in range(0, count, CHUNK):
        async with app.begin(workspace) as session:
            await queue.enqueue(session, [NewJob(kind) for _ in range(min(CHUNK, count - start))])


async def enqueue_cost(app: Database) -> tuple[float, float]:
    """Returns the median ms of SELECT 1, the bare round trip, and of enqueueing one job in an open transaction."""
    trips: list[float] = []
    enqueues: list[float] = []
    workspace, kind = uuid4(), new_kind()
    for _ in range(300):
        async with app.begin(workspace) as session:
            began = time.perf_counter()
            await session.execute(text("SELECT 1"))
            halfway = time.perf_counter()
            await queue.enqueue(session, [NewJob(kind)])
            trips.append(1000 * (halfway - began))
            enqueues.append(1000 * (time.perf_counter() - halfway))
    return statistics.median(trips), statistics.median(enqueues)


async def drain(worker: Database, kind: str, *, batch: int, workers: int) -> float:
    """Returns jobs per second through claiming and finishing only."""

    async def work(name: str) -> int:
        done, after = 0, FIRST_LANE
        while True:
            async with worker.begin(NIL_WORKSPACE) as session:
                jobs = await queue.claim(session, name, [kind], batch, 60, after=after)
            if not jobs:
                return done
            after = (jobs[-1].workspace_id, jobs[-1].kind)
            async with worker.begin(NIL_WORKSPACE) as session:
                done += len(await queue.finish(session, [Ending(job, "done") for job in jobs]))

    began = time.perf_counter()
    done = sum(await asyncio.gather(*(work(f"bench-{number}") for number in range(workers))))
    return done / (time.perf_counter() - began)


async def through_the_loop(res: Resources, app: Database, count: int) -> float:
    """Returns no-op jobs per second through one whole worker: claims, tasks, leases, endings."""
    kind, workspace, ran, all_ran = new_kind(), uuid4(), 0, asyncio.Event()

    async def nothing(_job: Job, _res: Resources) -> None:
        nonlocal ran
        ran += 1
        if ran == count:
            all_ran.set()

    await fill(app, workspace, kind, count)
    began = time.perf_counter()
    async with working(res, kind, Task(nothing)):
        await all_ran.wait()
    return count / (time.perf_counter() - began)


async def latencies(res: Resources, app: Database, rounds: int) -> list[float]:
    """Returns the ms from commit to the first line of the task, with an idle worker that polls every 30 s."""
    kind, workspace = new_kind(), uuid4()
    ran: asyncio.Queue[float] = asyncio.Queue()

    async def note(_job: Job, _res: Resources) -> None:
        ran.put_nowait(time.perf_counter())

    sender, found = Wakeup(app_url(app)), []
    async with working(res, kind, Task(note), poll_s=30.0):
        await asyncio.sleep(2)
        for _ in range(rounds):
            async with app.begin(workspace) as session:
                await queue.enqueue(session, [NewJob(kind)])
            began = time.perf_counter()
            sender.notify()
            found.append(1000 * (await ran.get() - began))
            await asyncio.sleep(0.12)
    await sender.close()
    return sorted(found)


async def fairness(res: Resources, app: Database, *, tenants: int, flood: int) -> dict[str, float]:
    """Floods with one tenant, then adds a job for each of `tenants` others; returns how long those wait."""
    kind, left, all_served = new_kind(), tenants, asyncio.Event()
    flooding = uuid4()

    async def run(job: Job, _res: Resources) -> None:
        nonlocal left
        left -= job.workspace_id != flooding
        if left == 0:
            all_served.set()
        await asyncio.sleep(0.001)

    await fill(app, flooding, kind, flood)
    for _ in range(tenants):
        await fill(app, uuid4(), kind, 1)
    began = time.perf_counter()
    async with working(res, kind, Task(run)):
        await all_served.wait()
        others_s = time.perf_counter() - began
    rest = await remaining(res.db, kind)
    return {"others_done_s": others_s, "flood_left": rest}


async def claim_times(app: Database, worker: Database, *, tenants: int, jobs: int) -> tuple[list[float], list[float]]:
    """Returns the ms per claim of 20 with `jobs` ready in `tenants` workspaces, and when none is due."""
    kind, each = new_kind(), jobs // tenants
    for _ in range(tenants):
        await fill(app, uuid4(), kind, each)
    ready = await timed_claims(worker, kind, 200)
    async with worker.begin(NIL_WORKSPACE) as session:
        later = text("UPDATE job SET run_after = now() + interval '1 hour' WHERE kind = :kind AND state = 'ready'")
        await session.execute(later, {"kind": kind})
    return ready, await timed_claims(worker, kind, 50)


async def timed_claims(worker: Database, kind: str, rounds: int) -> list[float]:
    found, after = [], FIRST_LANE
    for _ in range(rounds):
        began = time.perf_counter()
        async with worker.begin(NIL_WORKSPACE) as session:
            jobs = await queue.claim(session, "bench", [kind], 20, 600, after=after)
        found.append(1000 * (time.perf_counter() - began))
        after = (jobs[-1].workspace_id, jobs[-1].kind) if jobs else after
    return sorted(found)


async def remaining(worker: Database, kind: str) -> int:
    async with worker.read() as session:
        counted = text("SELECT count(*) FROM job WHERE kind = :kind AND state = 'ready'")
        return int(await session.scalar(counted, {"kind": kind}) or 0)


@asynccontextmanager
async def working(res: Resources, kind: JobName, task: Task, *, poll_s: float = loop.POLL_S) -> AsyncIterator[None]:
    stop = asyncio.Event()
    loop.POLL_S = poll_s
    found = replace(res, wakeup=Wakeup(app_url(res.db)))
    running = asyncio.create_task(Worker(found, {kind: task}).run(stop))
    try:
        yield
    finally:
        stop.set()
        await running
        await found.wakeup.close()


def app_url(database: Database) -> str:
    return database.engine.url.render_as_string(hide_password=False)


async def open_database(url: str, role: str) -> Database:
    access = await find_access(login_url(url, role), wanted_role=role, pooled=False)
    return Database(access, pool_size=12, pool_timeout_s=30, statement_timeout_s=120)


async def measure(url: str, count: int) -> None:
    await migrate.upgrade_async(login_url(url, OWNER), SETTINGS)
    app, worker = await open_database(url, APP), await open_database(url, WORKER)
    # these tasks use no embedder
    res = Resources(worker, cast(Any, None), 1, None, SETTINGS, Wakeup(url))
    trip, enqueue = await enqueue_cost(app)
    print(f"enqueue inside a transaction: {enqueue:.2f} ms (SELECT 1: {trip:.2f} ms)")
    for batch, workers in ((10, 1), (100, 1), (100, 4)):
        kind = new_kind()
        await fill(app, uuid4(), kind, count)
        rate = await drain(worker, kind, batch=batch, workers=workers)
        print(f"claim and settle, batches of {batch}, {workers} workers: {rate:,.0f} jobs/s")
    print(f"one worker, no-op tasks: {await through_the_loop(res, app, count):,.0f} jobs/s")
    took = await latencies(res, app, 40)
    print(f"commit to start: p50 {took[20]:.1f} ms, p95 {took[37]:.1f} ms")
    ready, idle = await claim_times(app, worker, tenants=1_000, jobs=100_000)
    print(f"claim of 20 from 100,000 jobs of 1,000 tenants: p50 {ready[100]:.1f} ms, p95 {ready[190]:.1f} ms")
    print(f"the same when none is due: p50 {idle[25]:.1f} ms, p95 {idle[47]:.1f} ms")
    fair = await fairness(res, app, tenants=200, flood=100_000)
    print(
        f"200 tenants with a job each during a flood of 100,000: done after {fair['others_done_s']:.1f} s, "
        f"{fair['flood_left']:,} of the flood left"
    )
    print(f"load average {os.getloadavg()[0]:.1f} (1 min), {os.cpu_count()} cores")
    for database in (app, worker):
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--url", help="a migrated or empty database, as its superuser or owner")
    options = parser.parse_args()
    if options.url:
        asyncio.run(measure(options.url, options.jobs))
        return
    with (
        tempfile.TemporaryDirectory(prefix="loxodon-bench-") as folder,
        EmbeddedPostgres(Path(folder), settings=trusting(Path(folder))) as server,
    ):
        asyncio.run(measure(server.url(SUPERUSER), options.jobs))


if __name__ == "__main__":
    main()

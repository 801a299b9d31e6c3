"""What is left when a worker process, or Postgres, is killed."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from pathlib import Path
from uuid import UUID, uuid4

from service.domain.job import Job, JobName, NewJob
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.engine import Access, Database
from service.postgres.roles import JOBS_LOGIN, MIGRATE_LOGIN
from service.queue.wakeup import Wakeup
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.worker.registry import Task
from tests.fakes.embedder import AngleEmbedder
from tests.support.workers import Start, add, jobs_of, states, until, working


def count(folder: Path, pattern: str = "*") -> int:
    return len(list(folder.glob(pattern)))


async def test_a_killed_workers_job_runs_again_after_its_lease(
    database: Database,
    worker_database: Database,
    owner_url: str,
    workspace: UUID,
    kind: JobName,
    start_worker: Start,
    tmp_path: Path,
) -> None:
    async def began() -> bool:
        return count(tmp_path, "1-*") > 0

    async def done() -> bool:
        return await states(worker_database, kind) == ["done"]

    await add(database, workspace, NewJob(kind))
    victim = start_worker(owner_url, kind, "hang", tmp_path)
    await until(began, timeout_s=30)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert await states(worker_database, kind) == ["running"]
    start_worker(owner_url, kind, "ok", tmp_path)
    await until(done, timeout_s=30)
    (row,) = await jobs_of(worker_database, kind)
    assert row.attempts == 2
    assert count(tmp_path, "2-*") == 1


async def test_a_job_that_kills_every_worker_ends_dead(
    database: Database,
    worker_database: Database,
    owner_url: str,
    workspace: UUID,
    kind: JobName,
    start_worker: Start,
    tmp_path: Path,
) -> None:
    await add(database, workspace, NewJob(kind, max_attempts=2))
    for _ in range(2):
        victim = start_worker(owner_url, kind, "die", tmp_path)
        assert await asyncio.to_thread(victim.wait, 40) == -signal.SIGKILL

    async def dead() -> bool:
        return await states(worker_database, kind) == ["dead"]

    survivor = start_worker(owner_url, kind, "die", tmp_path)
    await until(dead, timeout_s=30)
    assert survivor.poll() is None
    assert count(tmp_path) == 2


async def test_sigterm_ends_the_running_job_and_the_process(
    database: Database,
    worker_database: Database,
    owner_url: str,
    workspace: UUID,
    kind: JobName,
    start_worker: Start,
    tmp_path: Path,
) -> None:
    async def four_began() -> bool:
        return count(tmp_path, "1-*") == 4

    await add(database, workspace, *(NewJob(kind) for _ in range(6)))
    process = start_worker(owner_url, kind, "slow", tmp_path)
    await until(four_began, timeout_s=30)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 20) == 0
    found = await states(worker_database, kind)
    assert sorted(found) == ["done"] * 4 + ["ready"] * 2
    assert count(tmp_path, "end-*") == 4


async def test_a_worker_lives_through_a_restart_of_postgres(kind: JobName) -> None:
    ran: list[UUID] = []

    async def run(job: Job, _res: Resources) -> None:
        ran.append(job.id)

    async def one_ran() -> bool:
        return len(ran) >= 1

    async def all_done() -> bool:
        return await states(database, kind) == ["done", "done"]

    with tempfile.TemporaryDirectory(prefix="loxodon-tests-") as folder:
        server = EmbeddedPostgres(Path(folder), settings={"fsync": "off", "shared_buffers": "16MB"})
        running = server.start()
        await migrate.upgrade_async(running.url(MIGRATE_LOGIN), Settings.of({}))
        database = Database(Access(running.url(JOBS_LOGIN)), pool_size=3, pool_timeout_s=2)
        wakeup = Wakeup(running.url(JOBS_LOGIN))
        settings = Settings.of({})
        res = Resources(database, CachedEmbedder(AngleEmbedder(), entries=0), 1, None, settings, wakeup)
        try:
            async with working(res, {kind: Task(run)}):
                await add(database, uuid4(), NewJob(kind))
                await until(one_ran)
                server.stop()
                await asyncio.sleep(1)
                server.start()
                await add(database, uuid4(), NewJob(kind))
                await until(all_done, timeout_s=40)  # the first one ran again if its lease ended before the restart
                await until(lambda: _works(wakeup), timeout_s=30)
        finally:
            await wakeup.close()
            await database.close()
            server.stop()


async def _works(wakeup: Wakeup) -> bool:
    return wakeup.works

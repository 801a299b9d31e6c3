"""A worker runs everything once, retries what may be retried, and loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args
from uuid import UUID

import pytest
from prometheus_client import REGISTRY
from sqlalchemy import text

from bench.superuser import login_url
from service.domain.errors import InvalidInput, Misconfigured, StoreUnavailable
from service.domain.job import Job, JobName, NewJob
from service.kit.settings import Settings
from service.postgres.engine import Database, in_transaction
from service.postgres.roles import APP
from service.queue.statements import overview
from service.queue.wakeup import Wakeup
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.registry import TASKS, Task
from tests.support.workers import add, all_in, jobs_of, make_kind, states, until, working


async def test_every_job_runs_once_with_four_workers(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    ran: Counter[UUID] = Counter()
    inside: set[UUID] = set()

    async def run(job: Job, _res: Resources) -> None:
        assert job.id not in inside
        inside.add(job.id)
        ran[job.id] += 1
        await asyncio.sleep(0.001)
        inside.discard(job.id)

    async def all_done() -> bool:
        return sum(ran.values()) >= 400

    await add(database, workspace, *(NewJob(kind) for _ in range(400)))
    tasks = {kind: Task(run)}
    async with working(res, tasks), working(res, tasks), working(res, tasks), working(res, tasks):
        await until(all_done)
    assert set(ran.values()) == {1}
    assert Counter(await states(worker_database, kind)) == {"done": 400}


async def test_a_run_holds_no_transaction_and_at_most_so_many_run_at_once(
    database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    running, most, ended = 0, 0, 0

    async def run(_job: Job, _res: Resources) -> None:
        nonlocal running, most, ended
        assert not in_transaction()
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        ended += 1

    async def all_done() -> bool:
        return ended == 40

    await add(database, workspace, *(NewJob(kind) for _ in range(40)))
    three = replace(res, settings=res.settings.changed(worker_concurrency=3))
    async with working(three, {kind: Task(run)}):
        await until(all_done)
    assert most == 3


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(InvalidInput("no"), 1), (StoreUnavailable("busy"), 3), (KeyError("secret text"), 3), (TimeoutError(), 3)],
)
async def test_what_may_be_retried_is_retried_and_then_dead(
    worker_database: Database,
    database: Database,
    res: Resources,
    workspace: UUID,
    kind: JobName,
    error: Exception,
    attempts: int,
) -> None:
    async def run(_job: Job, _res: Resources) -> None:
        raise error

    await add(database, workspace, NewJob(kind))
    async with working(res, {kind: Task(run)}):
        await until(all_in(worker_database, kind, "dead"))
    (row,) = await jobs_of(worker_database, kind)
    assert row.attempts == attempts
    assert row.finished_at is not None
    assert "secret text" not in row.last_error
    assert REGISTRY.get_sample_value("loxodon_jobs_done_total", {"kind": kind, "outcome": "dead"}) == 1


async def test_a_run_that_takes_too_long_is_cancelled_and_has_failed(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    async def run(_job: Job, _res: Resources) -> None:
        await asyncio.sleep(60)

    await add(database, workspace, NewJob(kind, max_attempts=1))
    async with working(res, {kind: Task(run, timeout_s=0.1)}):
        await until(all_in(worker_database, kind, "dead"))


async def test_first_attempts_run_together_and_after_a_failure_alone(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    together: list[int] = []
    alone: list[Job] = []

    async def run(job: Job, _res: Resources) -> None:
        alone.append(job)
        if job.payload == {"bad": True}:
            raise InvalidInput("never")

    async def run_together(jobs: Sequence[Job], _res: Resources) -> None:
        together.append(len(jobs))
        raise InvalidInput("one of them is bad")

    await add(database, workspace, *(NewJob(kind) for _ in range(24)), NewJob(kind, payload={"bad": True}))
    async with working(res, {kind: Task(run, together=run_together)}):
        await until(all_in(worker_database, kind, "done", "dead"))
    assert sum(together) == 25
    assert max(together) == 20
    assert len(alone) == 25
    assert Counter(await states(worker_database, kind)) == {"done": 24, "dead": 1}


async def test_what_failed_together_is_done_alone_in_the_same_attempt(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    alone: Counter[int] = Counter()

    async def run(job: Job, _res: Resources) -> None:
        alone[job.attempts] += 1
        if job.payload == {"bad": True}:
            raise StoreUnavailable("not this one")

    async def run_together(_jobs: Sequence[Job], _res: Resources) -> None:
        raise StoreUnavailable("one of them is bad")

    await add(database, workspace, *(NewJob(kind) for _ in range(11)), NewJob(kind, payload={"bad": True}))
    async with working(res, {kind: Task(run, together=run_together, max_batch=5, retry_alone=True)}):
        await until(all_in(worker_database, kind, "done", "dead"))
    assert Counter(await states(worker_database, kind)) == {"done": 11, "dead": 1}
    assert alone == {1: 12, 2: 1, 3: 1}, "the good ones lost no attempt to the bad one"
    rows = await jobs_of(worker_database, kind)
    assert {row.attempts for row in rows if row.state == "done"} == {1}


async def test_a_lease_is_kept_alive_while_its_job_runs(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    ran = 0

    async def run(_job: Job, _res: Resources) -> None:
        nonlocal ran
        ran += 1
        await asyncio.sleep(2.4)  # leases last 2 s here

    await add(database, workspace, NewJob(kind))
    async with working(res, {kind: Task(run)}), working(res, {kind: Task(run)}):
        await until(all_in(worker_database, kind, "done"))
    assert ran == 1


async def test_a_worker_that_lost_its_lease_stops_the_job(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    cancelled = asyncio.Event()
    runs = 0

    async def run(_job: Job, _res: Resources) -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            return
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def running() -> bool:
        return runs == 1

    await add(database, workspace, NewJob(kind))
    async with working(res, {kind: Task(run)}):
        await until(running)
        async with worker_database.begin(workspace) as session:
            await session.execute(
                text("UPDATE job SET lease_until = now() - interval '1 second' WHERE kind = :kind"), {"kind": kind}
            )
        await until(all_in(worker_database, kind, "done"))
        await asyncio.wait_for(cancelled.wait(), 5)


async def test_draining_ends_what_runs_and_gives_back_what_waits(
    database: Database,
    worker_database: Database,
    res: Resources,
    workspace: UUID,
    kind: JobName,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "DRAIN_S", 0.5)
    began: list[object] = []

    async def run(job: Job, _res: Resources) -> None:
        began.append(job.payload["s"])
        await asyncio.sleep(float(str(job.payload["s"])))

    async def four_run() -> bool:
        return len(began) == 4

    seconds = (0.2, 0.2, 30, 30, 0.1, 0.1)
    await add(database, workspace, *(NewJob(kind, payload={"s": each}, priority=i) for i, each in enumerate(seconds)))
    async with working(res, {kind: Task(run)}):
        await until(four_run)
    rows = await jobs_of(worker_database, kind)
    assert Counter(row.state for row in rows) == {"done": 2, "ready": 4}
    assert [row.attempts for row in rows if row.state == "ready"] == [0, 0, 0, 0]
    assert len(began) == 4


async def test_a_notification_is_quicker_than_the_poll(
    database: Database, res: Resources, workspace: UUID, kind: JobName, owner_url: str
) -> None:
    took: list[float] = []
    due = 0.0

    async def run(_job: Job, _res: Resources) -> None:
        took.append(time.monotonic() - due)

    async def hears() -> bool:
        return res.wakeup.works

    sender = Wakeup(owner_url)
    async with working(res, {kind: Task(run)}, poll_s=30.0):
        await until(hears)
        await asyncio.sleep(0.3)
        for number in range(5):
            await add(database, workspace, NewJob(kind))
            due = time.monotonic()
            sender.notify()

            async def ran(wanted: int = number + 1) -> bool:
                return len(took) == wanted

            await until(ran)
    await sender.close()
    assert sorted(took)[2] < 0.5


async def test_a_lost_notification_costs_a_poll(
    database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    ran = asyncio.Event()

    async def run(_job: Job, _res: Resources) -> None:
        ran.set()

    async with working(res, {kind: Task(run)}):
        await asyncio.sleep(0.3)
        await add(database, workspace, NewJob(kind))
        await asyncio.wait_for(ran.wait(), 5)


async def test_one_tenants_flood_does_not_hold_up_another(
    database: Database, res: Resources, workspace: UUID, stranger: object, kind: JobName
) -> None:
    order: list[UUID] = []

    async def run(job: Job, _res: Resources) -> None:
        order.append(job.workspace_id)
        await asyncio.sleep(0.005)

    async def all_done() -> bool:
        return len(order) == 330

    other: UUID = stranger.workspace_id  # type: ignore[attr-defined]
    await add(database, workspace, *(NewJob(kind) for _ in range(300)))
    await add(database, other, *(NewJob(kind) for _ in range(30)))
    async with working(res, {kind: Task(run)}):
        await until(all_done)
    assert max(index for index, owner in enumerate(order) if owner == other) < 200


async def test_run_worker_waits_for_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "PAUSE_S", (0.05, 0.1))
    nowhere = Settings.of({"database_url": "postgresql+asyncpg://nobody@127.0.0.1:1/none"})
    running = asyncio.create_task(loop.run_worker(nowhere))
    await asyncio.sleep(0.5)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_run_worker_does_not_wait_with_a_login_that_must_not_serve(owner_url: str) -> None:
    for url in (None, owner_url, login_url(owner_url, APP)):
        with pytest.raises(Misconfigured):
            await loop.run_worker(Settings.of({"database_url": url}))


async def test_kinds_nobody_registered_are_left_alone(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    async def run(_job: Job, _res: Resources) -> None:
        return None

    await add(database, workspace, NewJob(kind))
    async with working(res, {make_kind(): Task(run)}):
        await asyncio.sleep(0.4)
    assert await states(worker_database, kind) == ["ready"]


def test_every_kind_of_job_has_a_task() -> None:
    assert set(TASKS) == set(get_args(JobName))


async def test_a_cancelled_job_stops(
    database: Database, worker_database: Database, res: Resources, workspace: UUID, kind: JobName
) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def run(_job: Job, _res: Resources) -> None:
        began.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.set()
            raise

    await add(database, workspace, NewJob(kind))
    async with working(res, {kind: Task(run)}):
        await asyncio.wait_for(began.wait(), 10)
        async with database.begin(workspace) as session:
            [job] = await jobs_of(worker_database, kind)
            assert await overview.cancel(session, job.id)
        await asyncio.wait_for(stopped.wait(), 10)
    assert await states(worker_database, kind) == ["cancelled"]

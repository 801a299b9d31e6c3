"""A recurring job starts on time, once for all workers, and its outcome can be seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text

from service.domain.errors import InvalidInput
from service.domain.job import Counts, Job, JobName
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.queue.statements import overview, queue
from service.runtime.resources import Resources
from service.worker.registry import TASKS, Task, Timetable
from tests.support.workers import fetch, jobs_of, until, working


async def nothing(_job: Job, _res: Resources) -> None:
    return None


async def runs(database: Database, name: JobName) -> Sequence[Row[Any]]:
    async with database.read(NIL_WORKSPACE) as session:
        return await overview.runs(session, name, limit=1000)


async def test_one_of_many_workers_starts_a_due_run(worker_database: Database, kind: JobName) -> None:
    tasks = {str(kind): Task(nothing, interval_s=3600)}
    started = await asyncio.gather(*(Timetable(worker_database, tasks).start_due() for _ in range(8)))
    assert [name for names in started for name in names] == [kind]
    assert len(await jobs_of(worker_database, kind)) == 1


async def test_it_is_due_again_after_its_interval_or_at_a_start(worker_database: Database, kind: JobName) -> None:
    async def later(seconds: float) -> None:
        async with worker_database.begin(NIL_WORKSPACE) as session:
            await session.execute(
                text(
                    "UPDATE schedule SET last_run = last_run - make_interval(secs => :s), "
                    "next_run = next_run - make_interval(secs => :s) WHERE name = :name"
                ),
                {"s": seconds, "name": kind},
            )
            await session.execute(text("UPDATE job SET state = 'done' WHERE kind = :name"), {"name": kind})

    tasks = {str(kind): Task(nothing, interval_s=3600)}
    at_start = {str(kind): Task(nothing, interval_s=3600, at_start=True)}
    table = Timetable(worker_database, tasks)
    assert await table.start_due() == [kind]
    assert await table.start_due() == []
    await later(3700)
    assert await table.start_due() == [kind]
    assert await Timetable(worker_database, at_start).start_due() == []  # it began less than a minute ago
    await later(120)
    assert await Timetable(worker_database, tasks).start_due() == []
    assert await Timetable(worker_database, at_start).start_due() == [kind]


async def test_a_run_that_is_under_way_is_not_started_again(worker_database: Database, kind: JobName) -> None:
    table = Timetable(worker_database, {str(kind): Task(nothing, interval_s=0.01)})
    assert await table.start_due() == [kind]
    await asyncio.sleep(0.05)
    assert await table.start_due() == []
    assert len(await jobs_of(worker_database, kind)) == 1


async def test_a_run_leaves_its_counts_or_its_error(
    database: Database, worker_database: Database, res: Resources, kind: JobName
) -> None:
    async def counting(_job: Job, _res: Resources) -> Counts:
        return {"made": 3}

    async def failing(_job: Job, _res: Resources) -> None:
        raise InvalidInput("no such thing")

    async def state() -> str:
        found = await runs(database, kind)
        return found[0].state if found else ""

    async def is_done() -> bool:
        return await state() == "done"

    async def is_failed() -> bool:
        return await state() == "failed"

    async with working(res, {kind: Task(counting, interval_s=3600)}):
        await until(is_done)
    (run,) = await runs(database, kind)
    assert (run.counts, run.error, run.attempts, run.reason) == ({"made": 3}, None, 1, "schedule")
    assert run.started_at is not None
    assert run.finished_at is not None
    async with database.begin(NIL_WORKSPACE) as session:
        await queue.request_run(session, kind)
    async with working(res, {kind: Task(failing)}):
        await until(is_failed)
    assert (await runs(database, kind))[0].error == "invalid_input: no such thing"


async def test_a_request_that_waits_already_is_the_same_run(
    database: Database, workspace: UUID, stranger: Any, kind: JobName
) -> None:
    async with database.begin(workspace) as session:
        first = await queue.request_run(session, kind)
        assert await queue.request_run(session, kind) == first
    async with database.begin(stranger.workspace_id) as session:
        assert await queue.request_run(session, kind) != first
        assert [run.name for run in await overview.runs(session, kind, limit=10)] == [kind]


async def test_the_schedule_may_be_read_by_the_application(database: Database, worker_database: Database) -> None:
    await Timetable(worker_database, {str(name): task for name, task in TASKS.items()}).start_due()
    found = {row.name: row.interval_s for row in await fetch(database, NIL_WORKSPACE, "SELECT * FROM schedule")}
    assert found["audit_partitions"] == found["cleanup"] == 1440 * 60

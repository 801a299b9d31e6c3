"""Jobs are claimed exactly once, in turn, and only by those who may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.domain.job import Ending, Job, JobName, NewJob
from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.queue.statements import queue
from service.queue.statements.queue import FIRST_LANE, Lane
from tests.support.workers import add


async def claim(
    database: Database, kind: str, *, worker: str = "w1", limit: int = 10, lease_s: float = 60, after: Lane = FIRST_LANE
) -> list[Job]:
    async with database.begin(NIL_WORKSPACE) as session:
        return await queue.claim(session, worker, [kind], limit, lease_s, after=after)


async def settle(database: Database, *endings: Ending) -> set[UUID]:
    async with database.begin(NIL_WORKSPACE) as session:
        return await queue.finish(session, endings)


async def rows(database: Database, kind: str) -> Sequence[Any]:
    async with database.read() as session:
        return (await session.execute(text("SELECT * FROM job WHERE kind = :kind ORDER BY id"), {"kind": kind})).all()


async def test_a_job_exists_when_its_transaction_commits(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    async def enqueue_and_fail() -> None:
        async with database.begin(workspace) as session:
            await queue.enqueue(session, [NewJob(kind)])
            assert await claim(worker_database, kind) == []
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await enqueue_and_fail()
    assert await claim(worker_database, kind) == []
    await add(database, workspace, NewJob(kind))
    assert len(await claim(worker_database, kind)) == 1


async def test_what_was_enqueued_is_what_is_claimed(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    memory_id = uuid4()
    await add(database, workspace, NewJob(kind, memory_id=memory_id, payload={"depth": 2}, max_attempts=5))
    (job,) = await claim(worker_database, kind, worker="w7")
    assert (job.workspace_id, job.memory_id, job.payload) == (workspace, memory_id, {"depth": 2})
    assert (job.worker, job.attempts, job.max_attempts) == ("w7", 1, 5)
    assert 0 <= job.waited_s < 60


async def test_nothing_is_enqueued_for_no_jobs(database: Database, workspace: UUID) -> None:
    await add(database, workspace)


async def test_a_job_is_not_claimed_before_its_time(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    await add(database, workspace, NewJob(kind, run_after=later), NewJob(kind, payload={"due": True}))
    assert [job.payload for job in await claim(worker_database, kind)] == [{"due": True}]


async def test_the_smaller_priority_and_the_older_job_come_first(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    await add(
        database,
        workspace,
        NewJob(kind, payload={"n": 3}, priority=1, run_after=past),
        NewJob(kind, payload={"n": 2}),
        NewJob(kind, payload={"n": 1}, run_after=past),
    )
    assert [job.payload["n"] for job in await claim(worker_database, kind)] == [1, 2, 3]


async def test_a_late_word_about_a_lost_lease_changes_nothing(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    await add(database, workspace, NewJob(kind))
    (first,) = await claim(worker_database, kind, worker="slow", lease_s=0)
    (second,) = await claim(worker_database, kind, worker="quick")
    assert (second.id, second.attempts) == (first.id, 2)
    late = [Ending(first, "done"), Ending(first, "dead"), Ending(first, "ready", counted=False)]
    for ending in late:
        assert await settle(worker_database, ending) == set()
    async with worker_database.begin(NIL_WORKSPACE) as session:
        assert await queue.extend(session, "slow", [first], 60) == set()
        assert await queue.extend(session, "quick", [second], 60) == {(second.id, 2)}
    assert await settle(worker_database, Ending(second, "done")) == {second.id}
    assert await settle(worker_database, Ending(second, "dead")) == set()
    (row,) = await rows(worker_database, kind)
    assert (row.state, row.attempts, row.worker) == ("done", 2, "quick")


async def test_the_same_worker_cannot_finish_an_earlier_attempt(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    await add(database, workspace, NewJob(kind))
    (first,) = await claim(worker_database, kind, lease_s=0)
    await claim(worker_database, kind)
    assert await settle(worker_database, Ending(first, "done")) == set()


async def test_a_failed_job_waits_and_one_given_back_does_not_lose_an_attempt(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    await add(database, workspace, NewJob(kind))
    (job,) = await claim(worker_database, kind)
    await settle(worker_database, Ending(job, "ready", error="given back", counted=False))
    (job,) = await claim(worker_database, kind)
    assert job.attempts == 1
    await settle(worker_database, Ending(job, "ready", delay_s=3600, error="KeyError"))
    assert await claim(worker_database, kind) == []
    (row,) = await rows(worker_database, kind)
    assert (row.state, row.attempts, row.worker, row.last_error) == ("ready", 1, None, "KeyError")


async def test_every_lane_has_its_turn_even_when_there_are_more_than_a_batch(
    database: Database, worker_database: Database, kind: JobName
) -> None:
    spaces = [uuid4() for _ in range(11)]
    for space in spaces:
        await add(database, space, NewJob(kind), NewJob(kind), NewJob(kind))
    after, served = FIRST_LANE, []
    for _ in range(4):
        jobs = await claim(worker_database, kind, limit=3, after=after)
        after = (jobs[-1].workspace_id, jobs[-1].kind)
        served += [job.workspace_id for job in jobs]
    assert served[:11] == sorted(spaces)
    assert served[11] == sorted(spaces)[0]


async def test_one_kind_does_not_hide_another(
    database: Database, worker_database: Database, workspace: UUID, kind: JobName
) -> None:
    other = cast(JobName, f"{kind}-other")
    await add(database, workspace, *(NewJob(kind) for _ in range(50)), NewJob(other))
    async with worker_database.begin(NIL_WORKSPACE) as session:
        jobs = await queue.claim(session, "w1", [kind, other], 10, 60)
    assert Counter(job.kind for job in jobs)[other] == 1


async def test_claiming_walks_its_index(owner_url: str, worker_database: Database) -> None:
    async with worker_database.begin(NIL_WORKSPACE) as session:
        await session.execute(text("SET LOCAL enable_seqscan = off"))
        plan = await session.scalars(
            text(
                "EXPLAIN SELECT workspace_id, kind FROM job WHERE state = 'ready' AND (workspace_id, kind) > "
                "(:space, CAST('' AS text)) ORDER BY workspace_id, kind LIMIT 1"
            ),
            {"space": NIL_WORKSPACE},
        )
        lines = "\n".join(plan)
    assert "ix_job_ready" in lines
    assert "Index Cond: (ROW(" in lines
    assert "Sort" not in lines

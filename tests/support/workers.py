"""Workers on the real database: in this process for speed, in processes of their own where they are killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from service.domain.errors import LockedOut
from service.domain.job import Job, JobName, NewJob
from service.domain.text import content_hash
from service.kit.settings import Settings
from service.memories.jobs import enrich
from service.postgres.engine import Database
from service.queue.statements import queue
from service.queue.wakeup import Wakeup
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.worker import loop
from service.worker.loop import Worker
from service.worker.registry import Task
from tests.fakes.embedder import AngleEmbedder
from tests.support.databases import of_workspace

ROOT = Path(__file__).parents[2]


def make_kind() -> JobName:
    return cast(JobName, f"test-{uuid4()}")


@pytest.fixture
def kind() -> JobName:
    """A kind of work that only this test claims: the queue is one for all."""
    return make_kind()


@pytest.fixture
async def res(
    worker_database: Database, owner_url: str, embedder: AngleEmbedder, settings: Settings
) -> AsyncIterator[Resources]:
    """What a worker works with."""
    wakeup = Wakeup(owner_url)
    yield Resources(worker_database, CachedEmbedder(embedder, entries=0), 1, None, settings, wakeup)
    await wakeup.close()


async def enrich_like_queue(jobs: Sequence[Job], resources: Resources) -> None:
    """Repeats jobs while rows are locked, because a job waits for them 250 ms only (engine.SHORT_LOCK_WAIT)."""
    while True:
        try:
            return await enrich.run_together(jobs, resources)
        except LockedOut as error:
            if "takes too long" not in str(error):  # a deadlock
                raise


@asynccontextmanager
async def working(
    res: Resources, tasks: Mapping[JobName, Task], *, poll_s: float = 0.1, backoff_s: float = 0.05, lease_s: float = 2.0
) -> AsyncIterator[Worker]:
    """A worker that runs inside the block and drains at its end; it polls and fails quickly."""
    stop = asyncio.Event()
    with pytest.MonkeyPatch.context() as patched:
        for name, seconds in (("POLL_S", poll_s), ("BACKOFF_S", backoff_s), ("LEASE_S", lease_s)):
            patched.setattr(loop, name, seconds)
        worker = Worker(res, tasks)
        running = asyncio.create_task(worker.run(stop))
        try:
            yield worker
        finally:
            stop.set()
            await running


async def add(database: Database, workspace: UUID, *jobs: NewJob) -> None:
    async with database.begin(workspace) as session:
        await queue.enqueue(session, jobs)


async def jobs_of(database: Database, kind: str) -> list[Any]:
    """The rows of a kind, oldest first; `database` must be a worker's."""
    async with database.read() as session:
        found = await session.execute(text("SELECT * FROM job WHERE kind = :kind ORDER BY id"), {"kind": kind})
        return list(found.all())


async def states(database: Database, kind: str) -> list[str]:
    return [row.state for row in await jobs_of(database, kind)]


def all_in(database: Database, kind: str, *wanted: str) -> Callable[[], Awaitable[bool]]:
    """A condition for `until`: jobs of this kind are in all of these states, and in no other."""

    async def condition() -> bool:
        return set(await states(database, kind)) == set(wanted)

    return condition


async def until(condition: Callable[[], Awaitable[bool]], *, timeout_s: float = 15) -> None:
    deadline = time.monotonic() + timeout_s
    while not await condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start_worker() -> Iterator[Start]:
    """Starts tests/support/victim.py as a process; what is left of it is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(url: str, kind: str, behaviour: str, folder: Path, *model_url: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.support.victim", url, kind, behaviour, str(folder), *model_url]
        started.append(subprocess.Popen(command, cwd=ROOT, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


async def insert_memory(
    database: Database, workspace: UUID, content: str, *, user_id: str | None = "alice", status: str = "stored"
) -> UUID:
    """A memory as the write path leaves it, vector and annotation aside."""
    memory_id = uuid4()
    async with database.begin(workspace, writes_shared=user_id is None) as session:
        await session.execute(
            text(
                "INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, "
                "classification_source, importance, importance_level, timestamp, embedding_status, created_at, "
                "updated_at) VALUES (:workspace, :id, :user_id, :content, :hash, 'Context', 1, 'default', 0.5, 5, "
                "now(), :status, now(), now())"
            ),
            {
                "workspace": workspace,
                "id": memory_id,
                "user_id": user_id,
                "content": content,
                "hash": content_hash(content),
                "status": status,
            },
        )
    return memory_id


def job_for(workspace: UUID, memory_id: UUID | None, kind: str, *, attempts: int = 1) -> Job:
    """A claimed job, for tasks that are run by hand."""
    return Job(workspace, uuid4(), kind, memory_id, {}, attempts, 3, "test")


async def fetch(database: Database, workspace: UUID, sql: str, **values: object) -> list[Any]:
    async with database.read(workspace) as session:
        return list((await session.execute(of_workspace(sql, workspace), values)).all())

"""The worker: claims jobs, runs them, keeps their leases and records how they ended.

It runs up to `worker_concurrency` batches of jobs at once. It claims some quick jobs ahead, and slow ones only when it
can start them. It survives a database restart. On SIGTERM it claims nothing new, gives running jobs 20 s to end and
gives the rest back.

`Exception` is caught only here and in recorder.py; the loop reads only `retryable` and `pauses` of an error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from uuid import uuid4

from prometheus_client import Counter, Histogram
from structlog.contextvars import bound_contextvars

from service.domain.access import NO_WALL
from service.domain.errors import Misconfigured, ServiceError
from service.domain.job import Counts, Ending, JobName
from service.domain.scope import NIL_WORKSPACE
from service.feed import webhooks
from service.kit import faults
from service.kit.settings import Settings
from service.observability import tracing
from service.postgres.roles import WORKER
from service.queue.statements import queue
from service.queue.statements.queue import FIRST_LANE, Lane
from service.runtime.opening import open_resources
from service.runtime.resources import Context, Resources
from service.worker import batches
from service.worker.batches import Batch, ClaimGroup
from service.worker.monitoring import HealthPort, serve
from service.worker.recorder import JobRecorder, describe, ending_of_failure
from service.worker.registry import EMBED_BATCH, TASKS, TICK_S, Task, Timetable

POLL_S = 2.0  # how often a worker looks when nothing wakes it, and late vectors wait for others to join their call
LEASE_S = 60.0  # a job whose worker is silent this long is given to another
BACKOFF_S = 2.0  # wait before a second attempt, doubled with each attempt
DRAIN_S = 20.0  # under the 30 s that Kubernetes waits
FINAL_FLUSH_S = 3.0  # to record the last endings
PAUSE_S = (0.2, 5.0)  # first and longest wait while the database is unavailable
STUCK_S = 2.0  # a job that was claimed ahead and not started after this wait is given back

log = logging.getLogger(__name__)

# labels are names of work, never a workspace or a user: docs/decisions/021-open-routes.md
JOBS_DONE = Counter("loxodon_jobs_done_total", "Attempts that ended, by kind of work and how", ["kind", "outcome"])
JOB_WAIT = Histogram(
    "loxodon_job_wait_seconds",
    "From the moment a job was due to its claim",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 15, 60, 300, 1800),
)
JOB_RUN = Histogram(
    "loxodon_job_run_seconds", "How long a run took", ["kind"], buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 20, 60, 300)
)


async def run_worker(settings: Settings) -> None:
    """Works until SIGTERM or SIGINT, then drains. While Postgres is unavailable it retries. Raises Misconfigured if the
    schema is of another version, or the login must not serve."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pause_s, port = PAUSE_S[0], HealthPort()
    async with serve(settings, port):
        while not stop.is_set():
            try:
                async with open_resources(settings, role=WORKER) as res:
                    port.working(res)
                    await Worker(res, TASKS).run(stop)
            except Misconfigured:
                raise
            except ServiceError as exc:
                port.stopped(exc.detail)
                log.warning("the worker cannot start yet: %s", exc.detail)
                await _wait(stop, pause_s)
                pause_s = min(2 * pause_s, PAUSE_S[1])


class Worker:
    """One worker in one event loop: in a separate process or inside the API process."""

    def __init__(self, res: Resources, tasks: Mapping[JobName, Task]) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._res = res
        self._tasks = {str(name): task for name, task in tasks.items()}
        self._settings = res.settings
        self._recorder = JobRecorder(res.db, self.name)
        self._timetable = Timetable(res.db, self._tasks)
        self._slots = asyncio.Semaphore(self._settings.jobs.concurrency)
        self._running: dict[asyncio.Task[None], Batch] = {}
        self._freed = asyncio.Event()
        self._wakeup = res.wakeup.arrived
        self._groups = deque(batches.claim_groups(self._tasks, EMBED_BATCH))
        self._lanes: dict[ClaimGroup, Lane] = dict.fromkeys(self._groups, FIRST_LANE)
        self._pace_s = 1.0  # seconds a batch takes, smoothed
        self._draining = False

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then drains. If cancelled it stops at once; its jobs are free when their leases
        end."""
        async with self._res.db.begin(NIL_WORKSPACE) as session:
            await queue.hasten(session)  # this start may have other settings
        writer = asyncio.create_task(self._recorder.write_endings())
        background_tasks = [
            asyncio.create_task(self._every(LEASE_S / 3, self._extend)),
            asyncio.create_task(self._every(TICK_S, self._start_recurring)),
            asyncio.create_task(self._wake_on_stop(stop)),
            asyncio.create_task(self._res.wakeup.listen()),
            asyncio.create_task(self._every(POLL_S, self._dispatch)),
        ]
        try:
            await self._claim_until(stop)
            await self._drain()
        finally:
            await _end_all(*background_tasks, *self._running)
            with suppress(Exception):  # after the writer's pending work, so nothing is written twice
                async with asyncio.timeout(FINAL_FLUSH_S):
                    await self._recorder.flush_all()
            await _end_all(writer)

    # -- claiming

    async def _claim_until(self, stop: asyncio.Event) -> None:
        pause_s = PAUSE_S[0]
        while not stop.is_set():
            self._wakeup.clear()
            self._freed.clear()
            if self._room() == 0:
                await self._freed.wait()
                continue
            try:
                more = await self._claim()
            except Exception as exc:  # Postgres is unavailable, or a bug: neither may end the worker
                log.warning("claiming failed: %s", describe(exc))
                await _wait(stop, pause_s)
                pause_s = min(2 * pause_s, PAUSE_S[1])
                continue
            pause_s = PAUSE_S[0]
            if not more:
                await _wait(self._wakeup, POLL_S)

    def _room(self) -> int:
        slots = self._settings.jobs.concurrency
        return batches.room(slots=slots, pace_s=self._pace_s, held=len(self._running))

    async def _claim(self) -> bool:
        """Claims and starts what fits, beginning with another group each time. Returns whether more may be due; only
        then the loop claims again, because otherwise every second claim would find nothing."""
        room, claimed, more = self._room(), list[Batch](), False
        self._groups.rotate(1)
        async with self._res.db.begin(NIL_WORKSPACE, generic_plans=True) as session:
            for group in self._groups:
                if room <= 0:
                    more = True
                    break
                limit = self._half_left(group) if group.at_most_half else group.limit or room
                if limit <= 0:
                    continue
                jobs = await queue.claim(session, self.name, group.kinds, limit, LEASE_S, after=self._lanes[group])
                more = more or batches.may_have_left_some(jobs, limit)
                if jobs:
                    self._lanes[group] = (jobs[-1].workspace_id, jobs[-1].kind)
                    groups = batches.split(jobs, group)
                    claimed += groups
                    room -= len(groups)
        for batch in claimed:
            self._recorder.take(batch)
            self._start(batch)
            for job in batch:
                JOB_WAIT.labels(job.kind).observe(job.waited_s)
        return more

    def _half_left(self, group: ClaimGroup) -> int:
        held = sum(batch[0].kind in group.kinds for batch in self._running.values())
        return min(self._room(), max(1, self._settings.jobs.concurrency // 2) - held)

    def _start(self, batch: Batch) -> None:
        task = asyncio.create_task(self._work(batch))
        self._running[task] = batch
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        batch = self._running.pop(task)
        self._freed.set()
        if self._tasks[batch[0].kind].at_most_half:
            self._wakeup.set()  # others of its group may have been left

    # -- running

    async def _work(self, batch: Batch) -> None:
        try:
            if not await self._got_slot():
                self._give_back(batch)
                return
            try:
                await self._run(batch)
            finally:
                self._slots.release()
        except asyncio.CancelledError:  # drained, or the lease is lost: then this changes nothing
            self._give_back(batch)
            raise

    async def _got_slot(self) -> bool:
        """False if the wait is too long, or the worker is stopping."""
        if self._slots.locked():
            try:
                async with asyncio.timeout(STUCK_S):
                    await self._slots.acquire()
            except TimeoutError:
                self._pace_s = 1.0  # slower than expected: claim nothing ahead
                return False
        else:
            await self._slots.acquire()
        if self._draining:
            self._slots.release()
            return False
        return True

    async def _run(self, batch: Batch) -> None:
        """Runs a batch; each log line says for which job and workspace."""
        job = batch[0]
        about = {"job": job.kind, "job_id": str(job.id), "workspace": str(job.workspace_id), "jobs": len(batch)}
        with tracing.span(f"job {job.kind}", "CONSUMER", {"loxodon.jobs": len(batch), "loxodon.job_id": str(job.id)}):
            about |= {"trace_id": trace_id} if (trace_id := tracing.trace_id()) else {}
            with bound_contextvars(**about):
                await self._run_with_log(batch)

    async def _run_with_log(self, batch: Batch) -> None:
        task = self._tasks[batch[0].kind]
        began = time.monotonic()
        try:
            async with asyncio.timeout(task.timeout_s):
                counts = await carry_out(task, batch, self._res.latest())
        except Exception as exc:
            log.warning(
                "%s failed in attempt %d: %s",
                *(batch[0].kind, batch[0].attempts, describe(exc)),
                extra={"frames": faults.frames(exc)} if faults.is_unexpected(exc) else None,
            )
            if task.retry_alone and len(batch) > 1 and not self._draining:
                for job in batch:
                    self._start((job,))
                return
            for job in batch:
                self._end(ending_of_failure(job, exc, alone=len(batch) == 1, backoff_s=BACKOFF_S))
        else:
            for job in batch:
                self._end(Ending(job, "done", counts=counts))
        took_s = time.monotonic() - began
        self._pace_s += 0.1 * (took_s - self._pace_s)
        JOB_RUN.labels(batch[0].kind).observe(took_s)

    def _end(self, ending: Ending) -> None:
        self._recorder.end(ending)
        outcome = {"done": "done", "dead": "dead", "ready": "retried" if ending.counted else "given_back"}
        JOBS_DONE.labels(ending.job.kind, outcome[ending.state]).inc()

    def _give_back(self, batch: Batch) -> None:
        for job in batch:
            self._end(Ending(job, "ready", error="given back by its worker", counted=False))

    # -- in the background

    async def _extend(self) -> None:
        lost = {(job.id, job.attempts) for job in await self._recorder.extend(LEASE_S)}
        for task, batch in list(self._running.items()):
            if lost.issuperset((job.id, job.attempts) for job in batch):
                task.cancel()

    async def _start_recurring(self) -> None:
        if await self._timetable.start_due():
            self._wakeup.set()

    async def _dispatch(self) -> None:
        """Creates jobs for changes to send to webhooks, if this worker runs them."""
        if "deliver_webhook" in self._tasks and await webhooks.dispatch(self._res.latest()):
            self._wakeup.set()

    async def _every(self, period_s: float, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception as exc:
                log.warning("upkeep failed: %s", describe(exc))
                await asyncio.sleep(min(PAUSE_S[1], period_s / 4))
            else:
                await asyncio.sleep(period_s)

    async def _wake_on_stop(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wakeup.set()
        self._freed.set()

    # -- leaving

    async def _drain(self) -> None:
        self._draining = True
        if self._running:
            log.info("draining %d batches of work", len(self._running))
            await asyncio.wait(set(self._running), timeout=DRAIN_S)


async def carry_out(task: Task, batch: Batch, res: Resources) -> Counts | None:
    """Runs the jobs of a batch, within the wall of the request that caused it."""
    own = res.within(Context(NO_WALL if task.derives else batch[0].wall, background=True))
    if len(batch) > 1 and task.together is not None:
        return await task.together(batch, own)
    return await task.run(batch[0], own)


async def _end_all(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()

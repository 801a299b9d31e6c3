"""Disturbs each kind of job in every way that a job can be disturbed, and compares with a run that nobody disturbed.

    python -m bench.job_chaos [--rounds 30] [--only forget_scope] [--seed 1]

Each round prepares a workspace, disturbs its jobs in one way, lets a worker finish, and compares the workspace with
that of the undisturbed run (job_cases.py). The ways take turns: the worker is killed with -9 at a random moment of the
task; Postgres is; two workers have the same jobs at the same moment, as after a lost lease; the jobs are done and run
again. After the rounds of a kind the doctor looks at the whole database. The exit code is 1 when anything differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import asyncpg  # type: ignore[import-untyped]

from bench import job_worker
from bench.job_cases import CASES, CaseWorkspace, state
from bench.job_worker import DIMENSION, SETTINGS, Death, StableEmbedder
from bench.superuser import SUPERUSER, login_url, trusting
from service.access.statements import keys
from service.domain.job import Job, JobName
from service.domain.scope import NIL_WORKSPACE
from service.launch.postgres import EmbeddedPostgres
from service.postgres import doctor, migrate
from service.postgres.roles import APP, OWNER
from service.runtime.statements import generations

WAYS = ("worker killed", "Postgres killed", "two workers", "done twice")
DONE_S = 60.0  # for the jobs of a round
LATE = 1.3  # a death falls within so many times the undisturbed duration, so that some come after the work

MINE = "SELECT * FROM job WHERE kind = $1 AND workspace_id = ANY ($2) AND state = ANY ($3) ORDER BY id"
HELD = """
UPDATE job SET state = 'running', worker = 'lost', attempts = 1, started_at = now(),
    lease_until = now() + interval '1 hour' WHERE kind = $1 AND workspace_id = ANY ($2) AND state = 'ready'
"""
ENDED = """
UPDATE job SET state = 'done', finished_at = now(), lease_until = NULL
WHERE kind = $1 AND workspace_id = ANY ($2) AND state = 'running'
"""
AGAIN = """
UPDATE job SET state = 'ready', finished_at = NULL, worker = NULL, attempts = 0
WHERE kind = $1 AND workspace_id = ANY ($2) AND state = 'done'
  AND created_at >= (SELECT created_at FROM workspace WHERE workspace_id = $2[1])  -- of this round
"""


@dataclass(slots=True)
class Tally:
    """What happened to one case. `caught`: deaths that came before the task was through."""

    rounds: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Disturbance:
    """The rounds of one case on a server that may be killed."""

    def __init__(self, server: EmbeddedPostgres, url: str, case: str, seed: int) -> None:
        self._server, self._url, self._case = server, url, case
        self._name = cast(JobName, case.split()[0])
        self._chance = random.Random(f"{seed} {case}")
        self._took_s = 0.1
        self._expected: list[str] = []
        self.tally = Tally()

    async def rounds(self, count: int) -> Tally:
        self._expected = await self._round("undisturbed")
        first = list(CASES).index(self._case)  # a single round of each case has all the ways as well
        for number in range(first, first + count):
            way = WAYS[number % len(WAYS)]
            found = await self._round(way)
            self.tally.rounds[way] += 1
            if differs := difference(self._expected, found):
                self.tally.wrong.append(f"{self._case}, {way}: {differs}")
        for each in await doctor.examine(self._url, examples=3):
            if each.broken:
                examples = ", ".join(row.id for row in each.examples)
                self.tally.wrong.append(f"{self._case}, doctor: {each.check.name}, {each.broken} broken: {examples}")
        return self.tally

    async def _round(self, way: str) -> list[str]:
        """The state of a fresh workspace after its jobs were disturbed in this way and finished."""
        async with _place(self._url) as place:
            await CASES[self._case](place)
            workspaces = [place.workspace_id, NIL_WORKSPACE]
        disturb = {
            "undisturbed": self._undisturbed,
            "worker killed": self._worker_killed,
            "Postgres killed": self._postgres_killed,
            "two workers": self._two_workers,
            "done twice": self._done_twice,
        }
        await disturb[way](workspaces)
        async with _place(self._url, workspaces[0]) as place:
            return await state(place)

    async def _undisturbed(self, workspaces: list[Any]) -> None:
        with self._worker() as said:
            await self._until_done(workspaces)
            if said.poll(5):
                self._took_s = max(0.005, said.recv())

    async def _worker_killed(self, workspaces: list[Any]) -> None:
        with self._worker(Death(0, self._moment_s())) as said:
            await asyncio.to_thread(_wait_for_death, said, self.tally.caught, "worker killed")
            with self._worker():
                await self._until_done(workspaces)

    async def _postgres_killed(self, workspaces: list[Any]) -> None:
        pid = self._server.pid
        assert pid is not None
        with self._worker(Death(pid, self._moment_s())) as said:
            deadline = time.monotonic() + DONE_S
            while self._server.pid is not None and time.monotonic() < deadline:  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.005)
            self.tally.caught["Postgres killed"] += not said.poll()
            self._server.start()
            await self._until_done(workspaces)

    async def _two_workers(self, workspaces: list[Any]) -> None:
        async with _superuser(self._url) as tables:
            await tables.execute(HELD, self._name, workspaces)
            jobs = await self._jobs(tables, workspaces, "running")
        context = multiprocessing.get_context("forkserver")
        pairs = [context.Pipe(duplex=False) for _ in range(2)]
        both = [context.Process(target=job_worker.run_once, args=(self._url, jobs, there)) for _, there in pairs]
        for process in both:
            process.start()
        for (here, _), process in zip(pairs, both, strict=True):
            if not await asyncio.to_thread(here.poll, DONE_S):
                raise SystemExit(f"{self._case}: two workers did not end")
            self.tally.wrong += [f"{self._case}, two workers: {each}" for each in here.recv()]
            await asyncio.to_thread(process.join)
        async with _superuser(self._url) as tables:
            await tables.execute(ENDED, self._name, workspaces)
        with self._worker():  # for the jobs that these have queued
            await self._until_done(workspaces)

    async def _done_twice(self, workspaces: list[Any]) -> None:
        with self._worker():
            await self._until_done(workspaces)
            async with _superuser(self._url) as tables, tables.transaction():
                await tables.execute(AGAIN, self._name, workspaces)
            await self._until_done(workspaces)

    async def _jobs(self, tables: asyncpg.Connection[Any], workspaces: list[Any], state: str) -> list[Job]:
        rows = await tables.fetch(MINE, self._name, workspaces, [state])
        return [
            Job(row["workspace_id"], row["id"], row["kind"], row["memory_id"], row["payload"], 1, 20, "lost")
            for row in rows
        ]

    async def _until_done(self, workspaces: list[Any]) -> None:
        deadline = time.monotonic() + DONE_S
        async with _superuser(self._url) as tables:
            while await tables.fetch(MINE, self._name, workspaces, ["ready", "running"]):
                if time.monotonic() > deadline:
                    raise SystemExit(f"{self._case}: the jobs did not end")
                await asyncio.sleep(0.02)
            dead = await tables.fetch(MINE, self._name, workspaces, ["dead"])
        self.tally.wrong += [f"{self._case}: a job is dead: {row['last_error']}" for row in dead]

    def _moment_s(self) -> float:
        return self._chance.uniform(0, LATE * self._took_s)

    @contextlib.contextmanager
    def _worker(self, death: Death | None = None) -> Iterator[Connection]:
        """A worker that is stopped at the end of the block; yields where it says how long its first run took."""
        context = multiprocessing.get_context("forkserver")
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=job_worker.work, args=(self._url, self._name, death, there))
        process.start()
        there.close()
        try:
            yield here
        finally:
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)
            process.join(5)
            process.kill()
            process.join()
            here.close()


def _wait_for_death(said: Connection, caught: Counter[str], way: str) -> None:
    """The pipe ends with the worker; what came through it before was said by a task that was through."""
    through = False
    with contextlib.suppress(EOFError):
        while said.poll(DONE_S):
            said.recv()
            through = True
    caught[way] += not through


@contextlib.asynccontextmanager
async def _superuser(url: str) -> Any:
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await connection.set_type_codec("jsonb", encoder=str, decoder=json.loads, schema="pg_catalog")
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def _place(url: str, workspace_id: Any = None) -> Any:
    res = job_worker.open_resources(url, APP)
    try:
        async with _superuser(url) as tables:
            if workspace_id is None:
                issued = await keys.create_workspace(res.db, "chaos", rights=keys.EVERY_RIGHT)
                workspace_id = issued.workspace_id
            yield CaseWorkspace(workspace_id, res, tables)
    finally:
        await res.wakeup.close()
        await res.db.close()


def difference(expected: Sequence[str], found: Sequence[str]) -> str:
    """The first lines that only one of two states has, "" when they are equal."""
    missing, added = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    lines = [*(f"-{each}" for each in missing.elements()), *(f"+{each}" for each in added.elements())]
    return f"{len(lines)} lines differ: " + "; ".join(lines[:6]) if lines else ""


def disturb(cases: Sequence[str], rounds: int, seed: int, say: Callable[[str], None]) -> list[str]:
    """What was wrong, of all cases; one line each is said as they end."""
    job_worker.small_batches()
    multiprocessing.get_context("forkserver").set_forkserver_preload(["bench.job_worker"])
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="loxodon-chaos-") as folder:
        server = EmbeddedPostgres(Path(folder), settings={"fsync": "off"} | trusting(Path(folder)))
        url = server.start().url(SUPERUSER)
        try:
            migrate.upgrade(login_url(url, OWNER), SETTINGS)
            asyncio.run(generations.record_first(url, StableEmbedder.model, DIMENSION))
            for case in cases:
                began = time.monotonic()
                tally = asyncio.run(Disturbance(server, url, case, seed).rounds(rounds))
                ways = ", ".join(
                    f"{way} {count}" + (f" ({tally.caught[way]} at work)" if "killed" in way else "")
                    for way, count in tally.rounds.items()
                )
                say(f"{case:<20} {time.monotonic() - began:6.1f} s  {len(tally.wrong)} wrong  {ways}")
                wrong += tally.wrong
        finally:
            server.stop()
    return wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="of each case")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    wrong = disturb(options.only, options.rounds, options.seed, lambda line: print(line, flush=True))
    print("\n".join(["", f"{len(wrong)} violations", *wrong[:50]]) if wrong else "\nall ended as if undisturbed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

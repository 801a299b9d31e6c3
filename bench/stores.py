"""Measures stores per second and their latency, compared with writing their rows directly.

    python -m bench.stores [--stores 320] [--runs 3] [--url URL --key KEY [--database URL]]

Rounds alternate between the kinds of load, so that a busy minute of the machine affects all of them; medians over the
rounds are printed, and the CPU that a store costs each process, which does not depend on other load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np

from bench import floor, sentences, target
from bench.clients import Client, LoadRun, post_all
from bench.numbers import Pace, mean, percentile, table
from bench.target import Service

PER_USER = 8  # memories per user: each text has a few neighbours, as in real use, and few are duplicates
WARM_UP = 24
CLIENTS = (1, 16)
TARGET_PER_S = 60.0  # with 16 clients on 2 cores and the local embedder
TEXTS, GIVEN, FLOOR = "text", "embedding given", "bare rows"
PATH = "/v1/memories"


@dataclass(slots=True)
class StoreRounds:
    """All rounds of one kind of load with one number of clients; `cpu_ms`: per store, by process."""

    paces: list[Pace] = field(default_factory=list)
    cpu_ms: list[dict[str, float]] = field(default_factory=list)
    generator_cpu: list[float] = field(default_factory=list)


class StoreBench:
    """Alternating rounds against one service."""

    def __init__(self, service: Service, *, stores: int, runs: int, dimension: int) -> None:
        self._service, self._stores, self._runs, self._dimension = service, stores, runs, dimension
        self._texts = iter(sentences.distinct(WARM_UP + runs * 2 * (stores + stores // 4) + 10, seed=1))
        self._chance = np.random.default_rng(2)
        self.cells: dict[tuple[str, int], StoreRounds] = {}
        self.answers: dict[tuple[str, int], LoadRun] = {}  # of the last round
        self.events: Counter[str] = Counter()

    async def run(self) -> None:
        await post_all(self._service.url, self._service.key, PATH, self._bodies(WARM_UP, given=False), clients=4)
        for _ in range(self._runs):
            for clients in CLIENTS:
                count = self._stores if clients > 1 else self._stores // 4
                for kind in (TEXTS, GIVEN):
                    run = await self._through_http(kind, clients, count)
                if self._service.database is not None:
                    await self._bare(run, clients)

    async def _through_http(self, kind: str, clients: int, count: int) -> LoadRun:
        bodies = self._bodies(count, given=kind == GIVEN)
        await until_idle(self._service)
        with self._measured(kind, clients) as runs:
            run = await post_all(self._service.url, self._service.key, PATH, bodies, clients=clients)
            runs.append(run)
        wrong = [answer for answer in run.answers if answer.status not in (200, 201)]
        if wrong:
            raise SystemExit(f"{len(wrong)} stores failed, the first with {wrong[0].status}: {wrong[0].body[:500]!r}")
        self.events.update(answer.json["results"][0]["event"] for answer in run.answers)
        self.answers[kind, clients] = run
        return run

    async def _bare(self, stored: LoadRun, clients: int) -> None:
        assert self._service.database is not None
        results = [answer.json["results"][0] for answer in stored.answers]
        added = [result["id"] for result in results if result["event"] == "ADD"]
        workspace = uuid4()
        rows = await floor.read(self._service.database, added, workspace)
        await until_idle(self._service)
        with self._measured(FLOOR, clients) as runs:
            runs.append(await floor.write(self._service.database, rows, workspace, connections=clients))

    @contextmanager
    def _measured(self, kind: str, clients: int) -> Iterator[list[LoadRun]]:
        runs, before = list[LoadRun](), self._service.cpu_s()
        yield runs
        after = self._service.cpu_s()
        done = len(runs[0].answers)
        rounds = self.cells.setdefault((kind, clients), StoreRounds())
        rounds.paces.append(runs[0].pace)
        rounds.generator_cpu.append(runs[0].generator_cpu)
        rounds.cpu_ms.append({part: (after[part] - before[part]) * 1000 / done for part in after})

    def _bodies(self, count: int, *, given: bool) -> list[bytes]:
        """Requests of several users in turns, so that concurrent stores are of different users."""
        users = [f"bench-{uuid4()}" for _ in range(max(1, count // PER_USER))]
        found = []
        for number in range(count):
            body: dict[str, Any] = {"content": next(self._texts), "user_id": users[number % len(users)]}
            if given:
                vector = self._chance.standard_normal(self._dimension)
                body["embedding"] = [round(float(x), 6) for x in vector / np.linalg.norm(vector)]
            found.append(json.dumps(body).encode())
        return found


async def until_idle(service: Service, timeout_s: float = 120.0) -> None:
    """Waits until no job is due, so that the jobs of one run do not slow down the next."""
    client = Client(service.url, service.key)
    for _ in range(int(timeout_s / 0.2)):
        if not (await client.get("/v1/health/details")).json["queue_depth"]:
            break
        await asyncio.sleep(0.2)
    await client.close()


def paces(bench: StoreBench) -> str:
    """The table of figures with the ratios to the floor."""
    rows = []
    for (kind, clients), rounds in sorted(bench.cells.items(), key=lambda item: item[0][1]):
        pace = Pace.median(rounds.paces)
        bare = bench.cells.get((FLOOR, clients))
        ratio = Pace.median(bare.paces).per_s / pace.per_s if bare else float("nan")
        cpu = {part: percentile([each[part] for each in rounds.cpu_ms], 0.5) for part in rounds.cpu_ms[0]}
        generator = f"{percentile(rounds.generator_cpu, 0.5):.0%}"
        figures = [pace.per_s, pace.p50_ms, pace.p95_ms, pace.p99_ms, ratio]
        rows.append(
            [
                f"{kind}, {clients}",
                *figures,
                *(cpu.get(part, float("nan")) for part in ("api", "postgres", "worker")),
                generator,
            ]
        )
    head = ["load, clients", "per s", "p50 ms", "p95 ms", "p99 ms", "x floor"]
    return table([*head, "api ms", "postgres ms", "worker ms", "generator"], rows)


def stages(run: LoadRun) -> str:
    """A table of where the time of a store goes, in milliseconds: the stages, the write, and HTTP."""
    bodies = [answer.json for answer in run.answers]
    spent = [body["results"][0]["timings_ms"] for body in bodies]
    columns: dict[str, list[float]] = {name: [] for one in spent for name in one}
    for name, column in columns.items():
        column.extend(one.get(name, 0.0) for one in spent)
    columns["write"] = [
        body["timings_ms"]["total"] - sum(one.values()) for body, one in zip(bodies, spent, strict=True)
    ]
    columns["http"] = [
        answer.ms - body["timings_ms"]["total"] for answer, body in zip(run.answers, bodies, strict=True)
    ]
    columns["all"] = [answer.ms for answer in run.answers]
    rows = [[name, mean(each), percentile(each, 0.5), percentile(each, 0.95)] for name, each in columns.items()]
    return table(["stage", "mean ms", "p50 ms", "p95 ms"], rows)


def report(bench: StoreBench, options: argparse.Namespace) -> str:
    pace = Pace.median(bench.cells[TEXTS, CLIENTS[-1]].paces)
    lines = [
        f"Stores through HTTP, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {options.runs} rounds of "
        f"{options.stores} ({options.stores // 4} with one client), {PER_USER} memories per user. Medians.",
        "",
        paces(bench),
        "",
        "CPU is per store. The worker enriches meanwhile, as in production; bare rows cause no jobs.",
        f"Events: {dict(bench.events)}.",
        f"Target: {TARGET_PER_S:.0f} stores/s at {CLIENTS[-1]} clients; measured {pace.per_s:.0f}.",
    ]
    for clients in CLIENTS:
        lines += ["", f"Stages of the last round, {TEXTS}, {clients} at a time:", stages(bench.answers[TEXTS, clients])]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = target.arguments(__doc__)
    parser.add_argument("--database", help="asyncpg URL of its superuser: adds the floor")
    parser.add_argument("--stores", type=int, default=320, help="per round with 16 clients; a quarter of it with one")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dimension", type=int, default=384)
    options = parser.parse_args(words)
    with target.chosen(options) as service:
        bench = StoreBench(
            target.with_database(service, options.database),
            stores=options.stores,
            runs=options.runs,
            dimension=options.dimension,
        )
        asyncio.run(bench.run())
    print(report(bench, options))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

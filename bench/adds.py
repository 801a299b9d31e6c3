"""Measures how many conversations become facts per second, and how much of the time is the service's own.

    python -m bench.adds [--adds 320] [--runs 3] [--latency-ms 50]

Each conversation is one message with infer=true, of users who tell mostly things near to what they told before
(`bench.tellings`); a scripted model in a process of its own extracts and decides over
real HTTP and takes a fixed time for each answer. Own time = wall time - LLM calls x the mean time the model really took
in the round - embedding. Rounds alternate between the numbers of clients; medians over the rounds are printed, and the
CPU that an add costs each process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import httpx

from bench import scripted_model, target, tellings
from bench.clients import LoadRun, TimedResponse, post_all
from bench.numbers import Pace, percentile, table
from bench.stores import PATH, PER_USER, WARM_UP, until_idle
from bench.target import ROOT, Service
from bench.tellings import Telling, TellingCase

CLIENTS = (1, 8, 32)
OWN_MS, PER_S, CALLS = 20.0, 60.0, 1.3
"""Targets: own time with one client (p50), adds per second with 32, model calls per add."""


@dataclass(slots=True)
class AddRounds:
    """All rounds with one number of clients; `cpu_ms`: per add, by process."""

    paces: list[Pace] = field(default_factory=list)
    own_ms: list[float] = field(default_factory=list)
    cpu_ms: list[dict[str, float]] = field(default_factory=list)
    generator_cpu: list[float] = field(default_factory=list)
    model_ms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class CaseCount:
    """How often a case was told, what became of it, and how many calls of the model it took."""

    adds: int = 0
    calls: int = 0
    events: Counter[str] = field(default_factory=Counter)

    def add(self, answer: TimedResponse) -> None:
        body = answer.json
        self.adds += 1
        self.calls += int(body["usage"]["llm_calls"])
        self.events.update(each["event"] for each in body["results"])


class AddBench:
    """Alternating rounds against one service."""

    def __init__(self, service: Service, model_url: str, *, adds: int, runs: int) -> None:
        self._service, self._model_url, self._adds, self._runs = service, model_url, adds, runs
        self._seeds = iter(range(3, 3 + 2 * runs * len(CLIENTS)))
        self.cells: dict[int, AddRounds] = {}
        self.cases: dict[TellingCase, CaseCount] = {}
        self.last: dict[int, LoadRun] = {}

    async def run(self) -> None:
        await post_all(self._service.url, self._service.key, PATH, _bodies(self._tellings(WARM_UP, 4)), clients=4)
        for _ in range(self._runs):
            for clients in CLIENTS:
                await self._round(clients, self._adds if clients > 1 else self._adds // 4)

    async def _round(self, clients: int, count: int) -> None:
        told = self._tellings(count, clients)
        bodies = _bodies(told)
        await until_idle(self._service)
        before = self._service.cpu_s()
        self._model_ms()
        run = await post_all(self._service.url, self._service.key, PATH, bodies, clients=clients)
        after = self._service.cpu_s()
        wrong = [answer for answer in run.answers if answer.status != 200 or answer.json["warnings"]]
        if wrong:
            raise SystemExit(f"{len(wrong)} adds failed, the first with {wrong[0].status}: {wrong[0].body[:500]!r}")
        rounds = self.cells.setdefault(clients, AddRounds())
        rounds.paces.append(run.pace)
        rounds.model_ms.append(self._model_ms())
        rounds.own_ms.extend(_own_ms(answer, rounds.model_ms[-1]) for answer in run.answers)
        rounds.cpu_ms.append({part: (after[part] - before[part]) * 1000 / count for part in after})
        rounds.generator_cpu.append(run.generator_cpu)
        self.last[clients] = run
        for (_, telling), answer in zip(told, run.answers, strict=True):
            self.cases.setdefault(telling.case, CaseCount()).add(answer)

    def _model_ms(self) -> float:
        """The mean milliseconds that the model took for an answer, since this was last called."""
        took = httpx.get(f"{self._model_url.removesuffix('/v1')}/took").json()
        return float(took["seconds"]) * 1000 / max(1, int(took["answers"]))

    def _tellings(self, count: int, clients: int) -> list[tuple[str, Telling]]:
        """User and telling of each request, of as many users as clients, in turns: concurrent adds are mostly
        of different users."""
        users = max(1, clients, count // PER_USER)
        people = [
            [(f"bench-{uuid4()}", each) for each in told]
            for told in tellings.of_users(users, -(-count // users), next(self._seeds))
        ]
        return [(people[n % users][0][0], people[n % users][n // users][1]) for n in range(count)]


def _bodies(told: Sequence[tuple[str, Telling]]) -> list[bytes]:
    return [json.dumps({"messages": telling.text, "user_id": user}).encode() for user, telling in told]


def _own_ms(answer: TimedResponse, model_ms: float) -> float:
    body = answer.json
    calls, embedding_ms = int(body["usage"]["llm_calls"]), float(body["timings_ms"].get("embed", 0.0))
    return answer.ms - calls * model_ms - embedding_ms


def stages(bench: AddBench, clients: int) -> str:
    """A table of where the time of an add goes, in milliseconds, without the time of the model."""
    columns: dict[str, list[float]] = {"rest": [], "http": []}
    for answer in bench.last[clients].answers:
        timings = dict(answer.json["timings_ms"])
        total = float(timings.pop("total"))
        columns["http"].append(answer.ms - total)
        columns["rest"].append(total - sum(timings.values()))
        calls = answer.json["usage"]["llm_calls"]
        for name, ms in timings.items():
            model_ms = (
                bench.cells[clients].model_ms[-1] if name == "extract" or (name == "decide" and calls > 1) else 0.0
            )
            columns.setdefault(name, []).append(ms - model_ms)
    rows = [[name, percentile(each, 0.5), percentile(each, 0.95)] for name, each in columns.items()]
    return table(["stage", "p50 ms", "p95 ms"], rows)


def calls_by_case(bench: AddBench) -> str:
    """A table of what was told, what became of it, and the calls of the model per add."""
    everything = CaseCount(
        sum(each.adds for each in bench.cases.values()), sum(each.calls for each in bench.cases.values())
    )
    rows = [
        [
            case,
            str(found.adds),
            found.calls / found.adds,
            ", ".join(f"{n} {event}" for event, n in found.events.items()),
        ]
        for case, found in [*sorted(bench.cases.items()), ("all", everything)]
    ]
    return table(["told", "adds", "calls an add", "became"], rows)


def report(bench: AddBench, options: argparse.Namespace) -> str:
    rows = []
    for clients, rounds in bench.cells.items():
        pace = Pace.median(rounds.paces)
        cpu = {part: percentile([each[part] for each in rounds.cpu_ms], 0.5) for part in rounds.cpu_ms[0]}
        own = percentile(rounds.own_ms, 0.5), percentile(rounds.own_ms, 0.95)
        parts = (cpu.get(part, float("nan")) for part in ("api", "postgres", "worker"))
        figures = [pace.per_s, pace.p50_ms, pace.p95_ms, percentile(rounds.model_ms, 0.5), *own, *parts]
        rows.append([str(clients), *figures, f"{percentile(rounds.generator_cpu, 0.5):.0%}"])
    head = ["clients", "per s", "p50 ms", "p95 ms", "model ms", "own p50", "own p95"]
    head += ["api ms", "postgres ms", "worker ms"]
    own_ms, per_s = percentile(bench.cells[1].own_ms, 0.5), Pace.median(bench.cells[CLIENTS[-1]].paces).per_s
    return "\n".join(
        [
            f"Adds through HTTP, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, {options.runs} rounds "
            f"of {options.adds} ({options.adds // 4} with one client), {PER_USER} per user, the model takes "
            f"{options.latency_ms:.0f} ms. Medians.",
            "",
            table([*head, "generator"], rows),
            "",
            "Own: wall time - LLM calls x time of the model - embedding. CPU is per add.",
            "",
            calls_by_case(bench),
            "",
            f"Targets: own time {OWN_MS:.0f} ms with one client, measured {own_ms:.0f}; {PER_S:.0f} adds/s with "
            f"{CLIENTS[-1]}, measured {per_s:.0f}.",
            "",
            "Stages with one client; rest: reading neighbours, and the write with its lock and commit:",
            stages(bench, 1),
        ]
    )


@contextmanager
def scripted(latency_ms: float) -> Iterator[str]:
    """Yields the base URL of a scripted model in a process of its own."""
    port = target.free_port()
    words = ["-m", "bench.scripted_model", "--port", str(port), "--latency-ms", str(latency_ms)]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(10)


def environment(base_url: str) -> dict[str, str]:
    """Returns the settings with which the service uses this model."""
    return {
        "LLM_BASE_URL": base_url,
        "LLM_API_KEY": "bench",
        "EXTRACTION_MODEL": scripted_model.EXTRACT,
        "LOXODON_CLASSIFIER_USE_LLM": "false",
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--adds", type=int, default=320, help="per round; a quarter of it with one client")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    options = parser.parse_args(words)
    with scripted(options.latency_ms) as base_url, target.started(env=environment(base_url)) as service:
        bench = AddBench(service, base_url, adds=options.adds, runs=options.runs)
        asyncio.run(bench.run())
    print(report(bench, options))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

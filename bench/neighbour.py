"""Measures what one workspace notices of another that sends hostile requests as fast as it can.

    python -m bench.neighbour [--rounds 3] [--seconds 10] [--clients 16]

Rounds alternate between quiet and noisy phases, and each noisy one is compared with the quiet one before it, so that a
busy minute of the machine affects both, and one bad round does not decide. Printed are the p95 of the quiet workspace's
requests in either, how many of them failed, and the memory that the API used.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench import hostile_corpus, sentences, target
from bench.clients import LOST, Client
from bench.numbers import percentile
from bench.target import Service

MEGABYTES = 4_000_000
SIZES = (20_000, 300_000, MEGABYTES * 9 // 10)
WORST_RATIO = 3.0
MOST_RSS_BYTES = 1_000_000_000
FINE = range(200, 300)


@dataclass(slots=True)
class NeighbourRun:
    """What was measured. Times in milliseconds, a list for each round; `statuses`: the answers that the noisy workspace
    got."""

    quiet_ms: list[list[float]] = field(default_factory=list)
    noisy_ms: list[list[float]] = field(default_factory=list)
    failed: Counter[int] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    rss_bytes: int = 0

    @property
    def ratios(self) -> list[float]:
        """Of each round."""
        rounds = zip(self.noisy_ms, self.quiet_ms, strict=True)
        return [percentile(noisy, 0.95) / percentile(quiet, 0.95) for noisy, quiet in rounds]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def good(self) -> bool:
        return self.ratio <= WORST_RATIO and not self.failed and self.rss_bytes < MOST_RSS_BYTES

    def __str__(self) -> str:
        quiet_ms, noisy_ms = ([ms for each in rounds for ms in each] for rounds in (self.quiet_ms, self.noisy_ms))
        return (
            f"p95 {percentile(quiet_ms, 0.95):.0f} ms alone ({len(quiet_ms)} requests), "
            f"{percentile(noisy_ms, 0.95):.0f} ms beside the noise ({len(noisy_ms)}): {self.ratio:.2f} times "
            f"(rounds: {', '.join(f'{each:.2f}' for each in self.ratios)})\n"
            f"failed: {dict(self.failed) or 'none'}\nmemory of the API: {self.rss_bytes / 1e6:.0f} MB at most\n"
            f"answers to the noise: {dict(self.statuses.most_common())}"
        )


class TwoWorkspaces:
    """Two workspaces of one service: one that lives quietly, one that makes noise."""

    def __init__(self, service: Service, quiet_key: str, noisy_key: str) -> None:
        self._service, self._quiet_key, self._noisy_key = service, quiet_key, noisy_key
        self._texts = itertools.cycle(sentences.distinct(2_000, seed=3))
        self._noise = hostile_requests()
        self.found = NeighbourRun()

    @classmethod
    async def move_in(cls, service: Service) -> TwoWorkspaces:
        """Makes both workspaces, and fills the quiet one."""
        operator = Client(service.url, service.key)
        keys = []
        for name in ("quiet", "noisy"):
            answer = await operator.post("/v1/workspaces", json.dumps({"name": name}).encode())
            keys.append(answer.json["api_key"])
        await operator.close()
        found = cls(service, keys[0], keys[1])
        await found._live(seconds=3.0, times=[])
        return found

    async def round(self, *, seconds: float, clients: int) -> None:
        """A quiet phase and a noisy one."""
        quiet_ms: list[float] = []
        noisy_ms: list[float] = []
        await self._live(seconds=seconds, times=quiet_ms)
        noise = [asyncio.create_task(self._make_noise()) for _ in range(clients)]
        watch = asyncio.create_task(self._watch_memory())
        await asyncio.sleep(1.0)
        await self._live(seconds=seconds, times=noisy_ms)
        for task in (*noise, watch):
            task.cancel()
        await asyncio.gather(*noise, watch, return_exceptions=True)
        self.found.quiet_ms.append(quiet_ms)
        self.found.noisy_ms.append(noisy_ms)
        await asyncio.sleep(1.0)

    async def _live(self, *, seconds: float, times: list[float]) -> None:
        """Two clients that search, and store every fourth time."""
        ends = time.monotonic() + seconds

        async def client() -> None:
            connection = Client(self._service.url, self._quiet_key)
            for number in itertools.count():
                if time.monotonic() > ends:
                    break
                text = next(self._texts)
                path, body = ("/v1/memories", {"content": text}) if number % 4 == 0 else (SEARCH, {"query": text})
                answer = await connection.post(path, json.dumps({"user_id": "quiet", **body}).encode())
                times.append(answer.ms)
                if answer.status not in FINE:
                    self.found.failed[answer.status] += 1
                await asyncio.sleep(0.02)
            await connection.close()

        await asyncio.gather(client(), client())

    async def _make_noise(self) -> None:
        connection = Client(self._service.url, self._noisy_key)
        try:
            for path, body in self._noise:
                with suppress(*LOST):
                    self.found.statuses[(await connection.post(path, body)).status] += 1
        finally:
            await connection.close()

    async def _watch_memory(self) -> None:
        while True:
            self.found.rss_bytes = max(self.found.rss_bytes, api_rss_bytes(self._service))
            await asyncio.sleep(0.1)


SEARCH = "/v1/memories/search"


def hostile_requests() -> Iterator[tuple[str, bytes]]:
    """Requests of all sizes without end. Only the small shapes are sent at every size: a text of one field is cut."""
    made = [
        (each.path, each.body)
        for seed, size in enumerate(SIZES, 1)
        for each in itertools.islice(hostile_corpus.bodies(size, seed=seed), 60 if size < MEGABYTES // 2 else 10)
    ]
    newlines = [{"role": "user", "content": "\n" * 1_000}] * 200
    keys = {f"key {number}": number for number in range(20_000)}
    made.append(("/v1/memories", json.dumps({"user_id": "noisy", "messages": newlines}).encode()))
    made.append(("/v1/memories", json.dumps({"user_id": "noisy", "content": "A note.", "metadata": keys}).encode()))
    return itertools.cycle(made)


def api_rss_bytes(service: Service) -> int:
    """Resident memory of the API and of the processes that it started."""
    pid = service.processes.pid("api") if service.processes else None
    if pid is None:
        return 0
    return sum(_rss_bytes(each) for each in (pid, *target.children(pid)))


def _rss_bytes(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


async def measure(service: Service, *, rounds: int, seconds: float, clients: int) -> NeighbourRun:
    neighbours = await TwoWorkspaces.move_in(service)
    for _ in range(rounds):
        await neighbours.round(seconds=seconds, clients=clients)
    return neighbours.found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase")
    parser.add_argument("--clients", type=int, default=16, help="of the noisy workspace")
    options = parser.parse_args(words)
    with target.started() as service:
        found = asyncio.run(measure(service, rounds=options.rounds, seconds=options.seconds, clients=options.clients))
    print(found)
    return 0 if found.good else 1


if __name__ == "__main__":
    raise SystemExit(main())

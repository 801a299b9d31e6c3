"""Kills processes with -9 in the middle of writing, and checks that nothing is lost, doubled or left half done.

    python -m bench.chaos [--rounds 30] [--seed 1]

Each round kills the API, the worker, Postgres or a streaming standby of it (bench/standby.py) at a random moment under
a load of writes, and waits until it is back. Requests with an Idempotency-Key are repeated until they are answered, the
others are not. Readers follow the change feed. At the end the superuser checks every answer that was given
(bench/chaos_writes.py), that rows which belong together are all there (bench/chaos_checks.py), that the readers have
seen the same (bench/feed_readers.py), and that the standby has caught up and passes the same checks. The exit code is 1
when anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import chaos_checks, feed_readers, target
from bench.chaos_writes import KINDS, AnswerRecord, SentWrite, results_of
from bench.clients import LOST, Client
from bench.feed_readers import FeedReaders
from bench.standby import Standby, standing_by
from bench.target import PARTS, Part, Service, ServiceProcesses
from service.launch.run import is_ready

WRITERS = 6
CALM_S = (0.0, 1.0)  # load between the first writes after a kill and the next kill
WARM_S = 15.0
BACK_S = 90.0
RETRY_S = 0.2


class Load:
    """Writers that run until they are stopped; `record` holds their answers."""

    def __init__(self, service: Service, seed: int) -> None:
        self._service = service
        self._seed = seed
        self.record = AnswerRecord()
        self.unanswered: Counter[str] = Counter()  # by kind: no answer, or an answer of 5xx
        self._stopping = False

    async def run(self) -> None:
        await asyncio.gather(*(self._writer(random.Random(self._seed * 1000 + number)) for number in range(WRITERS)))

    def stop(self) -> None:
        """Begins nothing new; requests with a key are repeated until they are answered."""
        self._stopping = True

    async def _writer(self, chance: random.Random) -> None:
        client = Client(self._service.url, self._service.key, timeout_s=BACK_S)
        while not self._stopping:
            write = chance.choice(KINDS)(chance)
            await self._send(client, write)
            if write.key and chance.random() < 0.2:
                await self._send(client, write)  # as a client would that did not get the answer
        await client.close()

    async def _send(self, client: Client, write: SentWrite) -> None:
        deadline = time.monotonic() + BACK_S
        while True:
            try:
                answer = await client.post(write.path, write.body, write.headers)
                if answer.status < 500 and not (write.key and None in results_of(answer.json)):
                    self.record.answered(write, answer.status, answer.json)
                    return
            except LOST:
                await asyncio.sleep(RETRY_S)
            self.unanswered[write.kind] += 1
            if write.key is None or time.monotonic() > deadline:
                self.record.gave_up(write)
                return
            await asyncio.sleep(RETRY_S)


async def rounds(
    service: Service, standby: Standby, load: Load, count: int, chance: random.Random, say: Callable[[str], None]
) -> None:
    """Kills one part per round, in random order but each about as often, and waits until all of them are back."""
    assert service.processes is not None
    parts: tuple[Part | None, ...] = (*PARTS, None)  # None: the standby
    for number in range(count):
        if number % len(parts) == 0:
            order = chance.sample(parts, len(parts))
        part = order[number % len(parts)]
        await _under_load(load, chance)
        acknowledged, began = len(load.record.added), time.monotonic()
        name = part or "replica"
        pid = service.processes.pid(part) if part else standby.pid()
        assert pid is not None, f"{name} is dead before it was killed"
        os.kill(pid, signal.SIGKILL)
        if part:
            await _back(service, service.processes, part, pid)
        else:
            await _follows_again(standby, pid)
        say(f"round {number + 1:>3}  {name:<8}  back after {time.monotonic() - began:4.1f} s  {acknowledged} stored")


async def _under_load(load: Load, chance: random.Random) -> None:
    """Waits until a few writes were stored again, then a random moment more: a kill without load proves nothing."""
    before, deadline = len(load.record.added), time.monotonic() + WARM_S
    while len(load.record.added) < before + WRITERS and time.monotonic() < deadline:  # noqa: ASYNC110 (no event to wait for)
        await asyncio.sleep(0.02)
    await asyncio.sleep(chance.uniform(*CALM_S))


async def _back(service: Service, processes: ServiceProcesses, part: Part, old: int) -> None:
    deadline = time.monotonic() + BACK_S
    while processes.pid(part) in (None, old) or not await asyncio.to_thread(is_ready, service.url):
        if time.monotonic() > deadline:
            raise SystemExit(f"{part} did not come back within {BACK_S:.0f} s:\n{service.log[-4000:]}")
        await asyncio.sleep(0.05)


async def _follows_again(standby: Standby, old: int) -> None:
    deadline = time.monotonic() + BACK_S
    while standby.pid() in (None, old) or not await standby.follows():
        if time.monotonic() > deadline:
            raise SystemExit(f"the standby did not come back within {BACK_S:.0f} s:\n{standby.log.read_text()[-4000:]}")
        await asyncio.sleep(0.05)


async def chaos(service: Service, standby: Standby, options: argparse.Namespace) -> bool:
    """Prints the rounds and the counts; returns whether everything is right."""
    load, readers = Load(service, options.seed), FeedReaders(service, options.seed)
    writing = asyncio.create_task(load.run())
    say, chance = lambda line: print(line, flush=True), random.Random(options.seed)
    await rounds(service, standby, load, options.rounds, chance, say)
    load.stop()
    await writing
    assert service.database is not None
    record = load.record
    print(f"\nstored {len(record.added)}, answered {dict(record.statuses)}, repeated with a key {record.repeated}")
    print(f"without an answer {dict(load.unanswered)}")
    await standby.caught_up()
    of_the_standby = [*await chaos_checks.answers(standby.url, record), *await chaos_checks.rows(standby.url)]
    wrong = [
        *record.wrong,
        *(f"on the standby: {each}" for each in of_the_standby),
        *await chaos_checks.answers(service.database, record),
        *await chaos_checks.rows(service.database),
        *await feed_readers.violations(
            service.database, await readers.end(), [("memory.added", str(each)) for each in record.added]
        ),
    ]
    print(await chaos_checks.job_counts(service.database))
    print("\n".join(["", f"{len(wrong)} violations", *wrong[:50]]) if wrong else "nothing lost, doubled or half done")
    return not wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with target.started(patient=True) as service:
        return 0 if asyncio.run(_with_standby(service, options)) else 1


async def _with_standby(service: Service, options: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="loxodon-standby-", ignore_cleanup_errors=True) as folder:
        async with standing_by(service, Path(folder)) as standby:
            return await chaos(service, standby, options)


if __name__ == "__main__":
    raise SystemExit(main())

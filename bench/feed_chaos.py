"""Kills the API with -9 while writers write, and checks that readers of the change feed see every change once.

    python -m bench.feed_chaos [--changes 20000] [--kills 20] [--writers 8] [--seed 1]

Eight writers store, change and delete memories; each request has an Idempotency-Key and is repeated until it is
answered. Two readers read pages, die in the middle of them and go on; one listens to the stream. At the end all three
and a fourth, which reads everything at once, must have seen the same changes in the same order: each acknowledged one
once, and together they must make a copy of what the database holds. The exit code is 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from typing import Any

from bench import feed_readers, target
from bench.chaos_writes import DIMENSION, results_of, text_of
from bench.clients import LOST, Client
from bench.feed_readers import FeedReaders
from bench.target import Service
from service.launch.run import is_ready

BATCH = 10
BACK_S = 300.0


class FeedWriters:
    """Writers that go on until so many changes were acknowledged; `told` has event and memory id of each."""

    def __init__(self, service: Service, changes: int, seed: int) -> None:
        self._service, self._changes, self._seed = service, changes, seed
        self.told: list[tuple[str, str]] = []
        self.repeated = 0

    async def run(self, writers: int) -> None:
        await asyncio.gather(*(self._writer(random.Random(self._seed * 1000 + number)) for number in range(writers)))

    @property
    def is_done(self) -> bool:
        return len(self.told) >= self._changes

    async def _writer(self, chance: random.Random) -> None:
        client, own = Client(self._service.url, self._service.key, timeout_s=60.0), list[str]()
        while not self.is_done:
            what = chance.random()
            if len(own) < BATCH or what < 0.25:
                own += await self._store(client, chance)
            elif what < 0.8:
                await self._change(client, chance, chance.choice(own))
            else:
                gone = own.pop(chance.randrange(len(own)))
                await self._send(client, chance, "DELETE", f"/v1/memories/{gone}", {})
                self.told.append(("memory.deleted", gone))
        await client.close()

    async def _store(self, client: Client, chance: random.Random) -> list[str]:
        items = [self._memory(chance) for _ in range(BATCH)]
        answer = await self._send(client, chance, "POST", "/v1/memories/batch", {"items": items})
        ids = [each["results"][0]["id"] for each in answer["results"]]
        self.told += [("memory.added", each) for each in ids]
        return ids

    def _memory(self, chance: random.Random) -> dict[str, Any]:
        vector = [round(chance.gauss(0, 1), 3) for _ in range(DIMENSION)]
        return {"content": text_of(chance), "user_id": f"shared-{chance.randrange(4)}", "embedding": vector}

    async def _change(self, client: Client, chance: random.Random, memory_id: str) -> None:
        body = {"metadata": {"number": chance.getrandbits(32)}}
        await self._send(client, chance, "PATCH", f"/v1/memories/{memory_id}", body)
        self.told.append(("memory.updated", memory_id))

    async def _send(self, client: Client, chance: random.Random, method: str, path: str, body: dict[str, Any]) -> Any:
        """The answer; raises SystemExit when there is none, or one that refuses."""
        key = {"Idempotency-Key": f"feed-{chance.getrandbits(64):x}"}
        deadline, last = time.monotonic() + BACK_S, ""
        while time.monotonic() < deadline:
            try:
                answer = await client.request(method, path, json.dumps(body).encode() if body else b"", key)
                failed = path.endswith("/batch") and answer.status == 200 and None in results_of(answer.json)
                if answer.status < 300 and not failed:
                    return answer.json
                last = f"{answer.status} {answer.body[:300]!r}"
                if answer.status < 500 and answer.status != 429 and not failed:
                    raise SystemExit(f"{method} {path}: {last}")
            except LOST:
                pass
            self.repeated += 1
            await asyncio.sleep(0.2)
        raise SystemExit(f"{method} {path} was not answered within {BACK_S:.0f} s: {last}")


async def kill(service: Service, writers: FeedWriters, chance: random.Random, *, changes: int, kills: int) -> None:
    """Kills the API so often, spread over the changes."""
    assert service.processes is not None
    for number in range(kills):
        due = changes * (number + chance.random()) / kills
        while len(writers.told) < due and not writers.is_done:  # noqa: ASYNC110 (no event to wait for)
            await asyncio.sleep(0.01)
        pid = service.processes.pid("api")
        assert pid is not None, "the API is dead before it was killed"
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + BACK_S
        while service.processes.pid("api") in (None, pid) or not await asyncio.to_thread(is_ready, service.url):
            if time.monotonic() > deadline:
                raise SystemExit(f"the API did not come back:\n{service.log[-4000:]}")
            await asyncio.sleep(0.05)


async def chaos(service: Service, options: argparse.Namespace) -> bool:
    """Prints the counts; returns whether everything is right."""
    assert service.database is not None
    began = time.monotonic()
    writers, readers = FeedWriters(service, options.changes, options.seed), FeedReaders(service, options.seed)
    killing = kill(service, writers, random.Random(options.seed), changes=options.changes, kills=options.kills)
    await asyncio.gather(writers.run(options.writers), killing)
    copies = await readers.end()
    wrong = await feed_readers.violations(service.database, copies, writers.told)
    print(f"{len(writers.told)} changes acknowledged in {time.monotonic() - began:.0f} s, {writers.repeated} repeated")
    print(f"seen {[len(each.changes) for each in copies]}, taken up again {[each.again for each in copies]} times")
    print("\n".join([f"{len(wrong)} violations", *wrong[:50]]) if wrong else "every change once, in one order")
    return not wrong


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--changes", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with target.started(patient=True) as service:
        return 0 if asyncio.run(chaos(service, options)) else 1


if __name__ == "__main__":
    raise SystemExit(main())

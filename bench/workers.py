"""Adds workers to a Citus cluster, moves workspaces to them and gives the largest a node of its own, all under load.

The load stores, changes, searches and gets memories of several workspaces, by the Python client, which repeats what is
refused. Counted are refusals, requests that fail nevertheless, acknowledged writes that are lost or doubled, and what
each node has to do. In the end every shard is read as the service's logins.

    PYTHONPATH=clients/python python -m bench.workers --citus-bin FOLDER
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import aiohttp
import asyncpg  # type: ignore[import-untyped]
import httpx

from bench import sentences
from bench.citus_cluster import Cluster, cluster
from bench.clients import TimedResponse, post_all
from bench.numbers import percentile, table
from bench.overload import keys_of
from bench.pacing import ACCEPTED, PacedAnswer, PacedLoad, PlannedRequest, p99
from bench.rolling import Backend, migrate, replace
from bench.shard_access import read_shards
from bench.target import Service, family_cpu_s
from loxodon import AsyncMemory
from loxodon.errors import ApiError, NoAnswerError
from service.postgres.roles import API_LOGIN, JOBS_LOGIN

KINDS = ("store", "change", "search", "get")
WRITES = ("store", "change")
USERS, SMALL, LARGE, BATCH = 10, 60, 600, 30
WARM_S = 8.0
CERTIFICATES = ssl.create_default_context()
"""Read once: for each client, it would take longer than a request."""

BY_SIZE = "SELECT workspace_id::text AS id FROM memory GROUP BY 1 ORDER BY count(*) DESC"
SHARDS = """
    SELECT nodename AS node, count(*) AS shards, sum(result::bigint) AS rows
    FROM run_command_on_shards('memory', 'SELECT count(*) FROM %s') JOIN citus_shards USING (shardid) GROUP BY 1
"""
HEAD = ["phase", "s", "requests", "failed", "p99 ms", "longest write", "longest read"]
HEAD += [f"{node} ms CPU" for node in ("coordinator", "first", "second", "third")]


class AcknowledgedWrites:
    """Plans requests, and keeps what was acknowledged. `keys`: of the workspaces, the largest first."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys, self._chance = keys, random.Random(7)
        plain = [text for text in sentences.distinct(5_000, seed=1) if "@" not in text]  # nothing to redact
        self._texts = (f"{text} ({number})" for number, text in enumerate(itertools.cycle(plain)))
        self._settled: dict[str, list[str]] = {key: [] for key in keys}
        self._changes: Counter[str] = Counter()
        self._unsure: set[str] = set()
        self.texts: dict[str, str] = {}

    def plan(self) -> PlannedRequest:
        """A request of a random workspace, or of the largest."""
        key = self._chance.choice((self._chance.choice(self._keys), self._keys[0]))
        return self.of(key, self._chance.choice(KINDS))

    def of(self, key: str, kind: str) -> PlannedRequest:
        user, settled = f"user-{self._chance.randrange(USERS)}", self._settled[key]
        if kind == "store" or not settled:
            body = {"content": next(self._texts), "user_id": user, "dedup": False}
            return _request(key, "store", "POST", "", body)
        if kind == "search":
            return _request(key, kind, "POST", "/search", {"query": next(self._texts), "user_id": user})
        place = self._chance.randrange(len(settled))
        if kind == "get":
            return _request(key, kind, "GET", f"/{settled[place]}")
        return _request(key, kind, "PATCH", f"/{settled.pop(place)}", {"content": next(self._texts)})

    async def fill(self, url: str, key: str, count: int) -> None:
        for _ in range(count // BATCH):
            items = [json.loads(self.of(key, "store").body) for _ in range(BATCH)]
            body = json.dumps({"items": items}).encode()
            (answer,) = (await post_all(url, key, "/v1/memories/batch", [body], clients=1)).answers
            for item, stored in zip(items, answer.json["results"], strict=True):
                self._keep(key, stored["results"][0]["id"], item["content"])

    def hear(self, got: PacedAnswer) -> None:
        if got.request.kind not in WRITES:
            return
        text, is_store = json.loads(got.request.body)["content"], got.request.kind == "store"
        if got.answer is not None and got.status in ACCEPTED:
            memory = got.answer.json["results"][0]["id"] if is_store else got.request.path.rpartition("/")[2]
            self._changes[memory] += not is_store
            self._keep(got.request.key, memory, text)
        elif got.answer is None or got.answer.json.get("code") != "store_unavailable":
            self._unsure.add(text)

    def _keep(self, key: str, memory: str, text: str) -> None:
        self.texts[memory] = text
        self._settled[key].append(memory)

    async def violations(self, coordinator: asyncpg.Connection[Any]) -> list[str]:
        """Acknowledged texts and changes that are not there once, and texts that are there and were refused."""
        rows = await coordinator.fetch("SELECT id::text, content FROM memory WHERE NOT archived")
        there = {row["id"]: row["content"] for row in rows}
        entries = "SELECT memory_id::text AS id, count(*) - 1 AS changes FROM memory_history GROUP BY 1"
        changed = {row["id"]: row["changes"] for row in await coordinator.fetch(entries)}
        wrong = [f"{count} times: {text}" for text, count in Counter(there.values()).items() if count > 1]
        for memory, text in self.texts.items():
            if there.get(memory) != text and there.get(memory) not in self._unsure:
                wrong.append(f"lost: {text}")
            elif there[memory] == text and changed.get(memory) != self._changes[memory]:
                wrong.append(f"{changed.get(memory)} changes instead of {self._changes[memory]}: {text}")
        refused = {memory: text for memory, text in there.items() if memory not in self.texts}
        return wrong + [f"not acknowledged: {text}" for text in refused.values() if text not in self._unsure]


def _request(key: str, kind: str, method: str, path: str, body: object = None) -> PlannedRequest:
    sent = b"" if body is None else json.dumps(body).encode()
    return PlannedRequest(key, method, f"/v1/memories{path}", sent, kind=kind)


class CountingTransport(httpx.AsyncHTTPTransport):
    """Counts the attempts that are answered with an error, by their method, the status and the sentence."""

    def __init__(self, refused: Counter[str]) -> None:
        super().__init__(verify=CERTIFICATES)
        self._refused = refused

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        if answer.is_error:
            problem = json.loads(await answer.aread())
            self._refused[f"{request.method} {answer.status_code} {problem['detail']}"] += 1
        return answer


class RepeatingClient:
    """The Python client as one of PacedLoad. Whatever has a body carries an Idempotency-Key, so that it is repeated.
    `refused`: counts the attempts that failed."""

    def __init__(self, url: str, key: str, refused: Counter[str]) -> None:
        self._memory = AsyncMemory(url, key, transport=CountingTransport(refused))

    async def request(self, method: str, path: str, body: bytes, _: Mapping[str, str]) -> TimedResponse:
        began = time.perf_counter()
        sent, idempotency_key = (json.loads(body), uuid4().hex) if body else (None, None)
        try:
            found = await self._memory.request(method, path, body=sent, idempotency_key=idempotency_key)
            status = 200
        except ApiError as error:
            status, found = error.status, error.problem
        except NoAnswerError as error:
            raise EOFError from error
        return TimedResponse(status, json.dumps(found).encode(), (time.perf_counter() - began) * 1000)

    async def close(self) -> None:
        """Nothing to do: it opens another connection when it needs one."""


@dataclass(slots=True)
class Phase:
    """What happens under load. `cpu_s`: of each node."""

    name: str
    began_s: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    cpu_s: list[float] = field(default_factory=list)

    def row(self, answers: Sequence[PacedAnswer]) -> list[object]:
        """Of the table: requests, failures, p99, and how long the longest write and read took."""
        ours = [each for each in answers if 0 <= each.due_s - self.began_s < self.seconds]
        failed = sum(each.status not in ACCEPTED for each in ours)
        writes, reads = ([each.ms for each in ours if (each.request.kind in WRITES) == is_write] for is_write in (1, 0))
        cpu_ms = [1000 * used / max(1, len(ours)) for used in self.cpu_s]
        longest = percentile(writes, 1.0), percentile(reads, 1.0)
        return [self.name, self.seconds, len(ours), failed, p99(ours), *longest, *cpu_ms]


class Phases:
    """What happened to a cluster under load, one thing after the other."""

    def __init__(self, citus: Cluster, coordinator: asyncpg.Connection[Any]) -> None:
        self._citus, self._coordinator = citus, coordinator
        self.done: list[Phase] = []

    async def do(self, name: str, action: Awaitable[object]) -> None:
        """A phase, until the action is done."""
        phase, before_s = Phase(name), self._cpu_s()
        await action
        phase.seconds = time.monotonic() - phase.began_s
        phase.cpu_s = [after - before for before, after in zip(before_s, self._cpu_s(), strict=True)]
        self.done.append(phase)
        placed = {Path(row["node"]).parent.name: row for row in await self._coordinator.fetch(SHARDS)}
        shown = ", ".join(f"node {node}: {row['shards']} shards, {row['rows']} rows" for node, row in placed.items())
        print(f"{name}: {phase.seconds:.0f} s, load {os.getloadavg()[0]:.1f}; {shown}", flush=True)

    def _cpu_s(self) -> list[float]:
        return [family_cpu_s(node.postgres.pid) for node in self._citus.nodes if node.postgres.pid is not None]


async def count_round_trips(citus: Cluster, url: str, writes: AcknowledgedWrites, keys: Sequence[str]) -> None:
    """Prints how often the coordinator sends something to a worker for a request, and to how many of the workers."""
    await citus.log_round_trips("on")
    for kind in KINDS:
        trips, reached = list[int](), set[int]()
        for key in keys:
            request, begin = writes.of(key, kind), citus.log.stat().st_size
            load = PacedLoad(url, lambda: request, writes.hear)  # noqa: B023
            await load.open(per_s=1, seconds=1)
            await load.close()
            if sent_to := citus.round_trips(begin):
                trips.append(len(sent_to))
                reached.add(len(set(sent_to)))
        print(f"{kind}: {median(trips):.0f} round trips, to so many workers: {reached}")
    await citus.log_round_trips("off")


async def measure(citus: Cluster, given: argparse.Namespace) -> list[str]:
    """Prints what was measured; returns what must not be."""
    backend, stop = Backend(), asyncio.Event()
    async with aiohttp.ClientSession() as session, citus.connected() as coordinator:
        with ExitStack() as stack:
            stack.callback(backend.kill)
            key, env = await migrate(citus.url)
            await replace(backend, env, session)
            keys = await keys_of(Service(backend.url, key), given.workspaces)
            writes, phases = AcknowledgedWrites(keys), Phases(citus, coordinator)
            for number, each in enumerate(keys):
                await writes.fill(backend.url, each, SMALL if number else LARGE)
            refused: Counter[str] = Counter()
            load = PacedLoad(backend.url, writes.plan, writes.hear, lambda url, key: RepeatingClient(url, key, refused))
            await load.closed(clients=6, seconds=WARM_S)
            await count_round_trips(citus, backend.url, writes, keys)
            sizes = [row["id"] for row in await coordinator.fetch(BY_SIZE)]
            sending = asyncio.create_task(load.open(per_s=given.per_s, stop=stop))
            await phases.do("one worker", asyncio.sleep(given.seconds))
            await phases.do("a second joins", citus.join(citus.nodes[2]))
            await phases.do("rebalancing", citus.rebalance())
            await phases.do("two workers", asyncio.sleep(given.seconds))
            await phases.do("a third joins", citus.join(citus.nodes[3]))
            await phases.do("isolating the largest", citus.isolate(sizes[0], citus.nodes[3]))
            await phases.do("three workers", asyncio.sleep(given.seconds))
            stop.set()
            answers = await sending
            await count_round_trips(citus, backend.url, writes, keys)
            wrong = await writes.violations(coordinator)
        print(table(HEAD, [phase.row(answers) for phase in phases.done]))
        failures = Counter(f"{each.request.kind}: {each.status}" for each in answers if each.status not in ACCEPTED)
        print(f"{len(writes.texts)} texts acknowledged; failed: {dict(failures) or 'none'}")
        print(f"attempts refused: {dict(refused) or 'none'}")
        for login in (API_LOGIN, JOBS_LOGIN):
            reads = await read_shards(coordinator.fetch, login, sizes[0], sizes[1])
            print(f"{login}: {reads.own} rows of its own seen in shards, {reads.refused} reads of others saw nothing")
            wrong += reads.wrong
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--citus-bin", type=Path, required=True, help="programs of a Postgres with Citus and pgvector")
    parser.add_argument("--workspaces", type=int, default=12)
    parser.add_argument("--per-s", type=float, default=10.0, help="requests")
    parser.add_argument("--seconds", type=float, default=20.0, help="with the same workers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loxodon-workers-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with cluster(given.citus_bin, Path(folder), {"max_connections": "100"}, workers=1, spare=2) as citus:
            wrong = asyncio.run(measure(citus, given))
    print("\n".join(wrong[:20]) or "nothing is lost, doubled, or seen by another workspace")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

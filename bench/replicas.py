"""Measures how much CPU a read takes on a primary and on its standbys: with none, with one and with two of them.

A round has a turn for each number of standbys, in changing order. Clients search, list and get memories. Linux only.

    python -m bench.replicas --rounds 5
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import aiohttp

from bench import sentences
from bench.clients import post_all
from bench.numbers import table
from bench.pacing import ACCEPTED, PacedLoad, PlannedRequest
from bench.rolling import Backend, migrate, replace
from bench.standby import asked, copy_cluster
from bench.superuser import SUPERUSER, login_url, trusting
from bench.target import family_cpu_s
from service.launch.postgres import EmbeddedPostgres
from service.postgres.roles import APP

STANDBYS = ("first", "second")
MEMORIES, BATCH, USERS, CLIENTS, WARM_S = 1_000, 50, 20, 6, 5.0


def reads(key: str, ids: list[str], seed: int) -> Callable[[], PlannedRequest]:
    """Plans searches, lists and gets in turns. `ids`: of memories that can be got."""
    chance, questions = random.Random(seed), itertools.cycle(sentences.questions(4_000, seed=seed))

    def endless() -> Iterator[PlannedRequest]:
        while True:
            user = f"user-{chance.randrange(USERS)}"
            body = json.dumps({"query": next(questions), "user_id": user}).encode()
            yield PlannedRequest(key, "POST", "/v1/memories/search", body)
            yield PlannedRequest(key, "GET", f"/v1/memories?user_id={user}&limit=20")
            yield PlannedRequest(key, "GET", f"/v1/memories/{chance.choice(ids)}")

    return endless().__next__


async def fill(url: str, key: str) -> list[str]:
    """Stores memories; returns their ids."""
    texts = enumerate(sentences.distinct(MEMORIES, seed=1))
    items = [{"content": text, "user_id": f"user-{number % USERS}", "dedup": False} for number, text in texts]
    bodies = [json.dumps({"items": items[at : at + BATCH]}).encode() for at in range(0, MEMORIES, BATCH)]
    run = await post_all(url, key, "/v1/memories/batch", bodies, clients=1)
    return [item["results"][0]["id"] for answer in run.answers for item in answer.json["results"]]


async def measure(folder: Path, stack: ExitStack, *, rounds: int, seconds: float) -> str:
    """The table of medians. `stack` stops what is started here."""
    servers: list[EmbeddedPostgres] = []

    def start(name: str) -> str:
        servers.append(server := EmbeddedPostgres(folder / name, settings=trusting(folder / name)))
        return stack.enter_context(server).url(SUPERUSER)

    def cpu_ms() -> list[float]:
        return [1000 * family_cpu_s(server.pid) for server in servers if server.pid is not None]

    for name in ("primary", *STANDBYS):
        (folder / name).mkdir()
    primary, backend, urls = start("primary"), Backend(), list[str]()
    plain = primary.replace("+asyncpg", "")
    stack.callback(backend.kill)
    key, env = await migrate(primary)
    async with aiohttp.ClientSession() as session:
        await replace(backend, env, session)
        ids = await fill(backend.url, key)
        await asked(plain, "VACUUM ANALYZE")
        for name in STANDBYS:
            copy_cluster(plain, servers[0].cluster, folder / name, slot=name)
            urls.append(login_url(start(name), APP))
        costs: dict[int, list[list[float]]] = {count: [] for count in range(len(urls) + 1)}
        for number, order in zip(range(rounds), itertools.cycle(itertools.permutations(costs)), strict=False):
            for count in order:
                await replace(backend, env | {"LOXODON_READ_DATABASE_URL": ",".join(urls[:count])}, session)
                load = PacedLoad(backend.url, reads(key, ids, seed=number))
                await load.closed(clients=CLIENTS, seconds=WARM_S)
                before = cpu_ms()
                answers = await load.closed(clients=CLIENTS, seconds=seconds)
                assert all(answer.status in ACCEPTED for answer in answers)
                cost = [(after - b) / len(answers) for b, after in zip(before, cpu_ms(), strict=True)]
                costs[count].append([*cost, len(answers) / seconds])
                await load.close()
                print(f"round {number}, {count} standbys: {cost[0]:.2f} ms, load {os.getloadavg()[0]:.1f}", flush=True)
    shares = {n: [turn[0] / none[0] for turn, none in zip(costs[n], costs[0], strict=True)] for n in costs}
    rows = [[str(n), *map(median, zip(*costs[n], strict=True)), median(shares[n]), max(shares[n])] for n in costs]
    return table(["standbys", "primary ms", *(f"{name} ms" for name in STANDBYS), "per s", "share", "at most"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each turn")
    with tempfile.TemporaryDirectory(prefix="replicas-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)
        print(asyncio.run(measure(Path(folder), stack, **vars(parser.parse_args()))))


if __name__ == "__main__":
    main()

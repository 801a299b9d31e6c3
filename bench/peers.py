"""Loxodon compared with mem0, Hindsight and LangGraph's store: recall, speed, CPU and memory, in turns on this machine.

    python -m bench.peers [--data FILE] [--questions 200] [--sizes 1000,5000] [--only loxodon,mem0-service] [--install]

Services (loxodon, mem0-service, hindsight) are called over HTTP with a key, libraries (mem0, langgraph) in a process of
their own; `bench/peer_systems.py` says how each runs. Loxodon has its defaults. The others live in virtual environments
in `build/peers`, unless LOXODON_PEERS names another folder; `--install` makes them.
--data: conversations with questions as in `bench.load_conversations`; prints recall@10 and MRR of --questions of them,
evenly drawn. Without --sizes (`--sizes ""`) nothing is timed. On a shared machine compare ratios within a run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench import sentences
from bench.footprint import pss_mb
from bench.load_conversations import QueryResult, Turns, read
from bench.numbers import mean, percentile, table
from bench.peer_systems import BATCH, LIBRARIES, Peer, install, open_peer
from bench.target import cpu_s

STORES, QUERIES, REST_S = 160, 160, 60.0
ALL = "loxodon,mem0-service,hindsight,mem0,langgraph"


class PeerRun:
    """The figures of all systems: a row for each, by the name of a measurement."""

    def __init__(self, peers: dict[str, Peer]) -> None:
        self._peers = peers
        self._texts = iter(sentences.distinct(60_000, seed=7))
        self.rows: dict[str, dict[str, float]] = {}

    async def run(self, sizes: Sequence[int], data: Path | None, most: int) -> None:
        for clients in (1, 16) if sizes else ():
            await self._each(f"stores per s, clients: {clients}", self._stores, clients)
        held = 0
        for size in sizes:
            count = size - held
            await self._each(f"{count:,} texts of one user, s", self._batches, count)
            held = size
            await self._each(f"search of {size:,}, p50 ms", self._p50)
            await self._each(f"search of {size:,}, CPU ms", self._cpu_ms)
            await self._each(f"search of {size:,}, per s, clients: 8", self._searches_per_s)
        if data is not None:
            await self._questions(data, most)
        await asyncio.sleep(REST_S)
        self.rows["memory at rest, MB"] = {name: pss_mb(peer.processes()) for name, peer in self._peers.items()}

    async def _each(self, what: str, measure: Callable[..., Awaitable[float]], *args: int) -> None:
        self.rows[what] = {}
        for name, peer in self._peers.items():
            self.rows[what][name] = await measure(peer, *args)
            await peer.settle()
        print(what, self.rows[what], file=sys.stderr, flush=True)

    async def _stores(self, peer: Peer, clients: int) -> float:
        texts = iter([(f"s-{at % 20}", next(self._texts)) for at in range(STORES if clients > 1 else STORES // 4)])

        async def work() -> int:
            done = 0
            for user, text in texts:
                await peer.store(user, [text])
                done += 1
            return done

        return await _per_s(work, clients)

    async def _batches(self, peer: Peer, count: int) -> float:
        texts = [next(self._texts) for _ in range(count)]
        began = time.perf_counter()
        for at in range(0, count, BATCH):
            await peer.store("large", texts[at : at + BATCH])
        return time.perf_counter() - began

    async def _p50(self, peer: Peer) -> float:
        took = []
        for _ in range(QUERIES // 4):
            began = time.perf_counter()
            await peer.search("large", next(self._texts))
            took.append((time.perf_counter() - began) * 1000)
        return percentile(took, 0.5)

    async def _cpu_ms(self, peer: Peer) -> float:
        before = cpu_s(peer.processes())
        for _ in range(QUERIES // 4):
            await peer.search("large", next(self._texts))
        return (cpu_s(peer.processes()) - before) / (QUERIES // 4) * 1000

    async def _searches_per_s(self, peer: Peer) -> float:
        queries = iter([next(self._texts) for _ in range(QUERIES)])

        async def work() -> int:
            done = 0
            for query in queries:
                await peer.search("large", query)
                done += 1
            return done

        return await _per_s(work, 8)

    async def _questions(self, path: Path, most: int) -> None:
        conversations, questions = read(path)
        answered = [each for each in questions if each["evidence"]]
        asked = answered[:: max(1, round(len(answered) / most))]
        recall: dict[str, float] = {}
        mrr: dict[str, float] = {}
        for name, peer in self._peers.items():
            turns = {each["id"]: await peer.load(each) for each in conversations}
            await peer.settle()
            found = [await _asked(peer, each, turns[each["conversation_id"]]) for each in asked]
            recall[name], mrr[name] = mean(each.recall(10) for each in found), mean(each.reciprocal for each in found)
        self.rows[f"recall@10, {len(asked)} questions"], self.rows["MRR"] = recall, mrr


async def _per_s(work: Callable[[], Awaitable[int]], clients: int) -> float:
    began = time.perf_counter()
    done = sum(await asyncio.gather(*(work() for _ in range(clients))))
    return done / (time.perf_counter() - began)


async def _asked(peer: Peer, question: dict[str, Any], turns: Turns) -> QueryResult:
    wanted, ranks = set(question["evidence"]), list[int]()
    for rank, memory in enumerate(await peer.search(question["conversation_id"], question["text"], 20), start=1):
        hits = wanted & turns.get(memory, set())
        wanted -= hits
        ranks += [rank] * len(hits)
    return QueryResult(question["category"], len(question["evidence"]), tuple(ranks), 0.0)


async def compare(names: Sequence[str], sizes: Sequence[int], data: Path | None, most: int) -> PeerRun:
    """Returns the figures. The systems run all the time and are measured one after the other."""
    async with AsyncExitStack() as stack:
        comparison = PeerRun({name: await stack.enter_async_context(open_peer(name)) for name in names})
        await comparison.run(sizes, data, most)
        return comparison


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="conversations with questions; adds recall@10 and MRR")
    parser.add_argument("--questions", type=int, default=200, help="how many of its questions are asked, about")
    parser.add_argument("--sizes", default="1000,5000", help="memories of the user that is searched")
    parser.add_argument("--only", default=ALL)
    parser.add_argument("--install", action="store_true", help="make the environments of the others, and stop")
    options = parser.parse_args(words)
    if options.install:
        install()
        return 0
    names = options.only.split(",")
    if names != ["loxodon"] and not (LIBRARIES / "bin" / "python").exists():
        raise SystemExit("The others are not installed: run `python -m bench.peers --install` first.")
    sizes = [int(each) for each in options.sizes.split(",") if each]
    found = asyncio.run(compare(names, sizes, options.data, options.questions))
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    print(table(["", *names], [[what, *(row[name] for name in names)] for what, row in found.rows.items()]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

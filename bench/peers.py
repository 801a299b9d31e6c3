"""Loxodon beside mem0 and LangGraph's store: recall, speed and memory, on this machine, in turns.

    python -m bench.peers [--data FILE] [--questions 200] [--sizes 1000,5000] [--only loxodon,mem0] [--install]

Loxodon is measured over HTTP with the defaults. The others are libraries, each in a process of its own
(`bench/peer_programs`), with the same embedding model, on a server of the same Postgres; no language model anywhere.
They live in a virtual environment of their own, `build/peers` unless LOXODON_PEERS names another; `--install` makes it.
--data: conversations with questions as in `bench.load_conversations`; prints recall@10 and MRR of --questions of them,
evenly drawn. Without --sizes (`--sizes ""`) nothing is timed. On a shared machine compare ratios within a run.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from bench import sentences, target
from bench.clients import Client
from bench.footprint import family, pss_mb
from bench.load_conversations import QueryResult, Turns, load, read
from bench.numbers import mean, percentile, table
from bench.stores import until_idle
from bench.superuser import SUPERUSER, trusting
from bench.target import Service
from service.launch.postgres import EmbeddedPostgres
from service.providers import model_files

PACKAGES = ("mem0ai", "langgraph", "langgraph-checkpoint-postgres", "psycopg[binary]", "psycopg-pool")
PROGRAMS = Path(__file__).parent / "peer_programs"
FOLDER = Path(os.environ.get("LOXODON_PEERS", target.ROOT / "build" / "peers"))
BATCH, STORES, QUERIES, REST_S = 100, 160, 160, 60.0
LINE_BYTES = 1 << 24


class Peer(Protocol):
    """A system under measurement; both verbs return ids."""

    async def store(self, user: str, texts: Sequence[str]) -> list[str]: ...
    async def search(self, user: str, query: str, limit: int = 10) -> list[str]: ...
    def memory_mb(self) -> float: ...


class Loxodon:
    """The service over HTTP, with a connection for each call that is under way."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._clients: list[Client] = []

    async def store(self, user: str, texts: Sequence[str]) -> list[str]:
        items = [{"content": text, "user_id": user} for text in texts]
        if len(items) == 1:
            return [each["id"] for each in (await self._post("/v1/memories", items[0]))["results"]]
        answer = await self._post("/v1/memories/batch", {"items": items})
        if answer["failed"]:
            raise SystemExit(f"{answer['failed']} texts of a batch failed: {json.dumps(answer)[:500]}")
        return [str(each["index"]) for each in answer["results"]]

    async def search(self, user: str, query: str, limit: int = 10) -> list[str]:
        body = {"query": query, "user_id": user, "limit": limit}
        return [each["id"] for each in (await self._post("/v1/memories/search", body))["results"]]

    async def load(self, conversation: dict[str, Any]) -> Turns:
        client = Client(self.service.url, self.service.key, timeout_s=120)
        turns = (await load(client, conversation, captions=True))[0]
        await client.close()
        return turns

    def memory_mb(self) -> float:
        assert self.service.processes is not None
        return pss_mb(family(self.service.processes.supervisor))

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        client = self._clients.pop() if self._clients else Client(self.service.url, self.service.key, timeout_s=120)
        answer = await client.post(path, json.dumps(body).encode())
        self._clients.append(client)
        if answer.status not in (200, 201):
            raise SystemExit(f"{path} answered {answer.status}: {answer.body[:500]!r}")
        return answer.json


class PeerProcess:
    """A program of `peer_programs`, and calls to it as JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process, postgres: int) -> None:
        self._process, self._postgres = process, postgres
        self._waiting: dict[int, asyncio.Future[Any]] = {0: asyncio.get_running_loop().create_future()}
        self.ready = self._waiting[0]
        self._numbers = itertools.count(1)
        self._reading = asyncio.create_task(self._read())

    async def store(self, user: str, texts: Sequence[str]) -> list[str]:
        return await self._call("store", user=user, texts=list(texts))

    async def search(self, user: str, query: str, limit: int = 10) -> list[str]:
        return await self._call("search", user=user, query=query, limit=limit)

    def memory_mb(self) -> float:
        return pss_mb([*family(self._process.pid), *family(self._postgres)])

    async def close(self) -> None:
        self._process.kill()
        await self._process.wait()
        self._reading.cancel()

    async def _call(self, verb: str, **arguments: Any) -> list[str]:
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "verb": verb, "arguments": arguments}).encode() + b"\n")
        found: list[str] = await self._waiting[number]
        return found

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            future = self._waiting.pop(answer["id"])
            if "error" in answer:
                future.set_exception(SystemExit(answer["error"]))
            else:
                future.set_result(answer["result"])
        for future in self._waiting.values():
            future.set_exception(SystemExit("A program of bench/peer_programs ended; its messages stand above."))


@contextmanager
def _postgres() -> Iterator[tuple[str, int]]:
    """A server for a library, as Loxodon's own is set: its URL and the process id."""
    with tempfile.TemporaryDirectory(prefix="loxodon-peers-", ignore_cleanup_errors=True) as folder:
        server = EmbeddedPostgres(Path(folder), settings=trusting(Path(folder)))
        url = server.start().url(SUPERUSER).replace("+asyncpg", "")
        pid = int((server.cluster / "postmaster.pid").read_text().splitlines()[0])
        try:
            yield url, pid
        finally:
            server.stop()


async def _started(name: str, url: str, postgres: int) -> PeerProcess:
    process = await asyncio.create_subprocess_exec(
        str(FOLDER / "bin" / "python"),
        str(PROGRAMS / f"{name}_peer.py"),
        url,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PEER_MODEL": str(model_files.installed())},
        limit=LINE_BYTES,
    )
    peer = PeerProcess(process, postgres)
    await peer.ready
    return peer


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
            await self._each(f"search of {size:,}, per s, clients: 8", self._searches_per_s)
        if data is not None:
            await self._questions(data, most)
        await asyncio.sleep(REST_S)
        self.rows["memory at rest, MB"] = {name: peer.memory_mb() for name, peer in self._peers.items()}

    async def _each(self, what: str, measure: Callable[..., Awaitable[float]], *args: int) -> None:
        self.rows[what] = {}
        for name, peer in self._peers.items():
            self.rows[what][name] = await measure(peer, *args)
            if isinstance(peer, Loxodon):
                await until_idle(peer.service)
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
            turns = {each["id"]: await _loaded(peer, each) for each in conversations}
            if isinstance(peer, Loxodon):
                await until_idle(peer.service, timeout_s=600)
            found = [await _asked(peer, each, turns[each["conversation_id"]]) for each in asked]
            recall[name], mrr[name] = mean(each.recall(10) for each in found), mean(each.reciprocal for each in found)
        self.rows[f"recall@10, {len(asked)} questions"], self.rows["MRR"] = recall, mrr


async def _per_s(work: Callable[[], Awaitable[int]], clients: int) -> float:
    began = time.perf_counter()
    done = sum(await asyncio.gather(*(work() for _ in range(clients))))
    return done / (time.perf_counter() - began)


async def _loaded(peer: Peer, conversation: dict[str, Any]) -> Turns:
    if isinstance(peer, Loxodon):
        return await peer.load(conversation)
    turns = [turn for session in conversation["sessions"] for turn in session["turns"]]
    found: Turns = {}
    for at in range(0, len(turns), BATCH):
        some = turns[at : at + BATCH]
        ids = await peer.store(conversation["id"], [_said(turn) for turn in some])
        for turn, memory in zip(some, ids, strict=True):
            found.setdefault(memory, set()).add(turn["id"])
    return found


def _said(turn: dict[str, Any]) -> str:
    caption = f" [shares {turn['caption']}]" if turn.get("caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


async def _asked(peer: Peer, question: dict[str, Any], turns: Turns) -> QueryResult:
    wanted, ranks = set(question["evidence"]), list[int]()
    for rank, memory in enumerate(await peer.search(question["conversation_id"], question["text"], 20), start=1):
        hits = wanted & turns.get(memory, set())
        wanted -= hits
        ranks += [rank] * len(hits)
    return QueryResult(question["category"], len(question["evidence"]), tuple(ranks), 0.0)


async def compare(names: Sequence[str], sizes: Sequence[int], data: Path | None, most: int) -> PeerRun:
    """Returns the figures. The systems run all the time and are measured one after the other."""
    with ExitStack() as stack:
        async with AsyncExitStack() as closing:
            peers: dict[str, Peer] = {}
            for name in names:
                if name == "loxodon":
                    peers[name] = Loxodon(stack.enter_context(target.started()))
                else:
                    peer = await _started(name, *stack.enter_context(_postgres()))
                    closing.push_async_callback(peer.close)
                    peers[name] = peer
            comparison = PeerRun(peers)
            await comparison.run(sizes, data, most)
            return comparison


def install() -> None:
    """Makes the virtual environment of the libraries."""
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=True)
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *PACKAGES, "onnxruntime", "tokenizers", "numpy"], check=True)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="conversations with questions; adds recall@10 and MRR")
    parser.add_argument("--questions", type=int, default=200, help="how many of its questions are asked, about")
    parser.add_argument("--sizes", default="1000,5000", help="memories of the user that is searched")
    parser.add_argument("--only", default="loxodon,mem0,langgraph")
    parser.add_argument("--install", action="store_true", help="make the environment of the libraries, and stop")
    options = parser.parse_args(words)
    if options.install:
        install()
        return 0
    names = options.only.split(",")
    if names != ["loxodon"] and not (FOLDER / "bin" / "python").exists():
        raise SystemExit("mem0 and LangGraph are not installed: run `python -m bench.peers --install` first.")
    sizes = [int(each) for each in options.sizes.split(",") if each]
    found = asyncio.run(compare(names, sizes, options.data, options.questions))
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    print(table(["", *names], [[what, *(row[name] for name in names)] for what, row in found.rows.items()]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

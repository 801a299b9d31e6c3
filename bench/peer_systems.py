"""The systems that bench.peers compares, each with its processes, and how they are started.

Loxodon, mem0 behind a FastAPI route and Hindsight are services and called over HTTP with a key. mem0 and LangGraph as
libraries run in a program of `bench/peer_programs`, called as JSON lines. All have the same embedding model, the same
Postgres and no language model.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from bench import target
from bench.clients import LOST, Client
from bench.footprint import family
from bench.load_conversations import Turns, load
from bench.stores import until_idle
from bench.superuser import SUPERUSER, trusting
from bench.target import Service
from service.launch.postgres import EmbeddedPostgres
from service.providers import model_files

PROGRAMS = Path(__file__).parent / "peer_programs"
FOLDER = Path(os.environ.get("LOXODON_PEERS", target.ROOT / "build" / "peers"))
LIBRARIES, HINDSIGHT = FOLDER / "libraries", FOLDER / "hindsight"
PACKAGES: Mapping[Path, Sequence[str]] = {
    LIBRARIES: (
        "mem0ai",
        "langgraph",
        "langgraph-checkpoint-postgres",
        "psycopg[binary]",
        "psycopg-pool",
        "onnxruntime",
        "tokenizers",
        "numpy",
        "fastapi",
        "uvicorn",
    ),
    HINDSIGHT: ("hindsight-api-slim[local-onnx]",),
}
"""What goes into each virtual environment."""

LINE_BYTES = 1 << 24
START_S, REQUEST_S = 180.0, 120.0


class Peer(Protocol):
    """A system under measurement; `store` and `search` return ids."""

    async def store(self, user: str, texts: Sequence[str]) -> list[str]: ...
    async def search(self, user: str, query: str, limit: int = 10) -> list[str]: ...
    async def load(self, conversation: dict[str, Any]) -> Turns:
        """Stores the turns of a conversation; returns the turns that each id holds."""
        ...

    async def settle(self) -> None:
        """Returns when nothing is left to do in the background."""
        ...

    def processes(self) -> list[int]: ...


BATCH = 100


class HttpPeer:
    """A service called over HTTP, with a connection for each call that is under way."""

    def __init__(self, url: str, key: str, roots: Sequence[int]) -> None:
        self.url, self.key = url, key
        self._roots = roots
        self._clients: list[Client] = []

    def processes(self) -> list[int]:
        return [pid for root in self._roots for pid in family(root)]

    async def settle(self) -> None: ...

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        client = self._clients.pop() if self._clients else Client(self.url, self.key, timeout_s=REQUEST_S)
        answer = await client.post(path, json.dumps(body).encode())
        self._clients.append(client)
        if answer.status not in (200, 201):
            raise SystemExit(f"{path} answered {answer.status}: {answer.body[:500]!r}")
        return answer.json


class Loxodon(HttpPeer):
    """This service, all of `make run`, with the defaults."""

    def __init__(self, service: Service) -> None:
        assert service.processes is not None
        super().__init__(service.url, service.key, [service.processes.supervisor])
        self._service = service

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
        client = Client(self.url, self.key, timeout_s=REQUEST_S)
        turns = (await load(client, conversation, captions=True))[0]
        await client.close()
        return turns

    async def settle(self) -> None:
        await until_idle(self._service, timeout_s=600)


class Mem0Service(HttpPeer):
    """mem0 behind the routes of `peer_programs/mem0_server.py`."""

    async def store(self, user: str, texts: Sequence[str]) -> list[str]:
        messages = [{"role": "user", "content": text} for text in texts]
        answer = await self._post("/memories", {"messages": messages, "user_id": user})
        return [each["id"] for each in answer["results"]]

    async def search(self, user: str, query: str, limit: int = 10) -> list[str]:
        answer = await self._post("/search", {"query": query, "user_id": user, "limit": limit})
        return [each["id"] for each in answer["results"]]

    async def load(self, conversation: dict[str, Any]) -> Turns:
        return await load_turns(self, conversation)


class Hindsight(HttpPeer):
    """Hindsight's API server; a bank for each user. Ids are those of documents, one for each text."""

    async def store(self, user: str, texts: Sequence[str]) -> list[str]:
        ids = [uuid.uuid4().hex for _ in texts]
        items = [{"content": text, "document_id": at} for text, at in zip(texts, ids, strict=True)]
        await self._post(f"/v1/default/banks/{user}/memories", {"items": items, "async": False})
        return ids

    async def search(self, user: str, query: str, limit: int = 10) -> list[str]:
        answer = await self._post(f"/v1/default/banks/{user}/memories/recall", {"query": query})
        return list(dict.fromkeys(each["document_id"] for each in answer["results"]))[:limit]

    async def load(self, conversation: dict[str, Any]) -> Turns:
        return await load_turns(self, conversation)


async def load_turns(peer: Peer, conversation: dict[str, Any]) -> Turns:
    """Stores each turn of a conversation as a text with its speaker."""
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

    async def load(self, conversation: dict[str, Any]) -> Turns:
        return await load_turns(self, conversation)

    async def settle(self) -> None: ...

    def processes(self) -> list[int]:
        return [*family(self._process.pid), *family(self._postgres)]

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
    """A server for a peer, as Loxodon's own is set: its URL and the process id."""
    with tempfile.TemporaryDirectory(prefix="loxodon-peers-", ignore_cleanup_errors=True) as folder:
        server = EmbeddedPostgres(Path(folder), settings=trusting(Path(folder)))
        url = server.start().url(SUPERUSER).replace("+asyncpg", "")
        pid = int((server.cluster / "postmaster.pid").read_text().splitlines()[0])
        try:
            yield url, pid
        finally:
            server.stop()


@asynccontextmanager
async def open_peer(name: str) -> AsyncIterator[Peer]:
    """Starts the system of this name, all but Loxodon with a Postgres set as Loxodon's is; it ends with the block."""
    if name == "loxodon":
        with target.started() as service:
            yield Loxodon(service)
        return
    with _postgres() as (url, postgres):
        if name not in SERVICES:
            library = await _start_library(name, url, postgres)
            try:
                yield library
            finally:
                await library.close()
            return
        with tempfile.TemporaryDirectory(prefix="loxodon-peers-") as folder:
            port, key = target.free_port(), secrets.token_urlsafe(32)
            kind, command, variables = SERVICES[name]
            environment = (
                os.environ | {"PEER_MODEL": str(model_files.find_installed())} | variables(url, key, Path(folder))
            )
            process = await asyncio.create_subprocess_exec(
                *command(url, port, key), env=environment, cwd=folder, stdout=sys.stderr, stdin=subprocess.DEVNULL
            )
            try:
                await _wait_until_healthy(process, port)
                yield kind(f"http://127.0.0.1:{port}", key, [process.pid, postgres])
            finally:
                process.kill()
                await process.wait()


def _run_mem0(url: str, port: int, key: str) -> list[str]:
    return [str(LIBRARIES / "bin" / "python"), str(PROGRAMS / "mem0_server.py"), url, str(port), key]


def _run_hindsight(_url: str, port: int, _key: str) -> list[str]:
    binary = HINDSIGHT / "bin" / "hindsight-api"
    return [str(binary), "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]


def _no_variables(_url: str, _key: str, _folder: Path) -> dict[str, str]:
    return {}


def _hindsight_variables(url: str, key: str, folder: Path) -> dict[str, str]:
    """No language model, so it keeps each text as a chunk; our embedding model; fusion instead of a reranker, whose
    weights it would have to download."""
    model = model_files.find_installed()
    (folder / "tokenizer.json").symlink_to(model / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    values = {
        "DATABASE_URL": url,
        "LLM_PROVIDER": "none",
        "EMBEDDINGS_PROVIDER": "onnx",
        "EMBEDDINGS_ONNX_MODEL_PATH": str(model / "model.onnx"),
        "EMBEDDINGS_ONNX_TOKENIZER_NAME_OR_PATH": str(folder),
        "EMBEDDINGS_ONNX_DIMENSIONS": "384",
        "EMBEDDINGS_ONNX_MAX_TOKENS": "256",
        "EMBEDDINGS_ONNX_POOLING": "cls",
        "RERANKER_PROVIDER": "rrf",
        "TENANT_EXTENSION": "hindsight_api.extensions.builtin.tenant:ApiKeyTenantExtension",
        "TENANT_API_KEY": key,
    }
    return {f"HINDSIGHT_API_{name}": value for name, value in values.items()} | {"HF_HUB_OFFLINE": "1"}


Command = Callable[[str, int, str], list[str]]
Variables = Callable[[str, str, Path], dict[str, str]]

SERVICES: Mapping[str, tuple[Callable[[str, str, Sequence[int]], Peer], Command, Variables]] = {
    "mem0-service": (Mem0Service, _run_mem0, _no_variables),
    "hindsight": (Hindsight, _run_hindsight, _hindsight_variables),
}
"""How each service is called, its command and its variables."""


async def _wait_until_healthy(process: asyncio.subprocess.Process, port: int) -> None:
    client = Client(f"http://127.0.0.1:{port}", "")
    deadline = time.monotonic() + START_S
    while True:
        with suppress(*LOST):
            if (await client.get("/health")).status == 200:
                return await client.close()
        if process.returncode is not None or time.monotonic() > deadline:
            raise SystemExit("A service did not start; its messages stand above.")
        await asyncio.sleep(0.2)


async def _start_library(name: str, url: str, postgres: int) -> PeerProcess:
    process = await asyncio.create_subprocess_exec(
        str(LIBRARIES / "bin" / "python"),
        str(PROGRAMS / f"{name}_peer.py"),
        url,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PEER_MODEL": str(model_files.find_installed())},
        limit=LINE_BYTES,
    )
    peer = PeerProcess(process, postgres)
    await peer.ready
    return peer


def install() -> None:
    """Makes the virtual environments of the others."""
    for folder, packages in PACKAGES.items():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages], check=True)

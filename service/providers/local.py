"""The local embedding model, which needs no network. It runs in the calling process or in a separate one.

snowflake-arctic-embed-s, int8, run by onnxruntime on the CPU: the vector of the first token, at length 1. Queries
get the prefix the model was trained with. A text longer than the window is read in equal windows and gets the mean of
their vectors.

Every window runs alone, although batches of short texts would be up to twice as fast. The int8 model takes the scale
of its activations from the whole batch, so a text's vector would depend on its neighbours (cosine 0.997, at worst
0.993, to itself alone): a second embedding of the same text would differ, and one tenant's vector would depend on
another tenant's text. Run singly, a text always has the same vector. Figures: docs/embedding.md.

The worker runs it in a separate process that exits when idle, since it rarely embeds: the model and its libraries take
120 MB, and a process that drops the model gets back only 50 of them. A call then takes a quarter of a millisecond
longer, and the first call takes a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import numpy as np

from service.domain.errors import EmbeddingError, ServiceError, Unavailable
from service.domain.text import CleanText
from service.kit import fair_gate
from service.kit.fair_gate import FairGate
from service.providers import model_files
from service.providers.model_files import ModelFiles
from service.providers.protocols import Calibration, Curve, Embedder, Vector, unit

Pieces = list[int]
R = TypeVar("R")

MODEL: Final = "local:snowflake-arctic-embed-s-int8-w128"
"""The weights and the window: the vector of a longer text depends on both."""

DIMENSION: Final = 384
QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "
UNKNOWN, CLS, SEP = 100, 101, 102

MAX_QUEUE: Final = 256
"""Texts that wait for the model; beyond that 503."""

WINDOW: Final = 128
"""Word pieces in a window of a long text: twice as many take 2.5 times as long and find its sentences less often."""

MAX_WINDOWS: Final = 24
"""About 2,300 words, 0.4 to 1 s of one core. A longer text is read in this many windows spread evenly over it."""

QUERY_WINDOW: Final = 256
"""Word pieces in a window of a long query, its prefix included: cut into smaller ones it finds less."""

MAX_QUERY_WINDOWS: Final = 4
"""Windows of a query: beyond 700 words their mean says less and less, and a caller waits for it."""

MAX_CHARS: Final = 100_000
"""Characters of a text that are tokenised at all: a megabyte would take 1 to 4.5 s."""

THREAD_NICE: Final = 5
"""The threads of the model give way to the event loop, which all requests share: with eight clients on two cores it was
ready to run 97 % of the time and ran for 58 %. 1.08 times as many searches per second (2026-11-25). Not 10, which `make
run` gives the worker: its jobs then took turns with the embeddings that requests wait for."""

CALIBRATION: Final = Calibration(
    documents=Curve(((0.455, 0.0), (0.72, 0.20), (0.816, 0.50), (0.87, 0.70), (0.989, 0.98), (1.0, 1.0))),
    queries=Curve(((0.308, 0.0), (0.50, 0.20), (0.54, 0.50), (0.645, 0.75), (0.805, 0.98), (1.0, 1.0))),
)
"""Fitted by bench/calibrate.py and rounded; each knot is explained there and in docs/embedding.md."""


class Encoder:
    """The model itself, blocking; `run` may be called from several threads at once (onnxruntime frees the GIL)."""

    def __init__(self, files: ModelFiles) -> None:
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read when the library is loaded, so before the import
        import onnxruntime  # type: ignore[import-untyped]  # 0.3 s, 70 MB: only where a local model is used
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # threads are ours: one window each
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # the arena would keep the peak of the longest batch for ever
        self._session = onnxruntime.InferenceSession(files.model, options, providers=["CPUExecutionProvider"])
        self._session._model_bytes = None  # 34 MB that it keeps for a change of provider, which never comes
        self._tokenizer = Tokenizer.from_buffer(files.tokenizer)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._prefix = self._pieces(QUERY_PREFIX)

    def cut(self, text: str, *, query: bool = False) -> tuple[list[Pieces], bool]:
        """The windows to read, and whether they cover the whole text. Raises EmbeddingError for a query of which the
        model knows less than half: it sees all Chinese words and all emoji as the same, and would rank by noise."""
        head = [CLS, *self._prefix] if query else [CLS]
        pieces = self._pieces(text[:MAX_CHARS])
        if query and pieces.count(UNKNOWN) > len(pieces) / 2:
            raise EmbeddingError("The local model knows too few words of the query.")
        window, most = (QUERY_WINDOW, MAX_QUERY_WINDOWS) if query else (WINDOW, MAX_WINDOWS)
        starts, width, is_complete = spread(len(pieces), window - len(head) - 1, most)
        windows = [[*head, *pieces[start : start + width], SEP] for start in starts]
        return windows, is_complete and len(text) <= MAX_CHARS

    def run(self, pieces: Pieces) -> Vector:
        """The vector of one window, at length 1; takes 3 to 40 ms of one core."""
        ids = np.asarray([pieces], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, feed)[0]
        return unit(states[0, 0])

    def _pieces(self, text: str) -> Pieces:
        # `encode` would keep the GIL: 1.3 s for 100,000 Chinese characters
        return list(self._tokenizer.encode_batch([text], add_special_tokens=False)[0].ids)


class LocalEmbedder(Embedder):
    """The embedder that needs no key. Safe for concurrent calls on one event loop."""

    model = MODEL
    dimension = DIMENSION
    calibration = CALIBRATION

    def __init__(self, encoder: Encoder, *, threads: int, max_queue: int) -> None:
        self._encoder = encoder
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads + 1, thread_name_prefix="embed", initializer=_give_way)
        # A window at a time, and one more than one workspace alone may have: others wait for none of its windows.
        self._gate = FairGate(threads + 1, share=threads)
        self._max_queue = max_queue
        self._waiting = 0
        self._closed = False

    @classmethod
    def load(cls, model_dir: Path | None, *, threads: int, max_queue: int = MAX_QUEUE) -> LocalEmbedder:
        """A ready embedder after about 1 s of hashing and loading; blocks, raises EmbeddingError.

        `model_dir`: None for the installed wheel. `max_queue`: texts that may wait.
        """
        return cls(Encoder(model_files.load(model_dir)), threads=threads, max_queue=max_queue)

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        return await self._admit(texts, query=False)

    async def embed_query(self, text: CleanText) -> Vector:
        return (await self._admit([text], query=True))[0]

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        windows, whole = await self._thread(self._encoder.cut, text)
        return len(windows), whole

    async def close(self) -> None:
        """Ends the threads: waiting calls are refused, running ones (at most one window each) are awaited."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _admit(self, texts: Sequence[CleanText], *, query: bool) -> list[Vector]:
        # A call is let in while the queue is not yet full, so that one call larger than the queue is served too.
        if self._closed:
            raise EmbeddingError("The embedder is shutting down.")
        if self._waiting >= self._max_queue:
            raise EmbeddingError("Too many texts are waiting to be embedded.", retry_after_s=1.0)
        self._waiting += len(texts)
        try:
            return await self._spread(texts, query=query)
        finally:
            self._waiting -= len(texts)

    async def _spread(self, texts: Sequence[CleanText], *, query: bool) -> list[Vector]:
        # At most `threads` windows of a call are in the pool at once: a call of 500 texts does not hold up a call of
        # one, and a cancelled call stops after the windows under way.
        vectors: dict[int, Vector] = {}
        rest = iter(enumerate(texts))

        async def work() -> None:
            for at, text in rest:
                vectors[at] = await self._vector(text, query=query)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._threads, len(texts))):
                    group.create_task(work())
        except ExceptionGroup as failed:
            if self._closed:
                raise EmbeddingError("The embedder is shutting down.") from failed.exceptions[0]
            raise EmbeddingError("The local model failed.") from failed.exceptions[0]
        if len(vectors) < len(texts):  # close() cancelled waiting tasks, which a group does not report as errors
            raise EmbeddingError("The embedder is shutting down.")
        return [vectors[at] for at in range(len(texts))]

    async def _vector(self, text: CleanText, *, query: bool) -> Vector:
        first, rest = await self._thread(self._first_window, text, query)
        parts = [first, *[await self._thread(self._encoder.run, pieces) for pieces in rest]]
        return first if not rest else unit(np.mean(parts, axis=0))

    def _first_window(self, text: CleanText, query: bool) -> tuple[Vector, list[Pieces]]:
        """The vector of the first window, and the other windows: most texts have none and need a thread only once."""
        windows, _ = self._encoder.cut(text, query=query)
        return self._encoder.run(windows[0]), windows[1:]

    async def _thread(self, work: Callable[..., R], *args: Any) -> R:
        tenant = fair_gate.tenant()
        await self._gate.enter(tenant)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
        finally:
            self._gate.leave(tenant)


def _give_way() -> None:
    """Lowers the priority of the thread that calls it. Linux alone has one for each thread."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it
            thread = threading.get_native_id()
            nice = max(THREAD_NICE, os.getpriority(os.PRIO_PROCESS, thread))  # the worker's stay as low as it is
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def spread(length: int, size: int, most: int) -> tuple[list[int], int, bool]:
    """Where the windows of a text of `length` pieces begin, their width, and whether they leave no piece out.

    As few of at most `size` as cover it, all of one width; of more than `most`, that many with gaps.
    """
    needed = max(1, -(-length // size))
    width, count = -(-length // needed), min(needed, most)
    starts = [round(at * (length - width) / max(1, count - 1)) for at in range(count)]
    return starts, width, needed <= most


ROOT = Path(__file__).parents[2]
SIZE_BYTES = 8
"""Each message is its length and a pickle."""


class EmbedderProcess(Embedder):
    """The embedder of `LocalEmbedder.load`, to which each call is handed over. One call runs at a time."""

    model = MODEL
    dimension = DIMENSION
    calibration = CALIBRATION

    def __init__(self, model_dir: Path | None, *, threads: int) -> None:
        self._arguments = [str(threads), *([str(model_dir.absolute())] if model_dir is not None else [])]
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._used_at = 0.0

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        vectors: list[Vector] = await self._call("embed", texts)
        return vectors

    async def embed_query(self, text: CleanText) -> Vector:
        vector: Vector = await self._call("embed_query", text)
        return vector

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        counted: tuple[int, bool] = await self._call("windows", text)
        return counted

    async def end_idle(self, idle_s: float) -> int:
        """Ends the process after `idle_s` without a call; returns how many ended."""
        if self._process is None or self._turn.locked() or time.monotonic() - self._used_at < idle_s:
            return 0
        await self._end()
        return 1

    async def close(self) -> None:
        """Ends the process, after the call that it has."""
        async with self._turn:
            await self._end()

    async def _call(self, name: str, argument: Any) -> Any:
        async with self._turn:
            try:
                result = await self._exchange(name, argument)
            except (EOFError, OSError) as exc:
                await self._end()
                raise Unavailable("The process of the local model ended; try again.", retry_after_s=1.0) from exc
            except BaseException:  # its answer would be taken for that of the next call
                await self._end()
                raise
            self._used_at = time.monotonic()
        if isinstance(result, ServiceError):
            raise result
        return result

    async def _exchange(self, name: str, argument: Any) -> Any:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, *self._arguments, cwd=ROOT, stdin=PIPE, stdout=PIPE
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(_frame(pickle.dumps((name, argument))))
        await to.drain()
        size = int.from_bytes(await back.readexactly(SIZE_BYTES))
        return pickle.loads(await back.readexactly(size))  # noqa: S301  # from a process of ours

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


def _frame(message: bytes) -> bytes:
    return len(message).to_bytes(SIZE_BYTES) + message


def _receive(stream: BinaryIO) -> Any:
    size = int.from_bytes(stream.read(SIZE_BYTES))
    return pickle.loads(stream.read(size)) if size else None  # noqa: S301  # from the process that lent this one


async def serve(calls: BinaryIO, answers: BinaryIO, *, model_dir: Path | None, threads: int) -> None:
    """Answers calls until the other side is gone."""
    embedder: LocalEmbedder | None = None
    while (call := _receive(calls)) is not None:
        name, argument = call
        result: Any
        try:
            embedder = embedder or LocalEmbedder.load(model_dir, threads=threads)
            result = await getattr(embedder, name)(argument)
        except ServiceError as exc:
            result = exc
        answers.write(_frame(pickle.dumps(result)))
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the other side decides
    words, folder = sys.argv[1], sys.argv[2:]
    model_dir = Path(folder[0]) if folder else None
    asyncio.run(serve(sys.stdin.buffer, sys.stdout.buffer, model_dir=model_dir, threads=int(words)))

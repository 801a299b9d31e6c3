"""The local embedder in a process of its own, which ends when nothing needs it.

For the worker: it embeds now and then, and the model with its libraries takes 120 MB; 70 of these stay when the model
is dropped. A call costs a quarter of a millisecond more, the first one a second.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from service.domain.errors import ServiceError, Unavailable
from service.domain.text import CleanText
from service.providers.local import CALIBRATION, DIMENSION, MODEL, LocalEmbedder
from service.providers.protocols import Embedder, Vector

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

    async def _call(self, name: str, given: Any) -> Any:
        async with self._turn:
            try:
                result = await self._exchange(name, given)
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

    async def _exchange(self, name: str, given: Any) -> Any:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, *self._arguments, cwd=ROOT, stdin=PIPE, stdout=PIPE
            )
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(_frame(pickle.dumps((name, given))))
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
        name, given = call
        result: Any
        try:
            embedder = embedder or LocalEmbedder.load(model_dir, threads=threads)
            result = await getattr(embedder, name)(given)
        except ServiceError as exc:
            result = exc
        answers.write(_frame(pickle.dumps(result)))
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the other side decides
    words, folder = sys.argv[1], sys.argv[2:]
    model_dir = Path(folder[0]) if folder else None
    asyncio.run(serve(sys.stdin.buffer, sys.stdout.buffer, model_dir=model_dir, threads=int(words)))

"""The local model gives one vector per text, in bounded time and space, whatever else is running."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers import local, model_files
from service.providers.local import THREAD_NICE, Encoder, LocalEmbedder, spread
from service.providers.protocols import Embedder, Vector, unit

ROOT = Path(__file__).parents[2]
LONG = CleanText("The harbour master writes down every ship that leaves, its cargo and the weather of the day. " * 60)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(model_files.load(None))


@pytest.fixture
async def embedder(encoder: Encoder) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(encoder, threads=2, max_queue=8)
    yield embedder
    await embedder.close()


class Gate:
    """An encoder whose windows wait until they are let through."""

    def __init__(self, *, breaks: bool = False) -> None:
        self.open = threading.Event()
        self.began = threading.Event()
        self.started: list[int] = []
        self.breaks = breaks

    def cut(self, text: str, *, query: bool = False) -> tuple[list[list[int]], bool]:
        return [[len(text)]], True

    def run(self, pieces: list[int]) -> Vector:
        self.started.append(pieces[0])
        self.began.set()
        if self.breaks:
            raise RuntimeError("out of memory")
        assert self.open.wait(5)
        return unit(np.ones(3))


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def gated(gate: Gate, *, threads: int = 1, max_queue: int = 2) -> LocalEmbedder:
    return LocalEmbedder(gate, threads=threads, max_queue=max_queue)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
async def test_its_threads_give_way_to_the_event_loop(encoder: Encoder) -> None:
    nice: list[int] = []

    class Watched:
        cut = staticmethod(encoder.cut)

        def run(self, pieces: list[int]) -> Vector:
            nice.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
            return encoder.run(pieces)

    embedder = LocalEmbedder(Watched(), threads=1, max_queue=2)  # type: ignore[arg-type]
    await embedder.embed([CleanText("a red fox")])
    await embedder.close()
    assert nice == [max(THREAD_NICE, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority for each thread")
def test_a_thread_that_gave_way_further_already_stays_so() -> None:
    found: list[int] = []

    def work() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)  # as the worker's are
        local._give_way()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [10]


async def test_vectors_have_length_one_and_the_order_of_their_texts(embedder: LocalEmbedder) -> None:
    as_embedder: Embedder = embedder
    assert (as_embedder.model, as_embedder.dimension) == ("local:snowflake-arctic-embed-s-int8-w128", 384)
    texts = [CleanText(text) for text in ("a red fox", LONG, "", "🎉", "the second law of thermodynamics", "a red fox")]
    found = await embedder.embed(texts)
    assert [vector.shape for vector in found] == [(384,)] * 6
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(6), abs=1e-5)
    assert all(vector.dtype == np.float32 and not vector.flags.writeable for vector in found)
    assert np.array_equal(found[0], found[5])
    assert await embedder.embed([]) == []


async def test_a_vector_depends_on_its_text_alone(embedder: LocalEmbedder) -> None:
    text = CleanText("The lease of the flat ends in October")
    alone = (await embedder.embed([text]))[0]
    together = await asyncio.gather(
        *(embedder.embed([CleanText(f"{word} and other things"), text, LONG]) for word in ("rain", "bread"))
    )
    assert all(np.array_equal(alone, vectors[1]) for vectors in together)


async def test_a_question_finds_the_text_that_answers_it(embedder: LocalEmbedder) -> None:
    texts = ["User's cat is called Pixel", "The invoice is due on the first", "User plays chess online"]
    stored = np.array(await embedder.embed([CleanText(text) for text in texts]))
    for question, answer in (("name of the pet", 0), ("when do we have to pay", 1), ("board games", 2)):
        assert int(np.argmax(stored @ await embedder.embed_query(CleanText(question)))) == answer


async def test_a_question_is_not_a_text(embedder: LocalEmbedder) -> None:
    text = CleanText("where does the user live")
    assert float((await embedder.embed([text]))[0] @ await embedder.embed_query(text)) < 0.95


@pytest.mark.parametrize("query", ["猫叫什么名字？", "猫", "🐶", "👨‍👩‍👧", "แมวชื่ออะไร"])
async def test_a_query_of_unknown_words_has_no_vector(embedder: LocalEmbedder, query: str) -> None:
    """All of them would have nearly the same, which is near to any text of that script."""
    with pytest.raises(EmbeddingError):
        await embedder.embed_query(CleanText(query))
    assert len((await embedder.embed([CleanText(query)]))[0]) == embedder.dimension


@pytest.mark.parametrize(
    "query", ["Where is my 🐶?", "猫の名前は？", "고양이 이름이 뭐야?", "Как зовут моего кота", "上海", "?"]
)
async def test_a_query_of_known_words_has_one(embedder: LocalEmbedder, query: str) -> None:
    assert len(await embedder.embed_query(CleanText(query))) == embedder.dimension


async def test_the_end_of_a_long_text_counts(embedder: LocalEmbedder) -> None:
    ending = CleanText(LONG + "The treasure is buried under the old lighthouse. " * 20)
    plain, ended = await embedder.embed([LONG, ending])
    question = await embedder.embed_query(CleanText("where is the treasure"))
    assert float(ended @ question) > float(plain @ question) + 0.02
    assert await embedder.windows(CleanText("short")) == (1, True)
    assert await embedder.windows(LONG) == (10, True)
    assert await embedder.windows(CleanText(LONG * 100)) == (local.MAX_WINDOWS, False)


@pytest.mark.parametrize(("query", "window"), [(False, local.WINDOW), (True, local.QUERY_WINDOW)])
def test_the_windows_of_a_text_are_alike(encoder: Encoder, *, query: bool, window: int) -> None:
    """Each begins as the text does: with the prefix of a question too."""
    windows, whole = encoder.cut(LONG, query=query)
    assert whole is not query  # a question is read in fewer
    assert len({len(window) for window in windows}) == 1
    assert window * 0.9 < len(windows[0]) <= window
    assert len({tuple(window[: 9 if query else 1]) for window in windows}) == 1


@pytest.mark.parametrize(
    ("length", "starts", "width"),
    [
        (0, [0], 0),
        (100, [0], 100),
        (101, [0, 50], 51),
        (200, [0, 100], 100),
        (201, [0, 67, 134], 67),
        (1_000, list(range(0, 1_000, 100)), 100),
    ],
)
def test_a_text_is_cut_into_equal_windows(length: int, starts: list[int], width: int) -> None:
    assert spread(length, 100, 10) == (starts, width, True)


@pytest.mark.parametrize("size", [1, 7, 126])
def test_windows_leave_no_piece_out(size: int) -> None:
    for length in range(1, 12 * size):
        starts, width, whole = spread(length, size, 12)
        assert whole
        assert width <= size
        assert all(0 <= right - left <= width for left, right in pairwise([*starts, length]))
        assert (starts[0], starts[-1] + width) == (0, length)


def test_windows_of_a_very_long_text_are_spread_over_it() -> None:
    assert spread(1_000_000, 100, 3) == ([0, 499_950, 999_900], 100, False)


def test_a_very_long_question_is_read_at_few_places(encoder: Encoder) -> None:
    """Somebody waits for it: 16 windows take 3 s."""
    windows, whole = encoder.cut("1 2 3 4 5 6 7 8 9 0 " * 5_000, query=True)
    assert (len(windows), whole) == (local.MAX_QUERY_WINDOWS, False)


async def test_a_full_queue_is_refused_and_empties_again(gate: Gate) -> None:
    embedder = gated(gate, max_queue=2)
    first = asyncio.create_task(embedder.embed([CleanText("a"), CleanText("b"), CleanText("c")]))
    await asyncio.sleep(0.01)
    with pytest.raises(EmbeddingError, match="Too many texts") as refused:
        await embedder.embed_query(CleanText("d"))
    assert refused.value.retryable
    gate.open.set()
    assert len(await first) == 3
    assert len(await embedder.embed([CleanText("d")])) == 1
    await embedder.close()


async def test_a_large_call_does_not_hold_up_a_small_one(gate: Gate) -> None:
    embedder = gated(gate, max_queue=1_000)
    large = asyncio.create_task(embedder.embed([CleanText("large")] * 200))
    await asyncio.sleep(0.01)
    small = asyncio.create_task(embedder.embed([CleanText("it")]))
    await asyncio.sleep(0.01)
    gate.open.set()
    await small
    assert gate.started.index(len("it")) < 10
    await large
    await embedder.close()


async def test_a_cancelled_call_gives_up_its_place(gate: Gate) -> None:
    embedder = gated(gate, max_queue=1)
    call = asyncio.create_task(embedder.embed([CleanText("gone")] * 50))
    await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    gate.open.set()
    assert len(await embedder.embed([CleanText("next")])) == 1
    assert gate.started.count(len("gone")) <= 1 + gate.started.count(len("next"))
    await embedder.close()


async def test_a_failing_model_is_an_error_of_ours() -> None:
    embedder = gated(Gate(breaks=True))
    with pytest.raises(EmbeddingError, match="local model failed") as failed:
        await embedder.embed([CleanText("a"), CleanText("b")])
    assert isinstance(failed.value.__cause__, RuntimeError)
    await embedder.close()


async def test_closing_lets_a_window_end_and_refuses_what_waits(gate: Gate) -> None:
    embedder = gated(gate, max_queue=10)
    running = asyncio.create_task(embedder.embed([CleanText("a")]))
    assert await asyncio.to_thread(gate.began.wait, 5)
    waiting = asyncio.create_task(embedder.embed([CleanText("b")]))
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(embedder.close())
    await asyncio.sleep(0.01)
    gate.open.set()
    await closing
    assert len(await running) == 1
    with pytest.raises(EmbeddingError, match="shutting down"):
        await waiting
    with pytest.raises(EmbeddingError, match="shutting down"):
        await embedder.embed([CleanText("c")])
    await embedder.close()


async def test_the_event_loop_stays_free(embedder: LocalEmbedder) -> None:
    turns = 0
    work = asyncio.create_task(embedder.embed([LONG, LONG]))
    while not work.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert len(await work) == 2
    assert turns > 20  # in a second; a call that blocks leaves one or two, on a busy machine too


def test_the_telemetry_of_onnxruntime_never_starts(tmp_path: Path) -> None:
    # Where it runs it leaves a device id and a database below the home folder, before anything is sent.
    program = (
        "from service.providers.local import Encoder; from service.providers import model_files\n"
        "encoder = Encoder(model_files.load(None))\n"
        "assert encoder.run(encoder.cut('hello')[0][0]).shape == (384,)"
    )
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | home
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []

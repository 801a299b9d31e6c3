"""Processes for work that burns CPU: the rules that read texts, comparisons, long answers.

A rule holds the interpreter while it runs, and a text may be made so that it runs long. So rules run in processes of
their own, one for each core by default, which the kernel ends when a call has used more CPU than it may: the call fails
with TooCostly, and a new process takes the place (docs/decisions/049-rules-in-processes.md). CPU is counted and not
time, so a busy machine stops nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from queue import Empty, LifoQueue
from typing import Any, ParamSpec, TypeVar

from service import fair_gate
from service.errors import TooCostly, Unavailable
from service.fair_gate import FairGate

P = ParamSpec("P")
T = TypeVar("T")

LONG_CHARS = 1_000
"""The rules for importance, type and words need some 2 ms of CPU per 1,000 characters."""

LEAST_S = 0.001
"""Of CPU for a call when its request has used up its share: 0 would mean no limit."""

PRELOADED = "service.rule_modules"

_context = multiprocessing.get_context("forkserver")  # forking this process itself, which has threads, is not safe
_context.set_forkserver_preload([PRELOADED])
resource_tracker._resource_tracker._fd = os.open(os.devnull, os.O_WRONLY)  # type: ignore[attr-defined]
"""Else each process that forks gets another of 6 MB, which would clean up named semaphores: nothing here has any."""

_server = threading.Lock()  # held while a process starts, and while the server that forks them is stopped
_living: set[_RuleProcess] = set()


def preload(*modules: str) -> None:
    """Lets all processes started from now on know these modules, too; before the first one."""
    _context.set_forkserver_preload([PRELOADED, *modules])


class CpuAccount:
    """The CPU seconds that one request may still use in these processes."""

    def __init__(self, limit_s: float) -> None:
        self.left_s = limit_s


_account: ContextVar[CpuAccount | None] = ContextVar("cpu_account", default=None)


@contextmanager
def cpu_limited(limit_s: float) -> Iterator[None]:
    """All calls inside the block, and in tasks started inside it, together get so much CPU; an outer limit counts."""
    token = _account.set(_account.get() or CpuAccount(limit_s))
    try:
        yield
    finally:
        _account.reset(token)


class RuleProcesses:
    """`workers` processes, started when they are needed; more than `waiting` unfinished calls are refused with
    Unavailable. `limit_s`: CPU of one call. `keeps_server`: false where the next call may wait a second for the server
    that forks them, some 60 MB, which then ends with the last of them (end_idle)."""

    def __init__(
        self, workers: int = 2, waiting: int = 128, limit_s: float = 5.0, *, keeps_server: bool = True
    ) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="rules")  # one waits for each process
        self._idle: LifoQueue[_RuleProcess] = LifoQueue()
        self._workers, self._waiting, self._limit_s = workers, waiting, limit_s
        self._unfinished = 0
        self._gate = FairGate(workers, share=max(1, workers - 1))  # one is left for the next workspace: calls are long
        self._keeps_server = keeps_server
        self._closed = False

    async def start(self) -> None:
        """Starts all processes, so that the first request need not wait for the second that this takes."""
        started = await asyncio.gather(
            *(asyncio.to_thread(_RuleProcess) for _ in range(self._workers - self._idle.qsize()))
        )
        for each in started:
            self._give_back(each)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in a process; what goes in and comes out is pickled. Raises what it raises, TooCostly when it
        used too much CPU. A caller that gives up (time-out) does not stop it, so it still counts."""
        if self._unfinished >= self._waiting:
            raise Unavailable("The service is busy; try again shortly.", retry_after_s=1.0)
        tenant = fair_gate.tenant() or object()  # jobs have no share: each counts for itself
        self._unfinished += 1
        try:
            await self._gate.enter(tenant)
        except BaseException:
            self._unfinished -= 1
            raise
        future = self._threads.submit(self._call, _account.get(), work, args, kwargs)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _call_soon(loop, self._done, tenant))
        found: T = await asyncio.wrap_future(future)
        return found

    async def run_if_long(self, chars: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(...)` in place when it reads few characters: handing it over would cost more than the work."""
        if chars > LONG_CHARS:
            return await self.run(work, *args, **kwargs)
        found = work(*args, **kwargs)
        await asyncio.sleep(0)  # many short texts one after the other must not hold up other requests
        return found

    def _call(self, account: CpuAccount | None, work: Callable[..., T], args: Any, kwargs: Any) -> T:
        account = account or CpuAccount(self._limit_s)
        limit_s = max(LEAST_S, min(self._limit_s, account.left_s))
        process = self._take()
        try:
            found, used_s = process.call(limit_s, work, args, kwargs)
        except BaseException:
            account.left_s -= limit_s
            process.end()
            raise
        account.left_s -= used_s
        self._give_back(process)
        if isinstance(found, BaseException):
            raise found
        return found  # type: ignore[no-any-return]

    def _take(self) -> _RuleProcess:
        with contextlib.suppress(Empty):
            return self._idle.get_nowait()
        return _RuleProcess()

    def _give_back(self, process: _RuleProcess) -> None:
        if self._closed:
            process.end()
        else:
            process.used_at = time.monotonic()
            self._idle.put(process)

    def _done(self, tenant: Hashable) -> None:
        self._unfinished -= 1
        self._gate.leave(tenant)

    def end_idle(self, idle_s: float) -> int:
        """Ends the processes that had no call for so long, and returns how many; the next call starts one again, in
        some 20 ms. Blocks for milliseconds."""
        idle = list[_RuleProcess]()
        with contextlib.suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        long_idle = [each for each in idle if time.monotonic() - each.used_at >= idle_s]
        for each in reversed(idle):  # the last in is the first out, as before
            if each in long_idle:
                each.end()
            else:
                self._idle.put(each)
        if long_idle and not self._keeps_server:
            _stop_server()
        return len(long_idle)

    def close(self) -> None:
        """Ends the idle processes now and the others with their call."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with contextlib.suppress(Empty):
            while True:
                self._idle.get_nowait().end()


class _RuleProcess:
    """One process and the connection to it. It ends by itself when this one is gone."""

    def __init__(self) -> None:
        self.used_at = time.monotonic()
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(theirs,), name="rules", daemon=True)
        with _server:
            self._process.start()
            _living.add(self)
        theirs.close()

    def call(self, limit_s: float, work: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, float]:
        """The result or the error of `work`, and the CPU seconds it used. Raises TooCostly or Unavailable when the
        process is gone."""
        call = pickle.dumps((limit_s, work, args, kwargs), pickle.HIGHEST_PROTOCOL)
        try:
            self._connection.send_bytes(call)
            answer: tuple[Any, float] = _unpickled(self._connection.recv_bytes())
        except (EOFError, OSError) as exc:
            self._process.join()
            if self._process.exitcode == -signal.SIGPROF:
                raise TooCostly() from exc
            raise Unavailable("A process of the service ended; try again.", retry_after_s=1.0) from exc
        return answer

    def end(self) -> None:
        self._connection.close()  # the process reads the end of its input and returns
        self._process.kill()
        self._process.join()
        _living.discard(self)


def _stop_server() -> None:
    """Ends the server that forks the processes, unless there are some; the next one starts it again."""
    with _server:
        if not _living:
            forkserver._forkserver._stop()  # type: ignore[attr-defined]  # nothing public does it


def _serve(connection: Connection) -> None:
    """Answers calls until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the other side decides
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    while True:
        try:
            call = connection.recv_bytes()
        except (EOFError, OSError):
            return
        began = time.process_time()
        limit_s, work, args, kwargs = _unpickled(call)
        signal.setitimer(signal.ITIMER_PROF, limit_s)
        try:
            found = work(*args, **kwargs)
        except Exception as exc:
            found = exc
        answer = _pickled(found, began)
        signal.setitimer(signal.ITIMER_PROF, 0)
        with contextlib.suppress(OSError):
            connection.send_bytes(answer)


def _unpickled(sent: bytes) -> Any:
    return pickle.loads(sent)  # noqa: S301  # from the other end of our own pipe


def _pickled(found: object, began: float) -> bytes:
    try:
        answer = pickle.dumps((found, time.process_time() - began), pickle.HIGHEST_PROTOCOL)
        if isinstance(found, Exception):
            _unpickled(answer)  # an error whose arguments are not those of its class only fails on the other side
        return answer
    except Exception as exc:
        return pickle.dumps((RuntimeError(f"{type(found).__name__}: {type(exc).__name__}"), 0.0))


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[Hashable], None], tenant: Hashable) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback, tenant)

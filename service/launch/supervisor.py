"""The supervisor: starts programs, restarts those that die, stops them in order.

One thread, one loop: it checks every program ten times a second and restarts a dead one after a pause, which doubles
with each death since it last ran well. A program that dies again and again and never ran well ends the service, and
so does one whose settings cannot be used: a restart does not cure that. One that once ran well is restarted for ever: a
database that is unavailable for an hour must not end the service.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

from service.launch.parent_death import end_with_parent
from service.launch.problems import BAD_SETTINGS, LaunchError

POLL_S = 0.1
PROVEN_S = 10.0  # a program that lives that long has found its settings and its database
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 15.0  # before a restart
MOST_DEATHS = 5  # of a program that never ran well
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Program(Protocol):
    """A program that runs until it is stopped or dies."""

    @property
    def name(self) -> str: ...

    def start(self) -> object:
        """Starts or restarts it. Raises LaunchError when it cannot."""

    def exit_code(self) -> int | None:
        """The exit code: None while it runs; a negative number is the signal that killed it. 0 before the first
        start."""

    def stop(self) -> None:
        """Asks it to end, waits, then kills it. Safe to repeat."""


class ChildProcess:
    """A command in a separate session: Ctrl-C reaches only the supervisor, whose children end with it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        stop_timeout_s: float,
        fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self._command = command
        self._env = env
        self._stop_timeout_s = stop_timeout_s
        self._fds = fds
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            end_with_parent(self._command, signal.SIGTERM),
            env=dict(self._env),
            stdin=subprocess.DEVNULL,
            pass_fds=self._fds,
            start_new_session=True,
        )

    def exit_code(self) -> int | None:
        return 0 if self._process is None else self._process.poll()

    def stop(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._stop_timeout_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # itself if still running, and children it left behind
        process.wait()


class Stopped(Exception):
    """A stop signal came before the start was complete."""


@dataclass(slots=True)
class _Supervised:
    program: Program
    started_at: float
    deaths: int = 0  # since it last ran well
    restart_at: float | None = None
    proven: bool = False  # it once lived for PROVEN_S in a service that was ready


class Supervisor:
    """Starts programs, keeps them alive, stops them in the order of `stop_order`, their names.

    `say` prints one line for the user.
    """

    def __init__(
        self,
        *,
        stop_order: Sequence[str],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop_order = stop_order
        self._say = say
        self._clock = clock
        self._programs: list[_Supervised] = []
        self._stopping = False
        self._ready = False

    def start(self, program: Program) -> None:
        """Starts it and watches it from now on. Raises Stopped when a stop was requested."""
        self._check_stopping()
        self._programs.append(_Supervised(program, self._clock()))
        program.start()

    def run_once(self, program: Program) -> int:
        """Waits for a program that ends by itself, keeping the others alive; returns its exit code."""
        self._check_stopping()
        program.start()
        try:
            while (code := program.exit_code()) is None:
                self.pause()
            return code
        finally:
            program.stop()

    def wait_until(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        """Keeps the programs alive until the condition holds; False after `timeout_s`."""
        deadline = self._clock() + timeout_s
        while not condition():
            if self._clock() > deadline:
                return False
            self.pause()
        return True

    def run(self) -> None:
        """Keeps everything alive until a stop signal."""
        try:
            while True:
                self.pause()
        except Stopped:
            pass

    def mark_ready(self) -> None:
        """The service is ready: from now on a program that lives for PROVEN_S counts as proven."""
        self._ready = True

    def pause(self) -> None:
        """Checks every program, then sleeps shortly. Raises Stopped after a stop signal, LaunchError."""
        self._check_stopping()
        self.revive()
        time.sleep(POLL_S)

    def revive(self) -> None:
        """Restarts programs that died and have waited long enough. Raises LaunchError."""
        for supervised in self._programs:
            if supervised.restart_at is None:
                code = supervised.program.exit_code()
                if code is not None:
                    if code == BAD_SETTINGS and not supervised.proven:
                        raise LaunchError(f"{supervised.program.name} ended; see its message above.")
                    self._plan(supervised, how_it_ended(code))
            elif self._clock() >= supervised.restart_at:
                self._restart(supervised)

    def stop(self) -> None:
        """Stops everything in order. Safe to repeat."""
        running, self._programs = self._programs, []
        for supervised in sorted(running, key=lambda each: self._stop_order.index(each.program.name)):
            supervised.program.stop()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Within the block Ctrl-C, SIGTERM and SIGHUP ask for a stop; repeats change nothing (make sends its own)."""
        before = {number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True  # nothing more: a handler may interrupt anything

    def _check_stopping(self) -> None:
        if self._stopping:
            raise Stopped

    def _restart(self, supervised: _Supervised) -> None:
        supervised.restart_at = None
        supervised.started_at = self._clock()
        try:
            supervised.program.start()
        except LaunchError as exc:
            self._plan(supervised, str(exc))

    def _plan(self, supervised: _Supervised, why: str) -> None:
        now = self._clock()
        if self._ready and now - supervised.started_at >= PROVEN_S:
            supervised.proven, supervised.deaths = True, 0
        if supervised.deaths >= MOST_DEATHS and not supervised.proven:
            raise LaunchError(f"{supervised.program.name} keeps dying ({why}); see its messages above. Giving up.")
        pause_s = min(FIRST_PAUSE_S * 2**supervised.deaths, LONGEST_PAUSE_S)
        supervised.deaths += 1
        supervised.restart_at = now + pause_s
        self._say(f"{supervised.program.name} ended ({why}); starting it again in {pause_s:.1f} s")


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

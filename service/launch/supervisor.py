"""Who keeps the service running?

One thread, one loop: look at every program ten times a second, restart what died after a growing pause, at most 5 times
in a minute. A program that dies more often and never ran well ends the service: something is wrong that a restart does
not cure. One that did is restarted for ever: a database that is away for an hour must not end the service.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from service.launch.problems import LaunchError
from service.launch.programs import Program

POLL_S = 0.1
PROVEN_S = 10.0  # who lives that long has found its settings and its database
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class GaveUp(LaunchError):
    """A program dies as fast as it is restarted, and never ran well."""


class Stopped(Exception):
    """A stop signal came before the start was complete."""


@dataclass(slots=True)
class Restarts:
    """When may it be restarted? After 0.2 s, doubled with each restart in the window; at most `limit` in `window_s`."""

    limit: int = 5
    window_s: float = 60.0
    first_pause_s: float = 0.2
    planned: deque[float] = field(default_factory=deque)

    def plan(self, death_at: float) -> float:
        """Returns the time of the next restart. Beyond the limit: when the oldest one leaves the window."""
        if self.exhausted(death_at):
            at = self.planned[0] + self.window_s
        else:
            at = death_at + self.first_pause_s * 2 ** len(self.planned)
        self.planned.append(at)
        return float(at)

    def exhausted(self, now: float) -> bool:
        """True when the window holds as many restarts as are allowed."""
        while self.planned and now - self.planned[0] >= self.window_s:
            self.planned.popleft()
        return len(self.planned) >= self.limit


@dataclass(slots=True)
class _Watched:
    program: Program
    started_at: float
    restarts: Restarts
    restart_at: float | None = None
    proven: bool = False  # it once lived for PROVEN_S in a service that was ready


class Supervisor:
    """Starts programs, keeps them alive, stops them in the order of `stop_order`, their names.

    `say` tells a human, one line at a time.
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
        self._watched: list[_Watched] = []
        self._stopping = False
        self._settled = False

    def start(self, program: Program) -> None:
        """Start it and watch it from now on. Raises Stopped when we are on our way out."""
        self._check_stopping()
        self._watched.append(_Watched(program, self._clock(), Restarts()))
        program.start()

    def run_once(self, program: Program) -> int:
        """Returns the exit code of a program that ends by itself, while the others are kept alive."""
        self._check_stopping()
        program.start()
        try:
            while (code := program.exit_code()) is None:
                self.pause()
            return code
        finally:
            program.stop()

    def wait_until(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        """True as soon as the condition holds, False after `timeout_s`; keeps the programs alive meanwhile."""
        deadline = self._clock() + timeout_s
        while not condition():
            if self._clock() > deadline:
                return False
            self.pause()
        return True

    def run(self) -> None:
        """Keep everything alive until a stop signal."""
        try:
            while True:
                self.pause()
        except Stopped:
            pass

    def settle(self) -> None:
        """The service is ready: from now on a long life proves a program."""
        self._settled = True

    def pause(self) -> None:
        """One look at everything, then a short sleep. Raises Stopped after a stop signal, GaveUp."""
        self._check_stopping()
        self.revive()
        time.sleep(POLL_S)

    def revive(self) -> None:
        """Restart what died and has waited long enough. Raises GaveUp."""
        for watched in self._watched:
            if watched.restart_at is None:
                code = watched.program.exit_code()
                if code is not None:
                    self._plan(watched, how_it_ended(code))
            elif self._clock() >= watched.restart_at:
                self._restart(watched)

    def stop(self) -> None:
        """Stop everything in order. Safe to repeat."""
        running, self._watched = self._watched, []
        for watched in sorted(running, key=lambda each: self._stop_order.index(each.program.name)):
            watched.program.stop()

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

    def _restart(self, watched: _Watched) -> None:
        watched.restart_at = None
        watched.started_at = self._clock()
        try:
            watched.program.start()
        except LaunchError as exc:
            self._plan(watched, str(exc))

    def _plan(self, watched: _Watched, why: str) -> None:
        now = self._clock()
        watched.proven |= self._settled and now - watched.started_at >= PROVEN_S
        if watched.restarts.exhausted(now) and not watched.proven:
            raise GaveUp(f"{watched.program.name} keeps dying ({why}). Its messages stand above; giving up.")
        watched.restart_at = watched.restarts.plan(now)
        self._say(f"{watched.program.name} ended ({why}); starting it again in {watched.restart_at - now:.1f} s")


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"

"""Dead programs are restarted with growing pauses, not for ever, and stop in order."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from service.launch.problems import LaunchError
from service.launch.supervisor import ChildProcess, Stopped, Supervisor, how_it_ended
from tests.fakes.ticks import Ticks

ORDER = ("API", "worker", "postgres")


class FakeProgram:
    """A program that lives until told otherwise, and writes down what is done to it."""

    def __init__(self, name: str, diary: list[str]) -> None:
        self.name = name
        self.diary = diary
        self.code: int | None = None
        self.trouble: str | None = None

    def start(self) -> None:
        self.diary.append(f"start {self.name}")
        if self.trouble:
            raise LaunchError(self.trouble)
        self.code = None

    def exit_code(self) -> int | None:
        return self.code

    def stop(self) -> None:
        self.diary.append(f"stop {self.name}")


@pytest.fixture
def clock() -> Ticks:
    return Ticks()


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said: list[str], clock: Ticks) -> Supervisor:
    return Supervisor(stop_order=ORDER, say=said.append, clock=clock)


def restart_pauses(
    supervisor: Supervisor, program: FakeProgram, clock: Ticks, lived_s: float, deaths: int
) -> list[float]:
    """How long after each death the program was started again."""
    pauses = list[float]()
    for _ in range(deaths):
        clock.now += lived_s
        program.code, died_at = 1, clock.now
        while program.code is not None:
            supervisor.revive()
            clock.now += 0.1
        pauses.append(round(clock.now - died_at - 0.1, 1))
    return pauses


def test_the_pause_before_a_restart_doubles(supervisor: Supervisor, clock: Ticks, diary: list[str]) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)
    supervisor.mark_ready()
    assert restart_pauses(supervisor, program, clock, 10.0, 1) == pytest.approx([0.2], abs=0.11)
    expected = [0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]
    assert restart_pauses(supervisor, program, clock, 0.0, 8) == pytest.approx(expected, abs=0.11)


def test_a_rare_death_costs_little(supervisor: Supervisor, clock: Ticks, diary: list[str]) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)
    supervisor.mark_ready()
    assert restart_pauses(supervisor, program, clock, 100.0, 3) == pytest.approx([0.2, 0.2, 0.2], abs=0.11)


def test_a_dead_program_is_restarted_after_its_pause(
    supervisor: Supervisor, clock: Ticks, diary: list[str], said: list[str]
) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)
    program.code = -signal.SIGKILL
    supervisor.revive()
    assert diary == ["start worker"], "not at once"
    assert "worker ended (killed by SIGKILL)" in said[0]
    clock.now += 0.2
    supervisor.revive()
    assert diary == ["start worker", "start worker"]


def test_a_program_that_keeps_dying_is_given_up(supervisor: Supervisor, clock: Ticks, diary: list[str]) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)

    def die_often() -> None:
        for _ in range(50):
            program.code = 3
            supervisor.revive()
            clock.now += 0.5

    with pytest.raises(LaunchError, match=r"worker keeps dying \(exit code 3\)"):
        die_often()
    assert diary.count("start worker") == 1 + 5


def test_settings_that_cannot_be_used_are_not_tried_again(
    supervisor: Supervisor, clock: Ticks, diary: list[str]
) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)
    program.code = 2
    with pytest.raises(LaunchError, match="worker ended; see its message above"):
        supervisor.revive()


def test_a_slow_death_before_the_service_is_ready_proves_nothing(
    supervisor: Supervisor, clock: Ticks, diary: list[str]
) -> None:
    program = FakeProgram("API", diary)
    supervisor.start(program)

    def die_slowly() -> None:
        for _ in range(20):
            clock.now += 10
            program.code = 1
            while program.code is not None:
                supervisor.revive()
                clock.now += 0.1

    with pytest.raises(LaunchError, match="API keeps dying"):
        die_slowly()


def test_a_service_that_ran_well_is_never_given_up(supervisor: Supervisor, clock: Ticks, diary: list[str]) -> None:
    program = FakeProgram("worker", diary)
    supervisor.start(program)
    supervisor.mark_ready()
    clock.now += 10
    for _ in range(1200):
        program.code = 3
        supervisor.revive()
        clock.now += 0.5
    assert 40 <= diary.count("start worker") - 1 <= 5 * 10, "ten minutes, four or five in each"


def test_a_failed_restart_counts_as_a_death(supervisor: Supervisor, clock: Ticks, diary: list[str]) -> None:
    program = FakeProgram("postgres", diary)
    supervisor.start(program)
    program.code, program.trouble = 1, "disk full"
    supervisor.revive()

    def wait_long() -> None:
        for _ in range(50):
            clock.now += 0.5
            supervisor.revive()

    with pytest.raises(LaunchError, match="disk full"):
        wait_long()


def test_stop_goes_in_order_and_only_once(supervisor: Supervisor, diary: list[str]) -> None:
    for name in ("postgres", "API", "worker"):
        supervisor.start(FakeProgram(name, diary))
    supervisor.stop()
    supervisor.stop()
    assert diary[3:] == ["stop API", "stop worker", "stop postgres"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_the_run(supervisor: Supervisor, number: signal.Signals, diary: list[str]) -> None:
    before = signal.getsignal(number)
    with supervisor.signals():
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        supervisor.run()
        with pytest.raises(Stopped):
            supervisor.start(FakeProgram("late", diary))
    assert signal.getsignal(number) is before
    assert diary == []


def test_run_once_returns_how_it_ended() -> None:
    supervisor = Supervisor(stop_order=ORDER, say=print)
    command = [sys.executable, "-c", "raise SystemExit(4)"]
    assert supervisor.run_once(ChildProcess("once", command, env=os.environ, stop_timeout_s=1)) == 4


def test_a_child_that_ignores_sigterm_is_killed_with_its_own_children() -> None:
    stubborn = "import signal, subprocess; signal.signal(15, signal.SIG_IGN); subprocess.run(['sleep', '60'])"
    child = ChildProcess("stubborn", [sys.executable, "-c", stubborn], env=os.environ, stop_timeout_s=0.3)
    child.start()
    assert child.exit_code() is None
    child.stop()
    assert child.exit_code() == -signal.SIGKILL or child.exit_code() == -signal.SIGTERM
    child.stop()


@pytest.mark.parametrize(
    ("code", "words"), [(0, "exit code 0"), (1, "exit code 1"), (-9, "killed by SIGKILL"), (-99, "killed by signal 99")]
)
def test_how_it_ended(code: int, words: str) -> None:
    assert how_it_ended(code) == words

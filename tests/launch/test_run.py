"""The whole start: banner, restarts, stop order, busy port, second start, takeover.

The programs are stand-ins (fake_service.py), so that only the launcher is tested; one test runs the embedded Postgres.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.launch.conftest import until

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).with_name("fake_service.py")
LAUNCH = f"""
import sys
from service.launch import run, supervisor
supervisor.FIRST_PAUSE_S = 0.02
run.MODULE = (sys.executable, {str(FAKE)!r})
from service.command.cli import app
app(["run"])
"""


class Launch:
    """One `loxodon run` over the stand-ins."""

    def __init__(self, folder: Path, port: int, changes: dict[str, str]) -> None:
        self.log = folder / "log"
        self.url = f"http://127.0.0.1:{port}"
        env = os.environ | {"LOXODON_DATA_DIR": str(folder / "the data"), "LOXODON_PORT": str(port)}
        env |= {"FAKE_LOG": str(self.log), "DATABASE_URL": "postgresql+asyncpg://elsewhere/db"} | changes
        env.pop("LOXODON_BOOTSTRAP_API_KEY", None)
        env |= {name: value for name, value in changes.items() if value}
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def until_ready(self) -> str:
        """Returns what was printed up to the end of the banner."""
        assert self.process.stdout is not None
        printed = ""
        while "Ctrl-C stops it" not in printed:
            line = self.process.stdout.readline()
            assert line, printed + self.end()[1]
            printed += line
        until(lambda: bool(self.log.exists() and self.noted("worker ")))
        return printed

    def end(self) -> tuple[int, str]:
        """Returns exit code and stderr."""
        _, errors = self.process.communicate(timeout=15)
        return self.process.returncode, errors

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(number)
        return self.end()

    def noted(self, start: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith(start)]

    def pid_of(self, name: str) -> int:
        return int(self.noted(f"{name} ")[-1].split()[1])

    def get(self) -> str:
        with urlopen(self.url + "/readyz", timeout=10) as answer:
            return str(answer.read().decode())


Start = Callable[..., Launch]


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def start(tmp_path: Path, port: int) -> Iterator[Start]:
    started: list[Launch] = []

    def launch(**changes: str) -> Launch:
        started.append(Launch(tmp_path, int(changes.pop("port", str(port))), changes))
        return started[-1]

    yield launch
    for one in started:
        if one.process.poll() is None:
            one.stop()


def test_start_then_stop_in_order(start: Start, tmp_path: Path) -> None:
    launch = start()
    printed = launch.until_ready()
    [file] = (tmp_path / "the data").glob("first-key*")
    assert file.name != "first-key", "that is the embedded database's"
    key = file.read_text().strip()
    assert key.startswith("lox_")
    assert file.stat().st_mode & 0o777 == 0o600
    assert launch.url in printed
    assert f"Bearer {key}" in printed
    assert launch.get() == str(launch.pid_of("API"))
    assert launch.stop() == (0, "")
    noted = launch.log.read_text().splitlines()
    assert noted[0] == f"migrate {key}"
    assert noted[-2:] == ["API stopped", "worker stopped"]
    assert "has no key" in launch.noted("API ")[0]


def test_the_key_is_the_same_at_every_start(start: Start) -> None:
    for _ in range(2):
        launch = start()
        launch.until_ready()
        launch.stop()
    first, second = launch.noted("migrate")
    assert first == second


def test_a_given_key_wins(start: Start, tmp_path: Path) -> None:
    launch = start(LOXODON_BOOTSTRAP_API_KEY="chosen-by-hand-and-long")
    assert "Bearer chosen-by-hand-and-long" in launch.until_ready()
    assert launch.noted("migrate") == ["migrate chosen-by-hand-and-long"]
    assert not list((tmp_path / "the data").glob("first-key*"))


def test_killed_children_come_back_and_clients_wait(start: Start) -> None:
    launch = start()
    launch.until_ready()
    for name in ("API", "worker"):
        old = launch.pid_of(name)
        os.kill(old, signal.SIGKILL)
        assert launch.get(), "the supervisor holds the port: a client waits, it is not refused"
        until(lambda name=name, old=old: launch.pid_of(name) != old)  # type: ignore[misc]
    assert launch.stop()[0] == 0


def test_a_child_that_keeps_dying_ends_the_service_with_a_reason(start: Start) -> None:
    code, errors = start(FAKE_WORKER="dies").end()
    assert code == 1
    assert "worker keeps dying (exit code 3)" in errors
    assert "Traceback" not in errors


def test_ctrl_c_during_a_drain_changes_nothing(start: Start) -> None:
    launch = start(FAKE_API_STOP_S="0.5")
    launch.until_ready()
    launch.process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert launch.stop(signal.SIGINT) == (0, "")
    assert launch.noted("API stopped") == ["API stopped"]


def test_a_busy_port_is_told_before_anything_starts(start: Start, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        launch = start()
        code, errors = launch.end()
    assert code == 1
    assert f"Port {port} on 127.0.0.1 is taken" in errors
    assert f"LOXODON_PORT={port + 1}" in errors
    assert not launch.log.exists()


def test_a_second_start_is_told_where_the_first_one_is(start: Start) -> None:
    first = start()
    first.until_ready()
    code, errors = start().end()
    assert code == 1
    assert f"is already running at {first.url}" in errors
    assert first.get()


def test_a_start_waits_for_one_that_is_stopping(start: Start) -> None:
    first = start(FAKE_API_STOP_S="2")
    first.until_ready()
    first.process.send_signal(signal.SIGTERM)
    second = start()
    second.until_ready()
    assert first.end()[0] == 0
    assert second.get()


def test_after_kill_9_of_the_supervisor_a_second_start_takes_over(start: Start) -> None:
    first = start(DATABASE_URL="")
    first.until_ready()
    orphans = [first.pid_of("API"), first.pid_of("worker")]
    assert first.stop(signal.SIGKILL)[0] == -signal.SIGKILL
    second = start(DATABASE_URL="")
    second.until_ready()
    assert second.pid_of("API") not in orphans
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in orphans))
    assert second.stop() == (0, "")


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"LOXODON_PORT": "eighty"}, 2, "LOXODON_PORT"),
        ({"LOXODON_HOST": "no.such.host.invalid"}, 1, "LOXODON_HOST=no.such.host.invalid"),
        ({"LOXODON_HOST": "192.0.2.1"}, 1, "Cannot listen on 192.0.2.1"),
        ({"LOXODON_DATA_DIR": "/dev/null/data"}, 1, "LOXODON_DATA_DIR"),
    ],
)
def test_a_setting_that_cannot_work_is_named(start: Start, changes: dict[str, str], code: int, words: str) -> None:
    found, errors = start(**changes).end()
    assert (found, "Traceback" in errors) == (code, False)
    assert words in errors

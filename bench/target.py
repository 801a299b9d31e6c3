"""The service under measurement: all of `make run` in a temporary folder, or one that runs elsewhere.

`started()` runs `python -m service run` with a clean environment: no DATABASE_URL or model key of the shell leaks in,
so the figures are those of the defaults. CPU by process is read from /proc, so on Linux only.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote

from bench.superuser import TRUST
from service.kit.settings import PREFIX, UNPREFIXED
from service.launch.run import is_ready

ROOT = Path(__file__).parents[1]
START_S, STOP_S = 180.0, 60.0
NOTHING: Mapping[str, str] = MappingProxyType({})

# Chaos kills far more often than any program dies, and the pause before a restart grows with each death.
PATIENT = """
from service.launch import supervisor
supervisor.MOST_DEATHS, supervisor.LONGEST_PAUSE_S = 1000, 0.4
from service.command.cli import app
app()
"""


Part = Literal["api", "worker", "postgres"]
PARTS: tuple[Part, ...] = ("api", "worker", "postgres")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ServiceProcesses:
    """The processes of a started service; `cluster` is the folder of its Postgres."""

    supervisor: int
    cluster: Path
    log: Path

    def pid(self, part: Part) -> int | None:
        """Returns the process id of a part, None while it is dead."""
        if part == "postgres":
            return next((pid for pid in children(self.supervisor) if _name(pid) == "postgres"), None)
        return next((pid for pid in children(self.supervisor) if _runs(pid, part)), None)

    def cpu_s(self) -> dict[str, float]:
        """Returns seconds of CPU used so far by each part with its children, living and dead: the backends of Postgres,
        the worker's embedding model."""
        found: dict[str, float] = {}
        for part in PARTS:
            pid = self.pid(part)
            found[part] = 0.0 if pid is None else family_cpu_s(pid)
        return found

    def database_url(self) -> str:
        """Returns the superuser's URL, from its postmaster.pid (line 4 port, line 5 socket folder), and lets it in."""
        lines = (self.cluster / "postmaster.pid").read_text().splitlines()
        (self.cluster / "pg_hba.conf").write_text(TRUST)
        os.kill(int(lines[0]), signal.SIGHUP)
        return f"postgresql://postgres@/loxodon?host={quote(lines[4], safe='')}&port={lines[3]}"


@dataclass(frozen=True, slots=True)
class Service:
    """A service under measurement. `database` and `processes` are None for one that runs elsewhere."""

    url: str
    key: str
    database: str | None = None  # asyncpg URL of its superuser
    processes: ServiceProcesses | None = None

    def cpu_s(self) -> dict[str, float]:
        """Returns seconds of CPU used so far by each part; empty for a service that runs elsewhere."""
        return self.processes.cpu_s() if self.processes else {}

    @property
    def log(self) -> str:
        return self.processes.log.read_text(errors="replace") if self.processes else ""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--url", help="a running service, e.g. http://127.0.0.1:8080; default: start one")
    parser.add_argument("--key", default=os.environ.get("LOXODON_API_KEY"), help="its API key (or LOXODON_API_KEY)")
    return parser


@contextmanager
def chosen(options: argparse.Namespace, env: Mapping[str, str] = NOTHING) -> Iterator[Service]:
    """Yields the service that the options name, else one with `env` that runs as long as the block."""
    if options.url is None:
        with started(env=env) as service:
            yield service
    elif options.key is None:
        raise SystemExit("--url needs --key")
    else:
        yield Service(options.url.rstrip("/"), options.key)


def with_database(service: Service, database: str | None) -> Service:
    """Returns the service with the URL of its database, if one is given."""
    return replace(service, database=database) if database else service


@contextmanager
def started(
    *, env: Mapping[str, str] = NOTHING, patient: bool = False, database: str | None = None
) -> Iterator[Service]:
    """Starts a service on its embedded Postgres, or on the one that `env` names; `database` is its superuser's URL.
    `patient`: the supervisor restarts a program however often it dies."""
    with tempfile.TemporaryDirectory(prefix="loxodon-bench-", ignore_cleanup_errors=True) as folder:
        data_dir, port, key = Path(folder) / "data", free_port(), "lox_" + secrets.token_urlsafe(32)
        log = Path(folder) / "log"
        settings = {"DATA_DIR": str(data_dir), "PORT": str(port), "BOOTSTRAP_API_KEY": key}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [
                    sys.executable,
                    *(["-c", PATIENT] if patient else ["-m", "service"]),
                    "run",
                    "--parent",
                    str(os.getpid()),
                ],
                cwd=ROOT,
                env=clean_environment() | {PREFIX + name: value for name, value in settings.items()} | dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        processes = ServiceProcesses(process.pid, data_dir / "postgres", log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(process, url, log)
            yield Service(url, key, database or processes.database_url(), processes)
        finally:
            _stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment() -> dict[str, str]:
    """Returns the environment of this process without variables of the service."""
    variables = set(UNPREFIXED.values())
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) and name not in variables}


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while not (is_ready(url) and "Loxodon is ready" in log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The service did not start:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()  # its children notice and end
            process.wait()


def cpu_s(pids: Iterable[int]) -> float:
    """Returns the seconds of CPU that the living processes used so far."""
    return sum(_cpu_s(each, with_dead=False) for each in pids)


def family_cpu_s(pid: int) -> float:
    """Returns the seconds of CPU that a process and its children, living and dead, used so far."""
    return _cpu_s(pid, with_dead=True) + cpu_s(children(pid))


def children(parent: int) -> list[int]:
    """Returns the living direct children of a process."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))) and int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(entry))
    return found


def _runs(pid: int, command: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:5] == [b"-P", b"-m", b"service", command.encode()]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _cpu_s(pid: int, *, with_dead: bool) -> float:
    fields = _stat(pid)
    counted = fields[11:15] if with_dead else fields[11:13]  # utime, stime, and those of children that were waited for
    return sum(map(int, counted)) / TICKS_PER_S


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on, empty when it ended. The name before them may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []

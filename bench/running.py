"""Which service is measured? The real one, all of `make run` in a temp folder, or one that runs elsewhere.

`started()` runs `python -m service run` with an environment of its own: no DATABASE_URL and no model key of the
shell's leaks in, so the figures are those of the defaults.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from bench import processes
from service.launch.run import is_ready
from service.settings import BARE, PREFIX

ROOT = Path(__file__).parents[1]
START_S, STOP_S = 180.0, 60.0
NOTHING: Mapping[str, str] = MappingProxyType({})

# Chaos kills far more often than the five times in a minute after which the supervisor pauses a program.
PATIENT = """
import functools
from service.launch import supervisor
supervisor.Restarts = functools.partial(supervisor.Restarts, limit=1000, window_s=2.0)
from service.cli import app
app()
"""


@dataclass(frozen=True, slots=True)
class Service:
    """A service under measurement. What only an own one has is None for one that runs elsewhere."""

    url: str
    key: str
    database: str | None = None  # an asyncpg URL of its superuser
    processes: processes.Family | None = None

    @property
    def log(self) -> str:
        return self.processes.log.read_text(errors="replace") if self.processes else ""


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that all programs share."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--url", help="a running service instead of an own one, e.g. http://127.0.0.1:8080")
    parser.add_argument("--key", default=os.environ.get("LOXODON_API_KEY"), help="its API key (or LOXODON_API_KEY)")
    return parser


@contextmanager
def chosen(options: argparse.Namespace) -> Iterator[Service]:
    """The service that the options name, else an own one for the time of the block."""
    if options.url is None:
        with started() as service:
            yield service
    elif options.key is None:
        raise SystemExit("--url needs --key")
    else:
        yield Service(options.url.rstrip("/"), options.key)


def with_database(service: Service, database: str | None) -> Service:
    """The service with a way into its database, when one is named."""
    return replace(service, database=database) if database else service


@contextmanager
def started(*, env: Mapping[str, str] = NOTHING, patient: bool = False) -> Iterator[Service]:
    """An own service on the embedded default. `patient`: its supervisor restarts a program however often it dies."""
    with tempfile.TemporaryDirectory(prefix="loxodon-bench-", ignore_cleanup_errors=True) as folder:
        data_dir, port, key = Path(folder) / "data", free_port(), "lox_" + secrets.token_urlsafe(32)
        log = Path(folder) / "log"
        own = {"DATA_DIR": str(data_dir), "PORT": str(port), "BOOTSTRAP_API_KEY": key}
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
                env=_clean_environment() | {PREFIX + name: value for name, value in own.items()} | dict(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        family = processes.Family(process.pid, data_dir / "postgres", log)
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_until_ready(process, url, log)
            yield Service(url, key, family.database_url(), family)
        finally:
            _stop(process)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _clean_environment() -> dict[str, str]:
    ours = set(BARE.values())
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX) and name not in ours}


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
            process.kill()  # its children see it die
            process.wait()

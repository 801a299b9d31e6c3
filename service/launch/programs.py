"""Programs that the supervisor can start, watch and stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Protocol

from service.launch.parent_death import ended_with_parent
from service.launch.postgres import EmbeddedPostgres


class Program(Protocol):
    """A program that runs until it is stopped or dies."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Starts or restarts it. Raises LaunchError when it cannot."""

    def exit_code(self) -> int | None:
        """None while it runs; a negative number is the signal that killed it. 0 before the first start."""

    def stop(self) -> None:
        """Asks it to end, waits, then kills it. Safe to repeat."""


class ChildProcess:
    """A command in a session of its own: Ctrl-C reaches only the supervisor, and its children end with it."""

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
            ended_with_parent(self._command, signal.SIGTERM),
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


class PostgresProgram:
    """The embedded server as a supervised program."""

    name = "postgres"

    def __init__(self, server: EmbeddedPostgres, *, start_timeout_s: float = 120.0) -> None:
        self._server = server
        self._start_timeout_s = start_timeout_s  # replaying the WAL of a busy day takes a while

    def start(self) -> None:
        self._server.start(timeout_s=self._start_timeout_s)

    def exit_code(self) -> int | None:
        return None if self._server.pid is not None else self._server.last_exit_code

    def stop(self) -> None:
        self._server.stop()

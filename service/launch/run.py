"""What happens, in order, between `make run` and a service that answers?

Own the folder, own the port, Postgres, migrations and first key, API and worker, wait for /readyz, say so; then keep
everything alive until a stop signal, and stop API, worker, Postgres in this order.
"""

from __future__ import annotations

import compileall
import contextlib
import http.client
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from service.launch import datadir, listener
from service.launch.banner import banner
from service.launch.bootstrap import first_key
from service.launch.ownership import Ownership
from service.launch.postgres import EmbeddedPostgres
from service.launch.problems import LaunchError
from service.launch.programs import ChildProcess, PostgresProgram
from service.launch.supervisor import Stopped, Supervisor
from service.settings import Settings

MODULE = (sys.executable, "-m", "service")
STOP_ORDER = ("API", "worker", "postgres")
READY_TIMEOUT_S = 120.0
PROBE_TIMEOUT_S = 2.0
TAKEOVER_PATIENCE_S = 10.0  # the API of a killed supervisor frees the port as soon as it has seen its SIGTERM
DRAIN_MARGIN_S = 5.0  # on top of the API's own limit, before it is killed
WORKER_STOP_S = 30.0
WORKER_NICE = 10  # on one machine whoever waits for an answer goes first; enrichment catches up when it is quiet
OWNER_ONLY = ("LOXODON_BOOTSTRAP_API_KEY", "AUTOMEM_API_TOKEN")  # no business of API and worker


def run(settings: Settings, *, reload: bool = False) -> int:
    """Returns the exit code: 0 after a stop signal. Raises LaunchError when it cannot start or cannot go on."""
    data_dir = settings.data_dir.absolute()
    datadir.prepare(data_dir)
    compile_once()
    ownership = Ownership(data_dir)
    crashed = ownership.take()
    try:
        with listener.listen(settings.host, settings.port, patience_s=TAKEOVER_PATIENCE_S if crashed else 0.0) as door:
            return _Start(settings, data_dir, ownership, door, reload=reload).go()
    finally:
        ownership.release()


class _Start:
    """One start, from the bound port to the last process stopped."""

    def __init__(
        self, settings: Settings, data_dir: Path, ownership: Ownership, door: socket.socket, *, reload: bool
    ) -> None:
        self._settings = settings
        self._data_dir = data_dir
        self._ownership = ownership
        self._door = door
        self._reload = reload
        self._url = listener.reachable_url(settings.host, settings.port)
        self._supervisor = Supervisor(stop_order=STOP_ORDER, say=say)

    def go(self) -> int:
        supervisor = self._supervisor
        with supervisor.signals():
            try:
                self._ownership.note("starting", self._url)
                self._bring_up()
                supervisor.run()
            except Stopped:
                pass
            finally:
                self._ownership.note("stopping", self._url)
                self._door.close()  # refuse rather than keep waiting
                say("Stopping …")
                supervisor.stop()
        say("Stopped.")
        return 0

    def _bring_up(self) -> None:
        key = first_key(self._data_dir, _revealed(self._settings.bootstrap_api_key))
        env = self._database_environment()
        say("Bringing the database up to date …")
        with self._api_behind_gate(env):
            self._migrate(env | {"LOXODON_BOOTSTRAP_API_KEY": key})
        say("Starting the API and the worker …")
        if not self._supervisor.wait_until(lambda: is_ready(self._url), timeout_s=READY_TIMEOUT_S):
            raise LaunchError(f"The API did not become ready within {READY_TIMEOUT_S:.0f} s ({self._url}/readyz).")
        # not before: its imports would take the API's core away for two seconds
        self._start("worker", ["worker", "--nice", str(WORKER_NICE)], env, stop_timeout_s=WORKER_STOP_S)
        self._supervisor.settle()
        self._ownership.note("running", self._url)
        say(banner(self._url, key, self._store()))

    def _database_environment(self) -> dict[str, str]:
        """Returns the environment for the children; starts the embedded Postgres unless a database was named."""
        if self._settings.database_url is not None:
            return dict(os.environ)
        say(f"Starting Postgres in {self._data_dir} …")
        postgres = EmbeddedPostgres(self._data_dir)
        self._supervisor.start(PostgresProgram(postgres))
        return embedded_environment(os.environ, postgres.start().url())

    @contextlib.contextmanager
    def _api_behind_gate(self, env: Mapping[str, str]) -> Iterator[None]:
        """The API imports what it needs within the block, and serves after it (serve.py)."""
        reading, writing = os.pipe()
        door = self._door.fileno()
        words = ["api", "--fd", str(door), "--gate", str(reading), *(["--reload"] if self._reload else [])]
        limit_s = self._settings.request_deadline_s + 2 * DRAIN_MARGIN_S
        try:
            self._start("API", words, env, stop_timeout_s=limit_s, fds=[door, reading])
            yield
        finally:
            os.close(writing)  # the reading end stays: a restarted API finds the gate open

    def _start(
        self, name: str, words: Sequence[str], env: Mapping[str, str], *, stop_timeout_s: float, fds: Sequence[int] = ()
    ) -> None:
        kept = {variable: value for variable, value in env.items() if variable not in OWNER_ONLY}
        self._supervisor.start(ChildProcess(name, [*MODULE, *words], env=kept, stop_timeout_s=stop_timeout_s, fds=fds))

    def _migrate(self, env: Mapping[str, str]) -> None:
        migrate = ChildProcess("migrate", [*MODULE, "migrate"], env=env, stop_timeout_s=WORKER_STOP_S)
        if self._supervisor.run_once(migrate) != 0:
            raise LaunchError("The database could not be brought up to date; the reason stands above.")

    def _store(self) -> str:
        return str(self._data_dir) if self._settings.database_url is None else "the database in DATABASE_URL"


def compile_once() -> None:
    """Write the bytecode of what changed: else three children compile the same files, each time where
    PYTHONDONTWRITEBYTECODE is set (measured: 2 of 3 s until ready). A read-only folder is no problem, only slower."""
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)


def embedded_environment(env: Mapping[str, str], url: str) -> dict[str, str]:
    """Returns `env` with the embedded server as the only database; its superuser makes each process take its role."""
    kept = {name: value for name, value in env.items() if not name.endswith("DATABASE_URL")}
    return kept | {"DATABASE_URL": url}


def is_ready(url: str) -> bool:
    """True when /readyz answers 200. Not urllib: that one would ask a proxy from the environment."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def say(line: str) -> None:
    """Tell the person at the terminal; a terminal that is gone must not stop the service."""
    with contextlib.suppress(OSError):
        print(line, flush=True)


def _revealed(secret: object) -> str | None:
    reveal = getattr(secret, "get_secret_value", None)
    return str(reveal()) if reveal is not None else None

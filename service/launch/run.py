"""Starts the whole service on one machine: `make run`.

In order: lock the data folder, bind the port, start Postgres, migrate and ensure the first key, start API and worker,
wait for /readyz, print the banner; then keep everything alive until a stop signal, and stop API, worker, Postgres.
"""

from __future__ import annotations

import compileall
import contextlib
import http.client
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from service.kit.settings import Settings
from service.launch import data_dir, listener
from service.launch.data_dir import Ownership, first_key
from service.launch.postgres import EmbeddedPostgres, Server
from service.launch.problems import LaunchError
from service.launch.programs import find_binaries
from service.launch.supervisor import ChildProcess, Stopped, Supervisor
from service.postgres.roles import LOGINS, URL_VARIABLES
from service.providers.presets import secret

REVOKED = """The first key was revoked, or has expired. Make another with a key that has admin:

  POST /v1/api-keys {"name": "mine", "rights": ["memory:read", "memory:write", "memory:delete"]}

Where there is none, start once with a new secret in LOXODON_BOOTSTRAP_API_KEY, of 20 characters or more:
it becomes a key with every right.
"""
MODULE = (sys.executable, "-P", "-m", "service")  # -P: not a package "service" in the folder we were started from
STOP_ORDER = ("API", "worker", "postgres")
READY_TIMEOUT_S = 120.0
PROBE_TIMEOUT_S = 2.0
NO_ANSWER_YET, MODEL_PATIENCE_S = "no answer yet", 1.5  # how long the banner waits for the model's first answer
TAKEOVER_PATIENCE_S = 10.0  # the API of a killed supervisor frees the port once it has handled its SIGTERM
DRAIN_MARGIN_S = 5.0  # on top of the API's own limit, before it is killed
WORKER_STOP_S = 30.0
WORKER_NICE = 10  # on one machine requests go first; enrichment catches up when it is idle
MIGRATE_ONLY = ("LOXODON_BOOTSTRAP_API_KEY", "AUTOMEM_API_TOKEN", "LOXODON_OWNER_DATABASE_URL")
WORKER_ONLY = ("LOXODON_WORKER_DATABASE_URL",)


def run(settings: Settings) -> int:
    """Runs until a stop signal, then returns 0. Raises LaunchError when it cannot start or cannot go on."""
    if settings.database.url is None:
        find_binaries()  # before a folder is made: raises LaunchError with the line that installs it
    folder = settings.server.data_dir.absolute()
    data_dir.prepare(folder)
    compile_once()
    ownership = Ownership(folder)
    crashed = ownership.take()
    try:
        with listener.listen(
            settings.server.host, settings.server.port, patience_s=TAKEOVER_PATIENCE_S if crashed else 0.0
        ) as api_socket:
            return _Launcher(settings, folder, ownership, api_socket).run()
    finally:
        ownership.release()


class _Launcher:
    """One start, from the bound port to the last process stopped."""

    def __init__(self, settings: Settings, folder: Path, ownership: Ownership, api_socket: socket.socket) -> None:
        self._settings = settings
        self._folder = folder
        self._ownership = ownership
        self._socket = api_socket
        self._url = listener.reachable_url(settings.server.host, settings.server.port)
        self._supervisor = Supervisor(stop_order=STOP_ORDER, say=say)

    def run(self) -> int:
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
                self._socket.close()  # refuse rather than keep waiting
                say("Stopping …")
                supervisor.stop()
        say("Stopped.")
        return 0

    def _bring_up(self) -> None:
        key = first_key(
            self._folder, secret(self._settings.server.bootstrap_api_key), secret(self._settings.database.url)
        )
        env = self._database_environment()
        say("Bringing the database up to date …")
        with self._api_behind_gate(env):
            self._migrate(env | {"LOXODON_BOOTSTRAP_API_KEY": key})
        say("Starting the API and the worker …")
        if not self._supervisor.wait_until(lambda: is_ready(self._url), timeout_s=READY_TIMEOUT_S):
            raise LaunchError(f"The API did not become ready within {READY_TIMEOUT_S:.0f} s ({self._url}/readyz).")
        # not earlier: its imports would take the API's core for two seconds
        kept = without(env, MIGRATE_ONLY)
        self._start("worker", ["worker", "--nice", str(WORKER_NICE)], kept, stop_timeout_s=WORKER_STOP_S)
        self._supervisor.mark_ready()
        self._ownership.note("running", self._url)
        status, model = self._language_model(key)
        is_accepted = status != http.client.UNAUTHORIZED  # the key was revoked, or has expired
        console = self._settings.server.serve_console
        say(banner(self._url, key, self._store(), model=model, is_accepted=is_accepted, has_console=console))

    def _database_environment(self) -> dict[str, str]:
        """The environment for the children; starts the embedded Postgres unless a database was named."""
        env = _child_environment()
        if self._settings.database.url is not None:
            return env
        say(f"Starting Postgres in {self._folder} …")
        postgres = EmbeddedPostgres(self._folder)
        self._supervisor.start(postgres)
        return embedded_environment(env, postgres.start())

    @contextlib.contextmanager
    def _api_behind_gate(self, env: Mapping[str, str]) -> Iterator[None]:
        """The API imports its modules within the block and serves after it (see processes.serve)."""
        reading, writing = os.pipe()
        descriptor = self._socket.fileno()
        words = ["api", "--fd", str(descriptor), "--gate", str(reading)]
        limit_s = self._settings.server.request_deadline_s + 2 * DRAIN_MARGIN_S
        try:
            kept = without(env, MIGRATE_ONLY + WORKER_ONLY)
            self._start("API", words, kept, stop_timeout_s=limit_s, fds=[descriptor, reading])
            yield
        finally:
            os.close(writing)  # the reading end stays open: a restarted API passes the gate at once

    def _start(
        self, name: str, words: Sequence[str], env: Mapping[str, str], *, stop_timeout_s: float, fds: Sequence[int] = ()
    ) -> None:
        self._supervisor.start(ChildProcess(name, [*MODULE, *words], env=env, stop_timeout_s=stop_timeout_s, fds=fds))

    def _migrate(self, env: Mapping[str, str]) -> None:
        migrate = ChildProcess("migrate", [*MODULE, "migrate"], env=env, stop_timeout_s=WORKER_STOP_S)
        if self._supervisor.run_once(migrate) != 0:
            raise LaunchError("The database could not be brought up to date; see the reason above.")

    def _language_model(self, key: str) -> tuple[int, str]:
        """The HTTP status of /v1/health/details, and the model with its state for the banner, such as "none: rules".
        Waits a moment for the model's first answer; everything else runs already."""
        status, health = 0, dict[str, Any]()

        def has_said() -> bool:
            nonlocal status, health
            status, body = get(self._url, "/v1/health/details", {"Authorization": f"Bearer {key}"})
            health = json.loads(body) if status == http.client.OK else {}
            return health.get("llm_status") != NO_ANSWER_YET

        self._supervisor.wait_until(has_said, timeout_s=MODEL_PATIENCE_S)
        name = health.get("llm")
        return status, f"{name} ({health['llm_status'].removeprefix(f'{name} ')})" if name else "none: rules"

    def _store(self) -> str:
        return str(self._folder) if self._settings.database.url is None else "the database in DATABASE_URL"


def compile_once() -> None:
    """Writes the bytecode of changed files: else three children compile the same files, at every start where
    PYTHONDONTWRITEBYTECODE is set (measured: 2 of 3 s until ready). A read-only folder is only slower."""
    compileall.compile_dir(Path(__file__).parents[1], quiet=2)


def _child_environment() -> dict[str, str]:
    """Children import this package from where it is."""
    paths = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def embedded_environment(env: Mapping[str, str], server: Server) -> dict[str, str]:
    """`env` with the embedded server as the only database, and a login of its own for each process."""
    kept = {name: value for name, value in env.items() if not name.endswith("DATABASE_URL")}
    return kept | {URL_VARIABLES[role]: server.url(login) for role, login in LOGINS.items()}


def without(env: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The environment without these variables, for a process that must not know them."""
    return {name: value for name, value in env.items() if name not in names}


def is_ready(url: str) -> bool:
    """True when /readyz answers 200."""
    return get(url, "/readyz", {})[0] == http.client.OK


def get(url: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """GETs a path and returns status and body. Not by urllib, which would use a proxy from the environment."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PROBE_TIMEOUT_S)
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def banner(
    url: str,
    key: str,
    database: str | Path,
    *,
    model: str = "none: rules",
    is_accepted: bool = True,
    has_console: bool = True,
) -> str:
    """The text printed when everything runs, with two commands that can be pasted into a shell; for a key that was
    revoked, how to make another instead."""
    page = f"  Console {url}/console#key={quote(key)}\n" if has_console else f"  Page   {url}/#{quote(key)}\n"
    return (
        "\n"
        "Loxodon is ready.\n"
        "\n"
        f"  URL    {url}     (documentation: {url}/docs)\n"
        f"  Key    {key if is_accepted else '(revoked or expired)'}\n"
        f"{page if is_accepted else ''}"
        f"  Store  {database}\n"
        f"  Language model: {model}\n"
        "\n"
        f"{examples(url, key) if is_accepted else REVOKED}"
        "\n"
        "Ctrl-C stops it.\n"
    )


def examples(url: str, key: str) -> str:
    """A store and a search, with the `loxodon` command and with curl."""
    store_body = {"content": "Bob is allergic to peanuts", "user_id": "bob"}
    search_body = {"query": "what must Bob not eat?", "user_id": "bob"}
    command = Path(sys.executable).with_name("loxodon")
    path = f'export PATH={shlex.quote(str(command.parent))}:"$PATH"\n' if command.exists() else ""
    return (
        "In another terminal:\n"
        "\n"
        f"{path}"
        f"export LOXODON_URL={url} LOXODON_API_KEY={shlex.quote(key)}\n"
        "\n"
        "Remember something, then ask for it:\n"
        "\n"
        f"loxodon add {shlex.quote(store_body['content'])} --user bob\n"
        f"loxodon search {shlex.quote(search_body['query'])} --user bob\n"
        "\n"
        "The same with curl:\n"
        "\n"
        f"{curl(url + '/v1/memories', key, store_body)}\n"
        "\n"
        f"{curl(url + '/v1/memories/search', key, search_body)}\n"
    )


def curl(url: str, key: str, body: dict[str, str]) -> str:
    """A POST request as one shell line, quoted for any POSIX shell."""
    words = ["curl", "-sS", url, "-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json"]
    return shlex.join([*words, "-d", json.dumps(body)])


def say(line: str) -> None:
    """Prints a line; a terminal that is gone must not stop the service."""
    with contextlib.suppress(OSError):
        print(line, flush=True)

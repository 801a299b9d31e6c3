"""The Postgres cluster folder: making it with initdb, its logins, and finding and ending the processes that run on it.

The logins are made by a single-user server, before the real one starts, so nobody ever connects as superuser: the
access file written here refuses it. docs/decisions/044-logins.md

    <data_dir>/postgres/logins.json    the passwords, mode 600
    <data_dir>/postgres/pg_hba.conf    passwords for everyone, the superuser refused

A pid in postmaster.pid proves nothing: it may be a zombie or belong to an unrelated process by now. A process belongs
to the cluster when its working directory is the cluster folder, which is where every Postgres process runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from service.launch.data_dir import write_private
from service.launch.parent_death import end_with_parent
from service.launch.problems import LaunchError
from service.launch.programs import Account, call, major_version, tail
from service.postgres.roles import bootstrap_sql, new_passwords

POLL_S = 0.02

# nobody connects before the logins are made, and nobody as superuser
ACCESS = ("-U", "postgres", "--auth-local=reject", "--auth-host=reject")


def ensure_cluster(binaries: Path, cluster: Path, account: Account, *, sync: bool = True) -> None:
    """Makes the cluster when it is missing. Raises LaunchError when it was made by another major version."""
    major = major_version(binaries)
    if not cluster.exists():
        _make_cluster(binaries, cluster, account, major, sync=sync)
    written = (cluster / "PG_VERSION").read_text().strip()
    if written != str(major):
        raise LaunchError(
            f"{cluster} was made by Postgres {written}, the installed one is {major}.\n"
            "Dump it with the old version and restore it, or set LOXODON_DATA_DIR to a new folder."
        )


def _make_cluster(binaries: Path, cluster: Path, account: Account, major: int, *, sync: bool) -> None:
    """Makes it under another name and renames it: a killed initdb leaves nothing that looks finished."""
    fresh = cluster.with_name(cluster.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    account.give(fresh)
    command = [*account.prefix, str(binaries / "initdb"), "-D", str(fresh), *ACCESS, "--encoding=UTF8"]
    command += ["--data-checksums", *([] if sync else ["--no-sync"])]
    for locale in _locales(major):
        done = call(end_with_parent([*command, *locale], signal.SIGTERM, uid=account.uid, gid=account.gid))
        if done.returncode == 0:
            fresh.rename(cluster)
            return
    raise LaunchError(f"initdb failed for {cluster}:\n{tail(done.stderr or done.stdout)}")


def _locales(major: int) -> list[list[str]]:
    """initdb's locale flags, in the order to try: code-point order always, Unicode character classes where possible."""
    if major >= 17:
        return [["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]]
    return [["--locale=C", "--lc-ctype=C.UTF-8"], ["--locale=C"]]


def read_pid(cluster: Path) -> int | None:
    """The first line of postmaster.pid, None without a file or a number in it."""
    lines = _pid_lines(cluster)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def is_ready(cluster: Path, pid: int) -> bool:
    """True when the postmaster `pid` wrote "ready" into line 8: recovery is over and it takes connections."""
    lines = _pid_lines(cluster)
    return read_pid(cluster) == pid and len(lines) >= 8 and lines[7].strip() == "ready"


def socket_dir(cluster: Path) -> Path | None:
    """Where the running server listens, as line 5 of postmaster.pid says; None when none takes connections."""
    pid = read_pid(cluster)
    if pid is None or pid not in members(cluster) or not is_ready(cluster, pid):
        return None
    return Path(_pid_lines(cluster)[4])


def find_reused_pid(cluster: Path) -> int | None:
    """The pid in postmaster.pid when a process of another kind has it now (a zombie counts), else None.

    Postgres refuses to start then, unless PG_GRANDPARENT_PID names that pid.
    """
    pid = read_pid(cluster)
    return pid if pid is not None and _exists(pid) and pid not in members(cluster) else None


def members(cluster: Path) -> list[int]:
    """The pids of all Postgres processes of the folder; on systems other than Linux only the postmaster's."""
    folder = os.path.realpath(cluster)
    if sys.platform == "linux":
        return [pid for pid in _all_pids() if _working_dir(pid) == folder and _name(pid) == "postgres"]
    pid = read_pid(cluster)
    return [pid] if pid is not None and folder in _command_line(pid) else []


def end_orphans(cluster: Path, *, patience_s: float) -> bool:
    """Shuts down processes left on the folder without a supervisor. True when there were some.

    The postmaster gets a fast shutdown; what is left after `patience_s`, or has lost its postmaster, is killed.
    The caller holds the folder's lock, so no running supervisor owns any of them.
    """
    pids = members(cluster)
    if not pids:
        return False
    postmaster = read_pid(cluster)
    if postmaster in pids:
        _signal(postmaster, signal.SIGINT)
    deadline = time.monotonic() + patience_s
    while members(cluster) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    kill_members(cluster)
    return True


def kill_members(cluster: Path) -> None:
    """Sends SIGKILL to every process of the folder and waits, at most 2 s, until they are gone. WAL replay recovers."""
    deadline = time.monotonic() + 2
    while (left := members(cluster)) and time.monotonic() < deadline:
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def _pid_lines(cluster: Path) -> list[str]:
    try:
        return (cluster / "postmaster.pid").read_text(errors="replace").splitlines()
    except OSError:
        return []


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _all_pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _working_dir(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # gone, a zombie, or of another user
        return ""


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    process = subprocess.run(["ps", "-wwo", "command=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return process.stdout


BACKUP_LOGIN = "loxodon_backup"
# Copies the whole cluster, and may read no table. A Postgres of one's own has its own way to make backups.
BACKUP_SQL = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{BACKUP_LOGIN}') THEN
        CREATE ROLE {BACKUP_LOGIN} LOGIN REPLICATION;
    END IF;
END $$;

ALTER ROLE {BACKUP_LOGIN} PASSWORD '%s';
"""

PASSWORDS = "logins.json"
FINGERPRINT = "made"  # the fingerprint of the statements that made them
ACCESS_FILE = """\
# Written by Loxodon when it made its logins. The server listens on a socket only.
local  all          postgres        reject
local  all          all             scram-sha-256
local  replication  loxodon_backup  scram-sha-256
"""


def ensure_logins(binaries: Path, cluster: Path, database: str, account: Account) -> Mapping[str, str]:
    """The password of each login, that of backups among them. Makes the database and the logins where they are
    missing, or were made by an earlier version. The cluster's server must not run."""
    fingerprint = hashlib.sha256((bootstrap_sql() + BACKUP_SQL + ACCESS_FILE).encode()).hexdigest()
    stored = _read(cluster / PASSWORDS)
    if stored.pop(FINGERPRINT, None) == fingerprint:
        return stored
    passwords, backup = new_passwords(), secrets.token_urlsafe(24)
    _single_user(binaries, cluster, "postgres", f"CREATE DATABASE {database};\n\n", account, may_fail=True)
    _single_user(binaries, cluster, database, f"{bootstrap_sql(passwords)}\n{BACKUP_SQL % backup}", account)
    passwords[BACKUP_LOGIN] = backup
    write_private(cluster / "pg_hba.conf", ACCESS_FILE, account)
    write_private(cluster / PASSWORDS, json.dumps({**passwords, FINGERPRINT: fingerprint}, indent=1), account)
    return passwords


def read_passwords(cluster: Path) -> Mapping[str, str]:
    """The password of each login, read from the cluster's folder; empty if the logins were never made."""
    return {login: password for login, password in _read(cluster / PASSWORDS).items() if login != FINGERPRINT}


def _single_user(
    binaries: Path, cluster: Path, database: str, sql: str, account: Account, *, may_fail: bool = False
) -> None:
    """Runs statements in a single-user server; each ends with a semicolon and an empty line. `may_fail`: a failing
    statement does not stop the others, because they may have run before."""
    command = [*account.prefix, str(binaries / "postgres"), "--single", "-j", "-D", str(cluster)]
    command += ["-c", f"exit_on_error={'off' if may_fail else 'on'}", database]
    done = call(end_with_parent(command, signal.SIGTERM, uid=account.uid, gid=account.gid), given=sql)
    if done.returncode != 0:
        raise LaunchError(f"The logins of {cluster} could not be made:\n{tail(done.stderr)}")


def _read(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): str(value) for name, value in stored.items()} if isinstance(stored, dict) else {}

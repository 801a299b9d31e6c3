"""The Postgres cluster folder: making it with initdb, and finding and ending the processes that run on it.

A pid in postmaster.pid proves nothing: it may be a zombie or belong to an unrelated process by now. A process belongs
to the cluster when its working directory is the cluster folder, which is where every Postgres process runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from service.launch.accounts import Account
from service.launch.binaries import call, major_version, tail
from service.launch.parent_death import end_with_parent
from service.launch.problems import LaunchError

POLL_S = 0.02

# nobody connects before logins.py has made logins, and nobody as superuser
ACCESS = ("-U", "postgres", "--auth-local=reject", "--auth-host=reject")


def ensure_cluster(binaries: Path, cluster: Path, account: Account, *, sync: bool = True) -> None:
    """Makes the cluster when it is missing. Raises LaunchError when it was made by another major version."""
    major = major_version(binaries)
    if not cluster.exists():
        _make(binaries, cluster, account, major, sync=sync)
    written = (cluster / "PG_VERSION").read_text().strip()
    if written != str(major):
        raise LaunchError(
            f"{cluster} was made by Postgres {written}, the installed one is {major}.\n"
            "Dump it with the old version and restore it, or set LOXODON_DATA_DIR to a new folder."
        )


def _make(binaries: Path, cluster: Path, account: Account, major: int, *, sync: bool) -> None:
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

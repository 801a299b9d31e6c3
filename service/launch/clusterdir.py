"""What lives in this Postgres folder right now: a server, its orphans, or only a stale pid?

A pid in postmaster.pid proves nothing: it may be a zombie or a stranger who got the number. A process belongs to the
cluster when its working directory is the cluster folder, which is where every Postgres process sits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL_S = 0.02


def written_pid(cluster: Path) -> int | None:
    """Returns the first line of postmaster.pid, None when there is no file or no number in it."""
    lines = _pid_lines(cluster)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def is_ready(cluster: Path, pid: int) -> bool:
    """True when the postmaster `pid` wrote line 8, "ready": it has finished recovery and takes connections."""
    lines = _pid_lines(cluster)
    return written_pid(cluster) == pid and len(lines) >= 8 and lines[7].strip() == "ready"


def stranger_with_our_pid(cluster: Path) -> int | None:
    """Returns the pid in postmaster.pid when a process that is not of this cluster has it (a zombie counts), else None.

    Postgres refuses to start then, unless PG_GRANDPARENT_PID names that pid.
    """
    pid = written_pid(cluster)
    return pid if pid is not None and _exists(pid) and pid not in members(cluster) else None


def members(cluster: Path) -> list[int]:
    """Returns the pids of all Postgres processes of the folder; off Linux only the postmaster's."""
    folder = os.path.realpath(cluster)
    if sys.platform == "linux":
        return [pid for pid in _all_pids() if _working_dir(pid) == folder and _name(pid) == "postgres"]
    pid = written_pid(cluster)
    return [pid] if pid is not None and folder in _command_line(pid) else []


def end_orphans(cluster: Path, *, patience_s: float) -> bool:
    """Shut down what runs on the folder without a supervisor. True when there was something.

    The postmaster gets a fast shutdown; what is left after `patience_s`, or has lost its postmaster, is killed.
    The caller holds the folder's lock, so nothing here belongs to a living supervisor.
    """
    found = members(cluster)
    if not found:
        return False
    postmaster = written_pid(cluster)
    if postmaster in found:
        _signal(postmaster, signal.SIGINT)
    deadline = time.monotonic() + patience_s
    while members(cluster) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    kill_members(cluster)
    return True


def kill_members(cluster: Path) -> None:
    """SIGKILL to every process of the folder, and wait (at most 2 s) until they are gone. WAL replay makes it good."""
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
    except OSError:  # gone, a zombie, or not ours to look at
        return ""


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    found = subprocess.run(["ps", "-wwo", "command=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return found.stdout

